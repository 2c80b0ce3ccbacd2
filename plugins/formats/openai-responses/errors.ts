import type { ErrorCode, GatewayError } from '../../../contract/index.ts';

const prompt = 'invalid_prompt';
const server = 'server_error';
const limit = 'rate_limit_exceeded';
const overload = 'server_is_overloaded';

/**
 * `error.code` in `response.failed`, by the gateway's error code. OpenAI's SDKs and Codex decide by it whether to
 * retry.
 */
export const FAILED_CODE: Readonly<Record<ErrorCode, string>> = Object.freeze({
  invalid_json: prompt,
  invalid_request: prompt,
  ambiguous_credentials: prompt,
  context_length_exceeded: 'context_length_exceeded',
  content_filtered: prompt,
  previous_response_not_found: 'previous_response_not_found',
  missing_api_key: prompt,
  invalid_api_key: prompt,
  expired_api_key: prompt,
  revoked_api_key: prompt,
  invalid_token: prompt,
  insufficient_balance: 'insufficient_quota',
  permission_denied: prompt,
  model_not_allowed: prompt,
  unsupported_provider: prompt,
  unsupported_model: prompt,
  not_found: prompt,
  unknown_url: prompt,
  method_not_allowed: prompt,
  upgrade_required: prompt,
  request_timeout: server,
  conflict: prompt,
  precondition_failed: prompt,
  request_too_large: prompt,
  unsupported_media_type: prompt,
  headers_too_large: prompt,
  rate_limited: limit,
  upstream_rate_limited: limit,
  provider_overloaded: overload,
  overloaded: overload,
  provider_timeout: server,
  provider_unavailable: server,
  provider_invalid_response: server,
  store_unavailable: server,
  shutting_down: server,
  provider_not_configured: server,
  provider_auth_failed: server,
  provider_quota_exhausted: server,
  feature_disabled: server,
  internal_error: server,
});

/** `response.error` of a failed response. Codex reads the wait from the message. */
export function failedError({ code, message, retryAfterMs }: GatewayError): {
  readonly code: string;
  readonly message: string;
} {
  const failed = FAILED_CODE[code];
  const waits = failed === limit && retryAfterMs !== undefined;
  const wait = waits ? ` Please try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))}s.` : '';
  return { code: failed, message: message + wait };
}

/**
 * Event before `response.failed`, as OpenAI sends it. OpenAI's SDKs, and programs built on them, throw at its
 * `error`. With `response.failed` alone, LangChain and AI SDK 5 treat the partial output as complete.
 */
export function errorEvent(error: GatewayError): { readonly error: Readonly<Record<string, unknown>> } {
  return { error: { type: error.type, ...failedError(error), param: error.param ?? null } };
}
