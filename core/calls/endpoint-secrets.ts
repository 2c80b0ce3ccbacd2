import type { Endpoint } from '../contract/provider.ts';
import { REDACTED, secretPattern } from '../plugins/redact-text.ts';

/** Shorter values are words that any text may hold, and no secrets. */
const LEAST_LENGTH = 8;

const known = new WeakMap<Endpoint, RegExp | null>();

/**
 * Cuts what an endpoint is sent in secret out of a vendor's words: the key and the values of the operator's headers, exactly as
 * they are, whatever they look like, also as they stand in a URL or in JSON.
 */
export function cutSecrets(text: string, endpoint: Endpoint | undefined): string {
  if (!endpoint) return text;
  let pattern = known.get(endpoint);
  if (pattern === undefined) {
    pattern = patternOf(endpoint);
    known.set(endpoint, pattern);
  }
  return pattern ? text.replace(pattern, REDACTED) : text;
}

function patternOf({ credential, headers = {} }: Endpoint): RegExp | null {
  const values = [credential?.value, ...Object.values(headers)].filter((value) => value !== undefined);
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return secretPattern(words, 'gi', LEAST_LENGTH);
}
