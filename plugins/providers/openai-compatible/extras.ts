import { isObject } from '../../../core/index.ts';

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

const TIERS = new Set<unknown>(['auto', 'default', 'flex', 'scale', 'priority', 'fast']);
const isText = (value: unknown): boolean => typeof value === 'string';

/** OpenAI's optional fields: a vendor that means something else by the name does not get through. */
const CHECKS = new Map<string, (value: unknown) => boolean>([
  ['annotations', Array.isArray],
  ['audio', isObject],
  ['function_call', (value) => isObject(value) && isText(value['arguments'])],
  ['metadata', (value) => isObject(value) && Object.values(value).every(isText)],
  ['moderation', isObject],
  ['service_tier', (value) => TIERS.has(value)],
  ['system_fingerprint', isText],
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
    if (known.has(key) || NOISE.has(key) || key === '__proto__') continue;
    const value = source[key];
    if (value === null || value === undefined || CHECKS.get(key)?.(value) === false) continue;
    target[key] = value;
  }
}
