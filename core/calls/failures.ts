import { type ErrorCode, GatewayError } from '../contract/errors.ts';
import type { Endpoint, FailureClass, UpstreamFailure } from '../contract/provider.ts';
import { REDACTED, secretPattern } from '../plugins/redact-text.ts';

interface FailureRow {
  /** What the caller gets when no attempt is left. */
  readonly code: ErrorCode;
  /** Whether the next target of a fallback list may do better. */
  readonly failover: boolean;
  /** What is said of the provider; undefined where the caller can mend it, so that the vendor's own words are shown. */
  readonly says: string | undefined;
}

/** What follows from each class of upstream failure. */
export const FAILURES = Object.freeze({
  authentication: row('provider_auth_failed', 'did not accept the key it is configured with'),
  billing: row('provider_quota_exhausted', 'reports that its account has no credit left'),
  rate_limit: row('upstream_rate_limited', 'is over its own rate limit'),
  overloaded: row('provider_overloaded', 'is overloaded'),
  upstream_error: row('provider_unavailable', 'could not be reached or failed to answer'),
  timeout: row('provider_timeout', 'did not answer in time'),
  model_not_found: row('unsupported_model', undefined),
  context_length: row('context_length_exceeded', undefined, false),
  request_over_limit: row('request_too_large', undefined),
  content_filter: row('content_filtered', undefined, false),
  invalid_request: row('invalid_request', undefined, false),
} as const satisfies Record<FailureClass, FailureRow>);

function row(code: ErrorCode, says: string | undefined, failover = true): FailureRow {
  return Object.freeze({ code, says, failover });
}

/** Shown when a vendor refuses without a word. */
const SILENT_REFUSALS: Readonly<Partial<Record<FailureClass, string>>> = Object.freeze({
  model_not_found: 'the model does not exist there.',
  context_length: 'the messages do not fit into the context window of the model.',
  request_over_limit: 'the request is larger than it takes at once.',
  content_filter: 'the content was refused by its policy.',
  invalid_request: 'the request was refused.',
});

/**
 * The error a caller gets for an upstream failure. `provider` is the instance's name in the configuration, the only name
 * shown. A vendor's words appear, redacted, for what the caller can mend; everything else is a fixed sentence.
 */
export function failureToError(
  failure: UpstreamFailure,
  provider: string,
  cause?: unknown,
  endpoint?: Endpoint,
): GatewayError {
  const { code, says } = FAILURES[failure.class];
  const words = redact(failure.message, endpoint);
  const message =
    says === undefined
      ? `${provider}: ${words || SILENT_REFUSALS[failure.class]}`
      : `The provider ${provider} ${says}.`;
  return new GatewayError(code, message, {
    ...(failure.param !== undefined && { param: redact(failure.param, endpoint).slice(0, MAX_PARAM) }),
    ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }),
    cause: cause ?? words,
  });
}

const MAX_SHOWN = 500;
const MAX_PARAM = 200;

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

function patternOf({ credential, headers = {} }: Endpoint): RegExp | null {
  const values = [credential?.value, ...Object.values(headers)].filter((value) => value !== undefined);
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return secretPattern(words, 'gi', LEAST_LENGTH);
}
