import {
  type ErrorCode,
  type FailureClass,
  type GatewayError,
  isObject,
  type JsonObject,
  parseDuration,
  type ResponseHeaders,
  readArray,
  readObject,
  readString,
  type UpstreamFailure,
} from '../../../contract/index.ts';
import { classOfStatus, readRetryAfter, retryHintOf } from '../kit/index.ts';

/** Google's canonical status names. Source: https://cloud.google.com/apis/design/errors */
const CLASS_BY_STATUS: Readonly<Record<string, FailureClass>> = Object.freeze({
  INVALID_ARGUMENT: 'invalid_request',
  OUT_OF_RANGE: 'invalid_request',
  // Region or free tier: the operator's account must change, not the request.
  FAILED_PRECONDITION: 'billing',
  UNAUTHENTICATED: 'authentication',
  PERMISSION_DENIED: 'permission',
  RESOURCE_EXHAUSTED: 'rate_limit',
  ALREADY_EXISTS: 'upstream_error',
  ABORTED: 'upstream_error',
  CANCELLED: 'upstream_error',
  INTERNAL: 'upstream_error',
  UNKNOWN: 'upstream_error',
  DATA_LOSS: 'upstream_error',
  UNIMPLEMENTED: 'upstream_error',
  UNAVAILABLE: 'overloaded',
  DEADLINE_EXCEEDED: 'timeout',
});

/** The vendor has no error code for this: "The input token count (…) exceeds the maximum number of tokens allowed". */
const CONTEXT_TEXT = /input token count .*exceeds the maximum|exceeds the maximum number of (input )?tokens/i;

/** Daily quotas reset at midnight Pacific time. A wait of one hour means "not soon" without date arithmetic. */
const DAILY_QUOTA_WAIT_MS = 3_600_000;

/** Classifies an error response, or the error in an event, whose own code overrides status 200. */
export function geminiFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const error = readObject(readObject(Array.isArray(body) ? body[0] : body)['error']);
  const details = readArray(error['details']).filter(isObject);
  const code = typeof error['code'] === 'number' ? error['code'] : status;
  const text = readString(error['message']);
  const failureClass = classify(code, readString(error['status']), text ?? '', details);
  const message = text ?? `The provider returned status ${code}.`;
  if (failureClass !== 'rate_limit') return { class: failureClass, message, ...retryHintOf(failureClass, headers) };
  const retryAfterMs = retryHint(details, headers);
  return { class: failureClass, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function classify(code: number, name: string | undefined, text: string, details: readonly JsonObject[]): FailureClass {
  // An invalid key is a 400 here, distinguished only by the reason.
  if (details.some((detail) => readString(detail['reason'])?.startsWith('API_KEY_'))) return 'authentication';
  if (code === 402) return 'billing';
  if (CONTEXT_TEXT.test(text) && (code === 400 || code === 413)) return 'context_length';
  if (code === 413) return 'request_over_limit';
  const byName = name !== undefined && Object.hasOwn(CLASS_BY_STATUS, name) ? CLASS_BY_STATUS[name] : undefined;
  return byName ?? classOfStatus(name === 'NOT_FOUND' ? 404 : code, text);
}

function retryHint(details: readonly JsonObject[], headers: ResponseHeaders): number | undefined {
  const hints = details.flatMap((detail) => {
    const delay = readString(detail['retryDelay']);
    return delay && /^\d{1,6}(\.\d{1,9})?s$/.test(delay) ? [parseDuration(delay)] : [];
  });
  if (isDailyQuota(details)) hints.push(DAILY_QUOTA_WAIT_MS);
  return hints.length > 0 ? hints.reduce((longest, hint) => Math.max(longest, hint)) : readRetryAfter(headers);
}

/** Detected by the quota's name, or by help as the only detail: a per-minute quota also has a retry hint. */
function isDailyQuota(details: readonly JsonObject[]): boolean {
  const perDay = details.some((detail) =>
    readArray(detail['violations']).some((item) => /PerDay/.test(readString(readObject(item)['quotaId']) ?? '')),
  );
  const onlyHelp = details.length > 0 && details.every((detail) => readString(detail['@type'])?.endsWith('.Help'));
  return perDay || onlyHelp;
}

interface ErrorRow {
  /** Google's canonical status name. Source: https://cloud.google.com/apis/design/errors */
  readonly status: string;
  /** HTTP status, where this format differs from the gateway's. */
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

/** Message by which Google's clients recognize a prompt that is too long. */
const CONTEXT_WORDS = 'The input token count exceeds the maximum number of tokens allowed';

/** Writes an error as Google's APIs do; the gateway's error code is the reason in its details. */
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
