/** What has the shape of a credential of any vendor. */
const SHAPES: readonly RegExp[] = Object.freeze([
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  /\b(?:bearer|basic)\s+[\w.~+/*=-]{8,}/gi,
  /\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:sk|pk|rk|tg|gsk|xai|hf|r8|nvapi|pplx|fw)[-_][\w*.-]{8,}/g,
  /\b(?:ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{10,}/g,
  /\b(?:AKIA|AIza|ya29\.)[\w-]{12,}/g,
]);

export const REDACTED = '[redacted]';

/** Makes what cuts these secrets, and all that looks like a credential, out of texts. */
export function createRedactor(listSecrets: () => readonly string[]): (text: string) => string {
  let own: RegExp | null | undefined;
  return (text) => {
    if (own === undefined) own = secretPattern(listSecrets(), 'g');
    let shown = own ? text.replace(own, REDACTED) : text;
    for (const shape of SHAPES) shown = shown.replace(shape, REDACTED);
    return shown;
  };
}

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
