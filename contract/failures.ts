import { type ErrorCode, GatewayError } from './errors.ts';
import type { Endpoint, FailureClass, UpstreamFailure } from './provider.ts';
import { redact } from './redaction.ts';

/** Maximum length of a field name in an error. */
const MAX_PARAM = 200;

interface FailureRow {
  /** Error code for the caller when no attempt is left. */
  readonly code: ErrorCode;
  /** True if the next target of a fallback list may succeed. */
  readonly failover: boolean;
  /** Message about the provider, with the remedy. Undefined if the caller can fix the request: then the vendor's message is shown. */
  readonly says: string | undefined;
}

/** Consequences of each class of upstream failure. */
export const FAILURES = Object.freeze({
  authentication: row(
    'provider_auth_failed',
    'rejected its configured key. Ask the operator of this gateway to replace the key',
  ),
  permission: row('permission_denied', undefined),
  billing: row(
    'provider_quota_exhausted',
    'reports that its account has no credit left. Ask the operator of this gateway to add credit',
  ),
  rate_limit: row('upstream_rate_limited', 'has reached its rate limit. Try again later'),
  overloaded: row('provider_overloaded', 'is overloaded. Try again later'),
  upstream_error: row('provider_unavailable', 'could not be reached or returned an error. Try again later'),
  broken_off: row('provider_unavailable', undefined),
  timeout: row('provider_timeout', 'did not respond in time. Try again later'),
  model_not_found: row('unsupported_model', undefined),
  not_found: row('not_found', undefined),
  context_length: row('context_length_exceeded', undefined, false),
  request_over_limit: row('request_too_large', undefined),
  content_filter: row('content_filtered', undefined, false),
  invalid_request: row('invalid_request', undefined, false),
} as const satisfies Record<FailureClass, FailureRow>);

function row(code: ErrorCode, says: string | undefined, failover = true): FailureRow {
  return Object.freeze({ code, says, failover });
}

/** Messages for vendors that reject without one. */
const SILENT_REFUSALS: Readonly<Partial<Record<FailureClass, string>>> = Object.freeze({
  permission:
    'the request is not allowed for its account there. Ask the operator of this gateway to check the account.',
  model_not_found: 'the model does not exist there. Use another model.',
  not_found:
    'the request was not found there. Ask the operator of this gateway to check the `baseUrl` of the provider.',
  context_length: 'the messages exceed the context window of the model. Send fewer or shorter messages.',
  request_over_limit: 'the request is too large. Send a smaller one.',
  content_filter: 'its policy rejected the content. Change the messages.',
  invalid_request: 'the request was rejected without a reason. Check its fields.',
});

/**
 * Returns the caller's error for an upstream failure. `provider` is the instance's name in the configuration, the only name shown.
 * The vendor's redacted message appears for errors that the caller can fix; all others have a fixed message.
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
