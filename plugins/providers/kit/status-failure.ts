import type { FailureClass, ResponseHeaders, UpstreamFailure } from '../../../core/index.ts';
import { readRetryAfter } from './retry-after.ts';

const CLASS_BY_STATUS: Readonly<Record<number, FailureClass>> = Object.freeze({
  401: 'authentication',
  402: 'billing',
  403: 'authentication',
  404: 'model_not_found',
  408: 'timeout',
  425: 'overloaded',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
  529: 'overloaded',
});

/**
 * What an error status means where the vendor tells nothing better. `better` is what its own error codes say and wins.
 */
export function failureOfStatus(
  status: number,
  message: string,
  headers: ResponseHeaders,
  better: Partial<UpstreamFailure> = {},
): UpstreamFailure {
  // Redirects are never followed: one is an error on the vendor's side, not of the request.
  const fallback = status >= 400 && status < 500 ? 'invalid_request' : 'upstream_error';
  const retryAfterMs = readRetryAfter(headers);
  return {
    class: CLASS_BY_STATUS[status] ?? fallback,
    message,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...better,
  };
}
