import {
  type FailureClass,
  type ResponseHeaders,
  readObject,
  readString,
  type UpstreamFailure,
} from '../../../core/index.ts';
import { readRetryAfter } from '../kit/index.ts';

/** Source: https://platform.claude.com/docs/en/api/errors */
const CLASS_BY_TYPE: Readonly<Record<string, FailureClass>> = Object.freeze({
  invalid_request_error: 'invalid_request',
  authentication_error: 'authentication',
  permission_error: 'authentication',
  billing_error: 'billing',
  not_found_error: 'model_not_found',
  conflict_error: 'upstream_error',
  request_too_large: 'context_length',
  rate_limit_error: 'rate_limit',
  api_error: 'upstream_error',
  timeout_error: 'timeout',
  overloaded_error: 'overloaded',
});

/** For responses without a type: a proxy in front of the vendor wrote them. */
const CLASS_BY_STATUS: Readonly<Record<number, FailureClass>> = Object.freeze({
  401: 'authentication',
  402: 'billing',
  403: 'authentication',
  404: 'model_not_found',
  408: 'timeout',
  413: 'context_length',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
  529: 'overloaded',
});

/** `error.details.error_code`, where it says more than the type. */
const CLASS_BY_CODE: Readonly<Record<string, FailureClass>> = Object.freeze({
  enforced_spend_limit_reached: 'billing',
  contract_spend_limit_reached: 'billing',
  organization_on_hold: 'billing',
  request_body_too_large_after_decoding: 'context_length',
});

/** The vendor has no type of its own for these; they come as `invalid_request_error`. */
const CLASS_BY_TEXT: readonly (readonly [RegExp, FailureClass])[] = Object.freeze([
  [/credit balance is too low/i, 'billing'],
  [/blocked by content filtering policy/i, 'content_filter'],
  [/prompt is too long|exceeds? (the )?context (window|limit)/i, 'context_length'],
]);

/** Classifies an error response, or the error inside an `error` event (its type counts then, not the 200 around it). */
export function anthropicFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const error = readObject(readObject(body)['error']);
  const text = readString(error['message']);
  const code = readString(readObject(error['details'])['error_code']) ?? '';
  const failureClass = classify(status, readString(error['type']) ?? '', code, text ?? '');
  const retryAfterMs = readRetryAfter(headers);
  return {
    class: failureClass,
    message: text ?? `The provider answered with status ${status}.`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

function classify(status: number, type: string, code: string, text: string): FailureClass {
  if (Object.hasOwn(CLASS_BY_CODE, code)) return CLASS_BY_CODE[code] ?? 'billing';
  const byType = Object.hasOwn(CLASS_BY_TYPE, type) ? CLASS_BY_TYPE[type] : undefined;
  if (byType === 'invalid_request') return CLASS_BY_TEXT.find(([words]) => words.test(text))?.[1] ?? byType;
  if (byType) return byType;
  return CLASS_BY_STATUS[status] ?? (status >= 400 && status < 500 ? 'invalid_request' : 'upstream_error');
}
