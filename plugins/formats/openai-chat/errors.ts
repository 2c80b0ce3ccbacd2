import {
  type FailureClass,
  isObject,
  type ResponseHeaders,
  readString,
  type UpstreamFailure,
} from '../../../contract/index.ts';
import { classOfStatus, retryHintOf } from '../kit/index.ts';
import type { ErrorRules, VendorError } from './types.ts';

/** Classes by code or type. `invalid_request_error` and the like are missing: some vendors use them for every error. */
const CODES: Readonly<Record<string, FailureClass>> = Object.freeze({
  invalid_api_key: 'authentication',
  unauthorized: 'authentication',
  authentication: 'authentication',
  authentication_error: 'authentication',
  insufficient_quota: 'billing',
  insufficient_balance: 'billing',
  billing_hard_limit_reached: 'billing',
  payment_required: 'billing',
  rate_limit_exceeded: 'rate_limit',
  rate_limit_error: 'rate_limit',
  rate_limited: 'rate_limit',
  overloaded: 'overloaded',
  overloaded_error: 'overloaded',
  provider_overloaded: 'overloaded',
  server_is_overloaded: 'overloaded',
  insufficient_system_resource: 'overloaded',
  context_length_exceeded: 'context_length',
  max_tokens_exceeded: 'context_length',
  token_limit_exceeded: 'context_length',
  request_too_large: 'request_over_limit',
  exceed_context_size_error: 'context_length',
  invalid_prompt: 'invalid_request',
  data_residency_mismatch: 'invalid_request',
  bio_policy: 'content_filter',
  image_content_policy_violation: 'content_filter',
  invalid_image: 'invalid_request',
  invalid_image_format: 'invalid_request',
  invalid_base64_image: 'invalid_request',
  invalid_image_url: 'invalid_request',
  invalid_image_mode: 'invalid_request',
  image_too_large: 'invalid_request',
  image_too_small: 'invalid_request',
  image_parse_error: 'invalid_request',
  image_file_too_large: 'invalid_request',
  image_file_not_found: 'invalid_request',
  unsupported_image_media_type: 'invalid_request',
  empty_image_file: 'invalid_request',
  failed_to_download_image: 'invalid_request',
  content_filter: 'content_filter',
  content_policy_violation: 'content_filter',
  responsibleaipolicyviolation: 'content_filter',
  moderation_blocked: 'content_filter',
  refusal: 'content_filter',
  model_not_found: 'model_not_found',
  unknown_model: 'model_not_found',
  invalid_model: 'model_not_found',
  deploymentnotfound: 'model_not_found',
  server: 'upstream_error',
  server_error: 'upstream_error',
  provider_unavailable: 'upstream_error',
  timeout: 'timeout',
});

/** Classes are read from text only here: no vendor but OpenAI has a code for a prompt that is too long. */
const CONTEXT_LENGTH: readonly RegExp[] = Object.freeze([
  /exceeds? the (available )?context (window|size)/i, // OpenAI, llama.cpp
  /prompt is too long/i, // Anthropic behind a relay
  /input token count .{0,40}exceeds the maximum/i, // Gemini behind a relay
  /maximum prompt length is \d+/i, // xAI
  /reduce the length of the messages/i, // Groq
  /maximum context length/i, // OpenRouter, Mistral, vLLM
  /longer than the model'?s context length/i, // Together
  /too large for model with/i, // Mistral
  /input is too long for requested model/i, // Bedrock behind a relay
  /range of input length should be/i, // Qwen
  /exceeded max context length/i, // Ollama
  /greater than the context length/i, // LM Studio
]);
const CONTEXT_STATUS: ReadonlySet<number> = new Set([400, 413, 422]);

/** Errors whose vendor code names a limit, a balance or a key. Only the message shows that the request is the cause. */
const ABOUT_REQUEST: readonly {
  readonly status: readonly number[];
  readonly text: RegExp;
  readonly is: FailureClass;
}[] = Object.freeze([
  { status: [402], text: /\bfewer max_tokens\b|\bcan only afford \d/i, is: 'request_over_limit' }, // OpenRouter
  { status: [413, 429], text: /^Request too large /i, is: 'request_over_limit' }, // OpenAI, Azure, Groq
  { status: [403], text: /\binput was flagged\b|\bflagged (?:by|as|for)\b/i, is: 'content_filter' }, // OpenRouter and others
]);

/** Returns true if a vendor lists reasons of its moderation, as OpenRouter does with the code for a rejected key. */
function isModerated({ fields }: VendorError): boolean {
  const metadata = isObject(fields['metadata']) ? fields['metadata'] : {};
  return Array.isArray(metadata['reasons']);
}

/** Class of an error response, its message and the time of a retry. */
export function classifyError(
  status: number,
  body: unknown,
  headers: ResponseHeaders,
  rules: ErrorRules = {},
): UpstreamFailure {
  const error = readVendorError(body) ?? { message: '', codes: [], fields: {} };
  const reported = status >= 400 ? status : (error.status ?? 500);
  const failureClass = classOf(error, reported, headers, rules);
  return {
    class: failureClass,
    message: error.message,
    ...(error.param !== undefined && { param: error.param }),
    ...retryHintOf(failureClass, headers, body),
  };
}

function classOf(error: VendorError, status: number, headers: ResponseHeaders, rules: ErrorRules): FailureClass {
  const own = rules.classify?.(error, status, headers);
  if (own) return own;
  const byText = rules.messages?.find((rule) => rule.status.includes(status) && rule.text.test(error.message));
  if (byText) return byText.is;
  if (status === 403 && isModerated(error)) return 'content_filter';
  const aboutRequest = ABOUT_REQUEST.find((rule) => rule.status.includes(status) && rule.text.test(error.message));
  if (aboutRequest) return aboutRequest.is;
  const byStatus = classOfStatus(status, error.message, headers);
  for (const table of [rules.codes ?? {}, CODES]) {
    const code = error.codes.find((name) => Object.hasOwn(table, name));
    const found = code === undefined ? undefined : table[code];
    // A status of overload is more exact than "server_error".
    if (found && !(code === 'server_error' && byStatus === 'overloaded')) return found;
  }
  if (CONTEXT_STATUS.has(status) && CONTEXT_LENGTH.some((pattern) => pattern.test(error.message))) {
    return 'context_length';
  }
  return byStatus;
}

/** Reads every error shape of this wire: `{error: {…}}`, `{error: "…"}`, unwrapped, FastAPI's `detail`, plain text. */
export function readVendorError(body: unknown): VendorError | undefined {
  if (Array.isArray(body)) return readVendorError(body[0]);
  if (typeof body === 'string') return body.trim() ? { message: plain(body), codes: [], fields: {} } : undefined;
  if (!isObject(body)) return undefined;
  const fields = isObject(body['error']) ? body['error'] : body;
  const nested = ['metadata', 'availability', 'innererror'].map((name) => fields[name]).filter(isObject);
  const names = [fields, ...nested].flatMap((source) => [
    source['code'],
    source['type'],
    source['error_type'],
    source['status'],
  ]);
  const param = readString(fields['param']) ?? location(fields['detail']);
  const status = [fields['code'], fields['http_status'], fields['status'], fields['raw_status_code']]
    .map((value) => (typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value))
    .find((value): value is number => typeof value === 'number' && value >= 400 && value <= 599);
  return {
    message: plain(messageOf(fields) ?? ''),
    codes: names.flatMap((name) => (typeof name === 'string' && name !== '' ? [name.toLowerCase()] : [])),
    ...(status !== undefined && { status }),
    ...(param !== undefined && { param }),
    fields,
  };
}

function messageOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { message, error, detail } = fields;
  if (typeof message === 'string' && message !== '') return message;
  if (typeof error === 'string' && error !== '') return error;
  if (typeof detail === 'string') return detail;
  if (Array.isArray(detail)) {
    return detail
      .filter(isObject)
      .map((found) => `${location([found]) ?? 'body'}: ${readString(found['msg']) ?? 'invalid'}`)
      .join('; ');
  }
  return isObject(message) ? JSON.stringify(message) : undefined;
}

/** FastAPI names the field as `["body", "seed"]`. */
function location(detail: unknown): string | undefined {
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined;
  const path = isObject(first) && Array.isArray(first['loc']) ? first['loc'] : [];
  const names = path.filter((part) => part !== 'body' && (typeof part === 'string' || typeof part === 'number'));
  return names.length > 0 ? names.join('.') : undefined;
}

/** Reduces a message to one line of at most 2,000 characters; an HTML page becomes empty. */
function plain(message: string): string {
  if (/^\s*<(!doctype|html|head|body)/i.test(message)) return '';
  return message.replace(/\s+/g, ' ').trim().slice(0, 2000);
}
