import { type ErrorCode, GatewayError } from './errors.ts';
import type { Endpoint, FailureClass, UpstreamFailure } from './provider.ts';
import { redact } from './redaction.ts';

/** The longest name of a field that an error shows. */
const MAX_PARAM = 200;

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
  authentication: row('provider_auth_failed', 'rejected its configured key'),
  billing: row('provider_quota_exhausted', 'reports that its account has no credit left'),
  rate_limit: row('upstream_rate_limited', 'is over its own rate limit'),
  overloaded: row('provider_overloaded', 'is overloaded'),
  upstream_error: row('provider_unavailable', 'could not be reached or returned an error'),
  broken_off: row('provider_unavailable', undefined),
  timeout: row('provider_timeout', 'did not respond in time'),
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
  context_length: 'the messages exceed the context window of the model.',
  request_over_limit: 'the request is too large.',
  content_filter: 'its policy rejected the content.',
  invalid_request: 'the request was rejected.',
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
