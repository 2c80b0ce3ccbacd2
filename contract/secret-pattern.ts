export const REDACTED = '[redacted]';

/**
 * Returns a pattern that matches secrets of a minimum length, verbatim and as encoded in a URL and in JSON. The longest comes
 * first, because one may be a prefix of another. Null if there are none.
 */
export function secretPattern(secrets: readonly string[], flags: 'g' | 'gi', leastLength = 0): RegExp | null {
  const forms = secrets
    .flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
    .filter(({ length }) => length >= leastLength);
  if (forms.length === 0) return null;
  const longest = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return new RegExp(longest.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), flags);
}
