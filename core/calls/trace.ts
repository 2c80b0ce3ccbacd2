import type { IncomingHttpHeaders } from 'node:http';
import type { RequestOrigin, TraceContext } from '../../contract/call.ts';
import type { HttpRequest } from '../../contract/provider.ts';
import { randomText } from './ids.ts';

/** `traceparent` of W3C Trace Context: version, trace id, parent id, flags. Additions of later versions are ignored. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const NO_ID = /^0+$/;

/** `tracestate` is forwarded unchanged, up to the length that W3C requires. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Returns the trace of a request: the caller's, or a new one. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders, origin?: RequestOrigin): TraceContext {
  const [, version, traceId = '', parentId = '', flags = '', more] =
    (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || [];
  if (NO_ID.test(traceId) || NO_ID.test(parentId) || traceId === '' || (version === '00' && more !== undefined))
    return origin ? { traceId: randomText('hex'), origin } : { traceId: randomText('hex') };
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? { state: tracestate } : {};
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, ...(origin && { origin }), ...state };
}

/** Adds the caller's trace to a request, unless a plugin has set another one. */
export function withTrace(request: HttpRequest, { traceId, parentId, isSampled, state }: TraceContext): HttpRequest {
  if (parentId === undefined || request.headers?.['traceparent'] !== undefined) return request;
  const traceparent = `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}`;
  const headers = { ...request.headers, traceparent, ...(state !== undefined && { tracestate: state }) };
  return { ...request, headers };
}
