import {
  type FailureClass,
  isObject,
  type JsonObject,
  parseDuration,
  type ResponseHeaders,
  readArray,
  readObject,
  readString,
  type UpstreamFailure,
} from '../../../core/index.ts';
import { readRetryAfter } from '../kit/index.ts';

/** Google's canonical status names. Source: https://cloud.google.com/apis/design/errors */
const CLASS_BY_STATUS: Readonly<Record<string, FailureClass>> = Object.freeze({
  INVALID_ARGUMENT: 'invalid_request',
  OUT_OF_RANGE: 'invalid_request',
  // The region or the free tier: the operator's account has to change, not the request.
  FAILED_PRECONDITION: 'billing',
  UNAUTHENTICATED: 'authentication',
  PERMISSION_DENIED: 'authentication',
  NOT_FOUND: 'model_not_found',
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

/** For responses without a status name: a proxy's page, an empty body. */
const CLASS_BY_CODE: Readonly<Record<number, FailureClass>> = Object.freeze({
  401: 'authentication',
  402: 'billing',
  403: 'authentication',
  404: 'model_not_found',
  408: 'timeout',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
});

/** The vendor has no code of its own for this: "The input token count (…) exceeds the maximum number of tokens allowed". */
const CONTEXT_TEXT = /input token count .*exceeds the maximum|exceeds the maximum number of (input )?tokens/i;

/** A day's quota comes back at midnight in California; without a clock, an hour is as good as "not soon". */
const DAILY_QUOTA_WAIT_MS = 3_600_000;

/** Classifies an error response, or the error inside an event (its own code counts then, not the 200 around it). */
export function geminiFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  const error = readObject(readObject(Array.isArray(body) ? body[0] : body)['error']);
  const details = readArray(error['details']).filter(isObject);
  const code = typeof error['code'] === 'number' ? error['code'] : status;
  const text = readString(error['message']);
  const failureClass = classify(code, readString(error['status']), text ?? '', details);
  const retryAfterMs = failureClass === 'rate_limit' ? retryHint(details, headers) : readRetryAfter(headers);
  return {
    class: failureClass,
    message: text ?? `The provider answered with status ${code}.`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

function classify(code: number, name: string | undefined, text: string, details: readonly JsonObject[]): FailureClass {
  // A bad key is a 400 here, told apart by the reason only.
  if (details.some((detail) => readString(detail['reason'])?.startsWith('API_KEY_'))) return 'authentication';
  if (code === 402) return 'billing';
  if (CONTEXT_TEXT.test(text) && (code === 400 || code === 413)) return 'context_length';
  const byName = name !== undefined && Object.hasOwn(CLASS_BY_STATUS, name) ? CLASS_BY_STATUS[name] : undefined;
  if (byName) return byName;
  const byCode = CLASS_BY_CODE[code];
  if (byCode) return byCode;
  return code >= 400 && code < 499 ? 'invalid_request' : 'upstream_error';
}

function retryHint(details: readonly JsonObject[], headers: ResponseHeaders): number | undefined {
  const hints = details.flatMap((detail) => {
    const delay = readString(detail['retryDelay']);
    return delay && /^\d{1,6}(\.\d{1,9})?s$/.test(delay) ? [parseDuration(delay)] : [];
  });
  if (isDailyQuota(details)) hints.push(DAILY_QUOTA_WAIT_MS);
  return hints.length > 0 ? hints.reduce((longest, hint) => Math.max(longest, hint)) : readRetryAfter(headers);
}

/** Told by the quota's name, or by help alone where a minute's quota has a retry hint beside it. */
function isDailyQuota(details: readonly JsonObject[]): boolean {
  const perDay = details.some((detail) =>
    readArray(detail['violations']).some((item) => /PerDay/.test(readString(readObject(item)['quotaId']) ?? '')),
  );
  const onlyHelp = details.length > 0 && details.every((detail) => readString(detail['@type'])?.endsWith('.Help'));
  return perDay || onlyHelp;
}
