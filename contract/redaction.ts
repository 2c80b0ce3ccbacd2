import type { Endpoint } from './provider.ts';
import { REDACTED, secretPattern } from './secret-pattern.ts';

const MAX_SHOWN = 500;

/** How much of a vendor's words is looked at. */
const MAX_READ = 64 * 1024;

/** What a vendor's message may give away about the operator: keys, tokens, accounts, addresses. */
const SECRETS: readonly RegExp[] = Object.freeze([
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>)\]]+/gi,
  /\b(?:bearer|basic)\s+[\w.~+/*=-]{8,}/gi,
  /\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:sk|pk|rk|tg|gsk|xai|hf|r8|nvapi|pplx|fw)[-_][\w*.-]{8,}/g,
  /\b(?:key|api)[-_](?=[\w.-]*[\d*])[\w*.-]{8,}/g,
  /\b(?=[a-z]*\d)[a-z0-9]{32,}\b/gi,
  /\b(?:AKIA|AIza|ya29\.)[\w-]{12,}/g,
  /\b(?:org|proj|project|team|user|acct|account|ws|wrkspc|workspace)[-_](?=[\w-]*\d)[\w-]{6,}/gi,
  /\b[\w.%+-]+@[\w-]+(?:\.[\w-]+)+/g,
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g,
  /\[[0-9a-f:]*:[0-9a-f:.]*\](?::\d+)?/gi,
  /\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|net|org|io|ai|dev|app|cloud|xyz|co|internal|local|svc|lan|corp|invalid|test|example)\b(?::\d+)?/gi,
  /\blocalhost(?::\d+)?\b/gi,
]);

/** A vendor's text with the endpoint's own secrets, and with keys, tokens, account ids, addresses and control characters taken out, at most 500 characters. */
export function redact(text: string, endpoint?: Endpoint): string {
  // Before anything is cut off or joined, so that no half of a secret is left.
  let shown = cutSecrets(text.slice(0, MAX_READ), endpoint)
    .slice(0, 4 * MAX_SHOWN)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  for (const secret of SECRETS) shown = shown.replace(secret, '[redacted]');
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
}

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

function patternOf({ credential, keys = [], headers = {} }: Endpoint): RegExp | null {
  const ofKeys = keys.map((key) => key.credential.value);
  const values = [credential?.value, ...ofKeys, ...Object.values(headers)].filter((value) => value !== undefined);
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return secretPattern(words, 'gi', LEAST_LENGTH);
}
