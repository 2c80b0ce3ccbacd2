/** Whether a value read from JSON is an object, not a list and not null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string that is not empty, or undefined. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Vendors' additions that mean nothing to a caller, or repeat what stands elsewhere. */
const NOISE = new Set([
  'obfuscation',
  'x_groq',
  'prompt_filter_results',
  'content_filter_results',
  'content_filter_offsets',
  'native_finish_reason',
  'warnings',
  'prompt',
  'token_id',
  'token_ids',
  'error',
]);

/**
 * Copies what is not known into `target`: OpenAI's newer fields and a vendor's useful ones stay, nulls and noise go.
 */
export function copyExtras(
  source: Readonly<Record<string, unknown>>,
  known: ReadonlySet<string>,
  target: Record<string, unknown>,
): void {
  for (const key in source) {
    const value = source[key];
    if (value !== null && value !== undefined && !known.has(key) && !NOISE.has(key) && key !== '__proto__') {
      target[key] = value;
    }
  }
}
