import { isObject, type JsonObject } from '../../../core/index.ts';

/** Vendors' additions that mean nothing to a caller, or repeat what stands elsewhere. */
const NOISE = new Set([
  'obfuscation',
  'x_groq',
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
  ['content_filter_results', isObject],
  ['prompt_filter_results', Array.isArray],
  ['function_call', (value) => isObject(value) && isText(value['arguments'])],
  ['metadata', (value) => isObject(value) && Object.values(value).every(isText)],
  ['moderation', isObject],
  ['service_tier', (value) => TIERS.has(value)],
  ['system_fingerprint', isText],
]);

/** What is not known of an object: OpenAI's newer fields and a vendor's useful ones stay, nulls and noise go. */
export function extrasOf(source: JsonObject, known: ReadonlySet<string>): JsonObject {
  const extras: JsonObject = {};
  for (const key in source) {
    if (known.has(key) || NOISE.has(key) || key === '__proto__') continue;
    const value = source[key];
    if (value === null || value === undefined || CHECKS.get(key)?.(value) === false) continue;
    extras[key] = value;
  }
  return extras;
}
