import {
  type ErrorCode,
  type FailureClass,
  type GatewayError,
  type ResponseHeaders,
  readObject,
  readString,
  type UpstreamFailure,
} from '../../../contract/index.ts';
import { classOfStatus, retryHintOf } from '../kit/index.ts';

interface ErrorRow {
  readonly type: string;
  /** HTTP status, where this format differs from the gateway's. */
  readonly status?: number;
}

const request: ErrorRow = { type: 'invalid_request_error' };
const authentication: ErrorRow = { type: 'authentication_error' };
const permission: ErrorRow = { type: 'permission_error' };
const missing: ErrorRow = { type: 'not_found_error' };
const limited: ErrorRow = { type: 'rate_limit_error' };
const overloaded: ErrorRow = { type: 'overloaded_error', status: 529 };
const server: ErrorRow = { type: 'api_error' };

/** Source: https://platform.claude.com/docs/en/api/errors */
export const MESSAGES_ERRORS: Readonly<Record<ErrorCode, ErrorRow>> = Object.freeze({
  invalid_json: request,
  invalid_request: request,
  context_length_exceeded: request,
  content_filtered: request,
  previous_response_not_found: request,
  ambiguous_credentials: request,
  missing_api_key: authentication,
  invalid_api_key: authentication,
  expired_api_key: authentication,
  revoked_api_key: authentication,
  invalid_token: authentication,
  insufficient_balance: { type: 'billing_error' },
  permission_denied: permission,
  model_not_allowed: permission,
  unsupported_provider: missing,
  unsupported_model: missing,
  not_found: missing,
  unknown_url: missing,
  method_not_allowed: request,
  request_timeout: request,
  conflict: { type: 'conflict_error' },
  precondition_failed: request,
  request_too_large: { type: 'request_too_large' },
  unsupported_media_type: request,
  upgrade_required: request,
  rate_limited: limited,
  upstream_rate_limited: limited,
  headers_too_large: request,
  internal_error: server,
  provider_not_configured: server,
  provider_unavailable: server,
  provider_overloaded: overloaded,
  provider_timeout: { type: 'timeout_error', status: 504 },
  provider_auth_failed: server,
  provider_quota_exhausted: server,
  provider_invalid_response: server,
  store_unavailable: server,
  overloaded,
  shutting_down: server,
  feature_disabled: server,
});

interface MessagesError {
  readonly body: {
    readonly type: 'error';
    readonly error: { readonly type: string; readonly message: string };
    readonly request_id: string;
  };
  readonly status?: number;
}

/** Converts an error to this format. */
export function messagesError(error: GatewayError, requestId: string): MessagesError {
  const { type, status } = MESSAGES_ERRORS[error.code];
  const message = error.code === 'context_length_exceeded' ? tooLong(error.message) : error.message;
  return {
    body: { type: 'error', error: { type, message }, request_id: requestId },
    ...(status !== undefined && { status }),
  };
}

const NATIVE_WORDS = /prompt is too long:|input length and `?max_tokens`? exceed context limit:/;
const NUMBER = String.raw`(\d[\d,]*)`;
/** Builds a pattern in which `N` matches a number. */
const read = ({ source }: RegExp): RegExp => new RegExp(source.replaceAll('N', NUMBER), 'i');

/** Patterns of provider messages with a token limit and the tokens used. */
const MAXIMUM: readonly RegExp[] = Object.freeze([
  read(/maximum (?:context|prompt|sequence|model) length (?:is|of) N/),
  read(/maximum (?:input )?(?:number of )?(?:input )?tokens(?: allowed)?\D{0,12}N/),
  read(/context (?:window|length|limit|size)\D{0,24}N/),
  read(/limit(?: of|:| is)? N/),
  read(/> N maximum/),
]);
const SPLIT = read(
  /N (?:tokens )?(?:in|of|from) the (?:messages|input|prompt)\D{1,12}N (?:tokens )?(?:in|of|for) the (?:completion|output)/,
);
const COUNT: readonly RegExp[] = Object.freeze([
  read(/(?:resulted in|requested|has|contains|have) (?:about )?N/),
  read(/token count(?: of)? \(?N/),
  read(/prompt contains (?:at least )?N/),
  read(/N (?:input |prompt )?tokens/),
]);

/**
 * Message by which clients of this format recognize a full context; some then compact it by the numbers in the
 * message.
 */
function tooLong(message: string): string {
  if (NATIVE_WORDS.test(message)) return message.slice(message.search(NATIVE_WORDS));
  const maximum = find(MAXIMUM, message);
  const split = SPLIT.exec(message);
  const [input, output] = [split?.[1], split?.[2]].map(plain);
  if (maximum && input && output && Number(input) <= Number(maximum))
    return `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${maximum}`;
  const rest = maximum ? message.replace(new RegExp(`${maximum}`), '') : message;
  const count = input ?? find(COUNT, rest);
  if (maximum && count) return `prompt is too long: ${count} tokens > ${maximum} maximum`;
  return `prompt is too long: ${message}`;
}

function find(patterns: readonly RegExp[], text: string): string | undefined {
  for (const pattern of patterns) {
    const found = plain(pattern.exec(text)?.[1]);
    if (found) return found;
  }
  return undefined;
}

const plain = (number: string | undefined): string | undefined => number?.replaceAll(',', '');

/** Source: https://platform.claude.com/docs/en/api/errors */
const CLASS_BY_TYPE: Readonly<Record<string, FailureClass>> = Object.freeze({
  invalid_request_error: 'invalid_request',
  authentication_error: 'authentication',
  permission_error: 'permission',
  billing_error: 'billing',
  conflict_error: 'upstream_error',
  request_too_large: 'request_over_limit',
  rate_limit_error: 'rate_limit',
  api_error: 'upstream_error',
  timeout_error: 'timeout',
  overloaded_error: 'overloaded',
});

/** Classes by `error.details.error_code`, where it is more exact than the type. */
const CLASS_BY_CODE: Readonly<Record<string, FailureClass>> = Object.freeze({
  enforced_spend_limit_reached: 'billing',
  contract_spend_limit_reached: 'billing',
  organization_on_hold: 'billing',
  request_body_too_large_after_decoding: 'request_over_limit',
});

/** The vendor has no error types for these; they arrive as `invalid_request_error`. */
const CLASS_BY_TEXT: readonly (readonly [RegExp, FailureClass])[] = Object.freeze([
  [/credit balance is too low/i, 'billing'],
  [/blocked by content filtering policy/i, 'content_filter'],
  [/prompt is too long|exceeds? (the )?context (window|limit)/i, 'context_length'],
]);

/** Classifies an error response, or the error in an `error` event, whose type overrides status 200. */
export function anthropicFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const error = readObject(readObject(body)['error']);
  const text = readString(error['message']);
  const code = readString(readObject(error['details'])['error_code']) ?? '';
  const failureClass = classify(status, readString(error['type']) ?? '', code, text ?? '', headers);
  return {
    class: failureClass,
    message: text ?? `The provider returned status ${status}.`,
    ...retryHintOf(failureClass, headers),
  };
}

function classify(status: number, type: string, code: string, text: string, headers: ResponseHeaders): FailureClass {
  if (Object.hasOwn(CLASS_BY_CODE, code)) return CLASS_BY_CODE[code] ?? 'billing';
  const byType = Object.hasOwn(CLASS_BY_TYPE, type) ? CLASS_BY_TYPE[type] : undefined;
  if (byType === 'invalid_request') return CLASS_BY_TEXT.find(([words]) => words.test(text))?.[1] ?? byType;
  if (byType) return byType;
  return classOfStatus(type === 'not_found_error' ? 404 : status, text, headers);
}

/** OpenAI's names with the vendor's sources, in order of preference. */
const SOURCES: readonly (readonly [string, readonly string[]])[] = Object.freeze([
  ['requests', ['requests']],
  ['tokens', ['tokens', 'input-tokens']],
]);

/**
 * Converts Anthropic's rate-limit headers to OpenAI's. The reset time becomes a duration relative to the response's
 * own `date`.
 */
export function anthropicRateLimits(headers: ResponseHeaders): Readonly<Record<string, string>> {
  const limits: Record<string, string> = {};
  for (const [name, sources] of SOURCES) {
    const source = sources.find((candidate) => headers[`anthropic-ratelimit-${candidate}-limit`] !== undefined);
    for (const what of ['limit', 'remaining', 'reset']) {
      const value = headers[`anthropic-ratelimit-${source}-${what}`];
      const shown = what === 'reset' ? duration(value, headers['date']) : value;
      if (shown !== undefined) limits[`x-ratelimit-${what}-${name}`] = shown;
    }
  }
  return limits;
}

function duration(reset: string | undefined, date: string | undefined): string | undefined {
  const ms = Date.parse(reset ?? '') - Date.parse(date ?? '');
  return Number.isFinite(ms) ? `${Math.max(0, Math.ceil(ms / 1000))}s` : undefined;
}
