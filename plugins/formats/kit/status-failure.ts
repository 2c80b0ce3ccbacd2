import { type FailureClass, isObject, type ResponseHeaders, type UpstreamFailure } from '../../../contract/index.ts';

/** Classes by status, for every vendor whose own codes say nothing. Other 4xx concern the request, all others the vendor. */
const CLASS_BY_STATUS: Readonly<Record<number, FailureClass>> = Object.freeze({
  401: 'authentication',
  402: 'billing',
  403: 'permission',
  404: 'not_found',
  405: 'upstream_error',
  408: 'timeout',
  409: 'upstream_error',
  410: 'not_found',
  413: 'request_over_limit',
  424: 'upstream_error',
  425: 'overloaded',
  429: 'rate_limit',
  451: 'permission',
  498: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
  529: 'overloaded',
});

/** Words for a model in the message of a 404. Vendors also respond with 404 for paths, files and earlier responses. */
const ABOUT_MODEL = /\b(?:model|deployment|engine|endpoint)s?\b/i;

/** Errors of AWS about keys and signatures, which its header names on every wire: `InvalidSignatureException`, `ExpiredTokenException`. */
const ABOUT_AWS_KEY = /signature|token|client|requestexpired|optinrequired/i;

/** Class of an error status. `message`: the vendor's, which shows if a 404 is about the model. */
export function classOfStatus(status: number, message = '', headers: ResponseHeaders = {}): FailureClass {
  const known = CLASS_BY_STATUS[status];
  if (known === 'permission' && ABOUT_AWS_KEY.test(headers['x-amzn-errortype'] ?? '')) return 'authentication';
  if (known === 'not_found' && ABOUT_MODEL.test(message)) return 'model_not_found';
  // Redirects are never followed: a redirect is the vendor's error, not the request's.
  return known ?? (status >= 400 && status < 500 ? 'invalid_request' : 'upstream_error');
}

/** Failure for an error status. `better` comes from the vendor's own error codes and takes precedence. */
export function failureOfStatus(
  status: number,
  message: string,
  headers: ResponseHeaders,
  better: Partial<UpstreamFailure> = {},
): UpstreamFailure {
  const { class: failureClass = classOfStatus(status, message, headers) } = better;
  return { class: failureClass, message, ...retryHintOf(failureClass, headers), ...better };
}

/** Classes of failures that pass by themselves. */
const PASSING: ReadonlySet<FailureClass> = new Set(['rate_limit', 'overloaded']);

/** Time until a retry may succeed. Vendors send the reset of their limits with every error, also where none can. */
export function retryHintOf(
  failureClass: FailureClass,
  headers: ResponseHeaders,
  body?: unknown,
): Pick<UpstreamFailure, 'retryAfterMs'> {
  const retryAfterMs = PASSING.has(failureClass) ? readRetryAfter(headers, body) : undefined;
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** Longer hints are useless, and may be a date in other units. */
const MAX_MS = 24 * 3_600_000;

const GO_UNIT_MS: Readonly<Record<string, number>> = Object.freeze({
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000001,
});

/** Retry hints in messages, for vendors without another. Text gives a hint, never a class. */
const IN_WORDS: readonly RegExp[] = Object.freeze([
  /try again in ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)/i,
  /retry after (\d+(?:\.\d+)?) ?(?:s\b|seconds)/i,
]);

/**
 * Milliseconds until a retry may succeed. Sources: `retry-after-ms`, `retry-after` (seconds or a date), the body
 * (OpenRouter's `availability`, google.rpc's RetryInfo), the reset of an exhausted limit, or the message. Invalid
 * values, past times and more than a day are ignored.
 */
export function readRetryAfter(headers: ResponseHeaders, body?: unknown): number | undefined {
  return (
    bounded(number(headers['retry-after-ms'])) ??
    readSecondsOrDate(headers['retry-after'], headers['date']) ??
    readBodyHint(body) ??
    readReset(headers) ??
    readWords(body)
  );
}

/** Parses a Go duration such as `6m0s`, `7.66s`, `100ms` or `1h2m3s` to milliseconds. */
export function parseGoDuration(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|us|µs|ns|m|s))+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)/g)) {
    ms += Number(amount) * (GO_UNIT_MS[unit ?? ''] ?? 0);
  }
  return ms;
}

function readSecondsOrDate(value: string | undefined, date: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const seconds = number(value);
  if (seconds !== undefined) return bounded(seconds * 1000);
  const until = /[a-z]{3}/i.test(value) ? Date.parse(value) : Number.NaN;
  // Relative to the vendor's own clock if it sends one: this machine's clock may be wrong.
  const now = Date.parse(date ?? '') || Date.now();
  return Number.isFinite(until) ? bounded(until - now) : undefined;
}

function readBodyHint(body: unknown): number | undefined {
  const error = isObject(body) && isObject(body['error']) ? body['error'] : undefined;
  if (!error) return undefined;
  const availability = isObject(error['availability']) ? error['availability']['retry_after'] : undefined;
  if (typeof availability === 'number') return bounded(availability * 1000);
  const { details } = error;
  if (!Array.isArray(details)) return undefined;
  const info: unknown = details.find((detail) => isObject(detail) && typeof detail['retryDelay'] === 'string');
  return isObject(info) ? bounded(parseGoDuration(String(info['retryDelay']))) : undefined;
}

/** Reset of the exhausted limit; the sooner one if that is unknown. */
function readReset(headers: ResponseHeaders): number | undefined {
  const resets = ['requests', 'tokens'].flatMap((limit) => {
    const text = headers[`x-ratelimit-reset-${limit}`];
    const ms = text === undefined ? undefined : bounded(parseGoDuration(text.trim()));
    return ms === undefined ? [] : [{ ms, used: headers[`x-ratelimit-remaining-${limit}`]?.trim() === '0' }];
  });
  const used = resets.filter((reset) => reset.used);
  if (used.length > 0) return Math.max(...used.map(({ ms }) => ms));
  return resets.length > 0 ? Math.min(...resets.map(({ ms }) => ms)) : undefined;
}

function readWords(body: unknown): number | undefined {
  const error = isObject(body) ? (isObject(body['error']) ? body['error'] : body) : undefined;
  const message = error?.['message'];
  if (typeof message !== 'string') return undefined;
  for (const pattern of IN_WORDS) {
    const amount = pattern.exec(message.slice(0, 4000))?.[1];
    if (amount !== undefined) return bounded(parseGoDuration(amount) ?? Number(amount) * 1000);
  }
  return undefined;
}

function number(value: string | undefined): number | undefined {
  return value !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : undefined;
}

function bounded(ms: number | undefined): number | undefined {
  return ms !== undefined && Number.isFinite(ms) && ms >= 0 && ms <= MAX_MS ? Math.ceil(ms) : undefined;
}
