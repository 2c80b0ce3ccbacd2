import type { ChatRequest, JsonObject } from '../../contract/index.ts';

/** Changes by hooks to a request in the caller's own format, shared by the `patch` of every format. */

/** Lowest output limit of a request. A hook or the clamp of a key may set either field. */
export function limitOf({ max_completion_tokens, max_tokens }: ChatRequest): number | undefined {
  const limits = [max_completion_tokens, max_tokens].filter((limit) => typeof limit === 'number');
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/**
 * Returns the items added at the front and at the end of a list. Core translates requests whose lists changed in
 * another way.
 */
export function addedTo<T>(
  before: readonly T[] = [],
  after: readonly T[] = [],
): readonly [front: readonly T[], back: readonly T[]] {
  const [first] = before;
  const start = first === undefined ? 0 : Math.max(after.indexOf(first), 0);
  return [after.slice(0, start), after.slice(start + before.length)];
}

/** Returns the fields that hooks changed with their new values; undefined for a removed field. */
export function changesOf(
  before: JsonObject = {},
  after: JsonObject = {},
): readonly (readonly [name: string, value: unknown])[] {
  if (before === after) return [];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  names.delete('__proto__');
  return [...names].filter((name) => before[name] !== after[name]).map((name) => [name, after[name]]);
}
