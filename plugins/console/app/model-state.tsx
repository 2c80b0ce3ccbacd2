import type { Model } from './shapes.ts';
import { Badge } from './ui.tsx';

/** Whether a model can be called now, and what stands in the way. */
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

/** Models by what stands in their way: a mistake in a provider's options concerns all of its models. */
export function groupByProblem(models: readonly Model[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { id, problem } of models) if (problem !== null) groups.set(problem, [...(groups.get(problem) ?? []), id]);
  return groups;
}
