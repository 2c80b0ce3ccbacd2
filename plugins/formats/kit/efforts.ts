/** Reasoning effort of a model: `reasoning_effort` of OpenAI's API. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** All efforts, lowest first. */
export const EFFORTS: readonly Effort[] = Object.freeze(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/**
 * Thinking tokens of each effort, for models with a token budget. A column has every effort, so that none falls
 * through to another's number. Google's numbers are those of its own OpenAI endpoint.
 */
export const THINKING_TOKENS = Object.freeze({
  google: { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576, xhigh: 32_768, max: 32_768 },
  anthropic: { none: 0, minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_000, max: 32_000 },
}) satisfies Readonly<Record<string, Readonly<Record<Effort, number>>>>;

/** Highest token budget of a caller that is read as each effort. A budget above the last bound is the last effort. */
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

export function isEffort(value: unknown): value is Effort {
  return EFFORTS.some((effort) => effort === value);
}

/** Returns the effort for a budget of thinking tokens in a caller's format. */
export function effortOfTokens(tokens: number, format: keyof typeof THINKING_TOKENS): Effort | undefined {
  return READ_UP_TO[format].find(([, most]) => tokens <= most)?.[0];
}

/**
 * Returns the nearest effort that a model accepts; of two equally near, the one listed first. An unknown word is
 * returned unchanged.
 */
export function nearestEffort(wanted: unknown, taken: readonly Effort[]): unknown {
  return isEffort(wanted) ? fitEffort(wanted, taken) : wanted;
}

/** {@link nearestEffort} for a known effort; returns the effort itself if the model's list is empty. */
export function fitEffort<Taken extends Effort>(wanted: Effort, taken: readonly Taken[]): Taken | Effort {
  const at = EFFORTS.indexOf(wanted);
  const distance = (effort: Effort): number => Math.abs(EFFORTS.indexOf(effort) - at);
  return taken.toSorted((a, b) => distance(a) - distance(b))[0] ?? wanted;
}
