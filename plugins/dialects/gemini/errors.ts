import type { ErrorCode, GatewayError } from '../../../core/index.ts';

interface ErrorRow {
  /** Google's canonical name. Source: https://cloud.google.com/apis/design/errors */
  readonly status: string;
  /** Of HTTP, where this format has another one than ours. */
  readonly http?: number;
}

const row = (status: string): ErrorRow => Object.freeze({ status });
const INVALID_ARGUMENT = row('INVALID_ARGUMENT');
const UNAUTHENTICATED = row('UNAUTHENTICATED');
const NOT_FOUND = row('NOT_FOUND');
const UNAVAILABLE = row('UNAVAILABLE');

const ERROR_ROWS: Readonly<Record<ErrorCode, ErrorRow>> = Object.freeze({
  invalid_json: INVALID_ARGUMENT,
  invalid_request: INVALID_ARGUMENT,
  context_length_exceeded: INVALID_ARGUMENT,
  content_filtered: INVALID_ARGUMENT,
  previous_response_not_found: INVALID_ARGUMENT,
  ambiguous_credentials: INVALID_ARGUMENT,
  missing_api_key: UNAUTHENTICATED,
  invalid_api_key: UNAUTHENTICATED,
  expired_api_key: UNAUTHENTICATED,
  revoked_api_key: UNAUTHENTICATED,
  invalid_token: UNAUTHENTICATED,
  insufficient_balance: row('FAILED_PRECONDITION'),
  permission_denied: row('PERMISSION_DENIED'),
  model_not_allowed: row('PERMISSION_DENIED'),
  unsupported_provider: NOT_FOUND,
  unsupported_model: NOT_FOUND,
  not_found: NOT_FOUND,
  unknown_url: NOT_FOUND,
  method_not_allowed: row('UNIMPLEMENTED'),
  request_timeout: row('DEADLINE_EXCEEDED'),
  conflict: row('ABORTED'),
  precondition_failed: row('FAILED_PRECONDITION'),
  request_too_large: INVALID_ARGUMENT,
  unsupported_media_type: INVALID_ARGUMENT,
  upgrade_required: row('UNIMPLEMENTED'),
  rate_limited: row('RESOURCE_EXHAUSTED'),
  upstream_rate_limited: row('RESOURCE_EXHAUSTED'),
  headers_too_large: INVALID_ARGUMENT,
  internal_error: row('INTERNAL'),
  provider_not_configured: UNAVAILABLE,
  provider_unavailable: UNAVAILABLE,
  provider_overloaded: UNAVAILABLE,
  provider_timeout: { status: 'DEADLINE_EXCEEDED', http: 504 },
  provider_auth_failed: UNAVAILABLE,
  provider_quota_exhausted: UNAVAILABLE,
  provider_invalid_response: UNAVAILABLE,
  store_unavailable: UNAVAILABLE,
  overloaded: UNAVAILABLE,
  shutting_down: UNAVAILABLE,
  feature_disabled: UNAVAILABLE,
});

/** The words by which Google's clients know that a prompt is too long. */
const CONTEXT_WORDS = 'The input token count exceeds the maximum number of tokens allowed';

/** An error as Google's APIs write it; our code is the reason in its details. */
export function geminiError(
  error: GatewayError,
  requestId: string,
): { readonly body: { readonly error: object }; readonly status?: number } {
  const { status, http } = ERROR_ROWS[error.code];
  const isContext = error.code === 'context_length_exceeded' && !error.message.includes('exceeds the maximum');
  const retry = error.retryAfterMs;
  return {
    body: {
      error: {
        code: http ?? error.status,
        message: isContext ? `${CONTEXT_WORDS}. ${error.message}` : error.message,
        status,
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: error.code.toUpperCase(),
            domain: 'tollgate',
            metadata: { request_id: requestId, ...(error.param !== undefined && { param: error.param }) },
          },
          ...(retry === undefined
            ? []
            : [
                {
                  '@type': 'type.googleapis.com/google.rpc.RetryInfo',
                  retryDelay: `${Math.max(1, Math.ceil(retry / 1000))}s`,
                },
              ]),
        ],
      },
    },
    ...(http !== undefined && { status: http }),
  };
}
