import type { ChatRequest, JsonObject } from '../../contract/index.ts';

/** What hooks made of a request that goes on in the caller's own format: what every format's `patch` asks of it. */

/** The most that may be written. A hook, or the clamp of a key, may set either name. */
export function limitOf({ max_completion_tokens, max_tokens }: ChatRequest): number | undefined {
  const limits = [max_completion_tokens, max_tokens].filter((limit) => typeof limit === 'number');
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** What was added to a list at its front and at its end; core translates a request whose lists changed in another way. */
export function addedTo<T>(
  before: readonly T[] = [],
  after: readonly T[] = [],
): readonly [front: readonly T[], back: readonly T[]] {
  const [first] = before;
  const start = first === undefined ? 0 : Math.max(after.indexOf(first), 0);
  return [after.slice(0, start), after.slice(start + before.length)];
}

/** The fields whose values hooks changed, each with its new one; undefined for a field that is gone. */
export function changesOf(
  before: JsonObject = {},
  after: JsonObject = {},
): readonly (readonly [name: string, value: unknown])[] {
  if (before === after) return [];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  names.delete('__proto__');
  return [...names].filter((name) => before[name] !== after[name]).map((name) => [name, after[name]]);
}
