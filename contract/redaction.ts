import type { Endpoint } from './provider.ts';
import { REDACTED, secretPattern } from './secret-pattern.ts';

const MAX_SHOWN = 500;

/** Maximum length of a vendor's text that is searched. */
const MAX_READ = 64 * 1024;

/** Patterns for operator data in a vendor's message: keys, tokens, accounts, addresses. */
const SECRETS: readonly RegExp[] = Object.freeze([
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>)\]]+/gi,
  /\b(?:bearer|basic)\s+[\w.~+/*=-]{8,}/gi,
  /\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:sk|pk|rk|tg|gsk|xai|hf|r8|nvapi|pplx|fw)[-_][\w*.-]{8,}/g,
  /\b(?:key|api)[-_](?=[\w.-]*[\d*])[\w*.-]{8,}/g,
  /\b(?=[a-z]*\d)[a-z0-9]{32,}\b/gi,
  /\b(?:AKIA|AIza|ya29\.)[\w-]{12,}/g,
  /\b(?:org|proj|project|team|user|acct|account|ws|wrkspc|workspace)[-_](?=[\w-]*\d)[\w-]{6,}/gi,
  /\barn:[\w:/.*@+=,-]+/gi,
  /\bprojects\/[\w:.-]+|\bproject ["'`]?(?=[\w-]*[\d-])[\w:.-]{4,}/gi,
  /\b[\w.%+-]+@[\w-]+(?:\.[\w-]+)+/g,
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g,
  /\[[0-9a-f:]*:[0-9a-f:.]*\](?::\d+)?/gi,
  /\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|net|org|io|ai|dev|app|cloud|xyz|co|internal|local|svc|lan|corp|invalid|test|example)\b(?::\d+)?/gi,
  /\blocalhost(?::\d+)?\b/gi,
]);

/**
 * Redacts a vendor's text: removes the endpoint's own secrets, keys, tokens, account ids, addresses and control characters. Returns
 * at most 500 characters.
 */
export function redact(text: string, endpoint?: Endpoint): string {
  // Runs before any cutting or joining, so that no part of a secret remains.
  let shown = cutSecrets(text.slice(0, MAX_READ), endpoint)
    .slice(0, 4 * MAX_SHOWN)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  for (const secret of SECRETS) shown = shown.replace(secret, '[redacted]');
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
}

/** Shorter values are ordinary words, not secrets. */
const LEAST_LENGTH = 8;

const known = new WeakMap<Endpoint, RegExp | null>();

/**
 * Removes an endpoint's secrets from a vendor's text: the key and the values of the operator's headers. Matches them verbatim,
 * whatever their form, and as encoded in a URL or in JSON.
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

/** Removes the endpoint's key from what its vendor sent, in case the vendor repeats its request. Costs one search. */
export function cutKey(text: string, endpoint: Endpoint | undefined): string {
  const key = endpoint?.credential?.value;
  return key !== undefined && key.length >= LEAST_LENGTH && text.includes(key) ? cutSecrets(text, endpoint) : text;
}

function patternOf({ credential, keys = [], headers = {} }: Endpoint): RegExp | null {
  const ofKeys = keys.map((key) => key.credential.value);
  const values = [credential?.value, ...ofKeys, ...Object.values(headers)].filter((value) => value !== undefined);
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return secretPattern(words, 'gi', LEAST_LENGTH);
}
