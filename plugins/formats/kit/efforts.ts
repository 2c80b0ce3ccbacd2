/** How hard a model thinks before it responds: `reasoning_effort` of OpenAI's API. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** All efforts, from little to much. */
export const EFFORTS: readonly Effort[] = Object.freeze(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/**
 * Thinking tokens of each effort, for models that count them. A column has every effort, so that none of them falls through to
 * another one's number. Google's are those of its own OpenAI endpoint.
 */
export const THINKING_TOKENS = Object.freeze({
  google: { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576, xhigh: 32_768, max: 32_768 },
  anthropic: { none: 0, minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_000, max: 32_000 },
}) satisfies Readonly<Record<string, Readonly<Record<Effort, number>>>>;

/** Up to which budget of a caller's own is read as which effort; what is above the last one is the last one. */
const READ_UP_TO: Readonly<Record<keyof typeof THINKING_TOKENS, readonly (readonly [effort: Effort, most: number])[]>> =
  Object.freeze({
    google: [
      ['none', 0],
      ['low', THINKING_TOKENS.google.low],
      ['medium', THINKING_TOKENS.google.medium],
      ['high', THINKING_TOKENS.google.high],
      ['xhigh', Number.POSITIVE_INFINITY],
    ],
    anthropic: [
      ['low', 4096],
      ['medium', 12_288],
      ['high', Number.POSITIVE_INFINITY],
    ],
  });

/** Whether a value is one of {@link EFFORTS}. */
export function isEffort(value: unknown): value is Effort {
  return EFFORTS.some((effort) => effort === value);
}

/** The effort that a budget of thinking tokens, written by a caller of that format, stands for. */
export function effortOfTokens(tokens: number, format: keyof typeof THINKING_TOKENS): Effort | undefined {
  return READ_UP_TO[format].find(([, most]) => tokens <= most)?.[0];
}

/**
 * The effort nearest to the one that is wanted, of those that a model takes; of two that are as near, the one listed first. A word
 * that is no effort stays as it is.
 */
export function nearestEffort(wanted: unknown, taken: readonly Effort[]): unknown {
  return isEffort(wanted) ? fitEffort(wanted, taken) : wanted;
}

/** {@link nearestEffort} of what is known to be an effort; the effort itself where a model's list is empty. */
export function fitEffort<Taken extends Effort>(wanted: Effort, taken: readonly Taken[]): Taken | Effort {
  const at = EFFORTS.indexOf(wanted);
  const distance = (effort: Effort): number => Math.abs(EFFORTS.indexOf(effort) - at);
  return taken.toSorted((a, b) => distance(a) - distance(b))[0] ?? wanted;
}
