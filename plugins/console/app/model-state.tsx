import type { Model } from './shapes.ts';
import { Badge } from './ui.tsx';

/** State of a model: callable or not, and the problem. */
export function ModelState({ model: { is_callable, problem } }: { model: Model }) {
  const [tone, word] = is_callable
    ? problem
      ? (['warn', 'callable, with a problem'] as const)
      : (['good', 'callable'] as const)
    : problem
      ? (['bad', 'cannot be called'] as const)
      : (['dim', 'no key'] as const);
  return (
    <>
      <Badge tone={tone}>{word}</Badge>
      {problem && <p>{problem}</p>}
    </>
  );
}

/** Groups models by problem: a mistake in a provider's options affects all of its models. */
export function groupByProblem(models: readonly Model[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { id, problem } of models) if (problem !== null) groups.set(problem, [...(groups.get(problem) ?? []), id]);
  return groups;
}
