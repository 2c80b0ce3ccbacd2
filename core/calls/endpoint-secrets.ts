import type { Endpoint } from '../contract/provider.ts';

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
    pattern = makePattern(endpoint);
    known.set(endpoint, pattern);
  }
  return pattern ? text.replace(pattern, '[redacted]') : text;
}

function makePattern({ credential, headers = {} }: Endpoint): RegExp | null {
  const values = [credential?.value, ...Object.values(headers)].filter((value) => value !== undefined);
  const forms = values
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
    .filter(({ length }) => length >= LEAST_LENGTH);
  if (forms.length === 0) return null;
  // The longest first: one may begin with another.
  const longest = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return new RegExp(longest.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), 'gi');
}
