export const REDACTED = '[redacted]';

/**
 * What finds secrets of at least some length as they are, in a URL and in JSON, the longest first: one may begin with another.
 * Null where there are none.
 */
export function secretPattern(secrets: readonly string[], flags: 'g' | 'gi', leastLength = 0): RegExp | null {
  const forms = secrets
    .flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
    .filter(({ length }) => length >= leastLength);
  if (forms.length === 0) return null;
  const longest = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return new RegExp(longest.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), flags);
}
