import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { TraceContext } from '../contract/call.ts';
import type { HttpRequest } from '../contract/provider.ts';

/** `traceparent` of W3C Trace Context: version, trace id, parent id, flags. What a later version appends is not read. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const NO_ID = /^0+$/;

/** `tracestate` is passed on as it came, as far as W3C asks a system to carry it. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace that a request belongs to: the caller's, or a new one. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): TraceContext {
  const [, version, traceId = '', parentId = '', flags = '', more] =
    (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || [];
  if (NO_ID.test(traceId) || NO_ID.test(parentId) || traceId === '' || (version === '00' && more !== undefined))
    return { traceId: randomBytes(16).toString('hex') };
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? { state: tracestate } : {};
  return { traceId, parentId, isSampled, ...state };
}

/** The same request with the trace of a caller who sent one, unless a plugin has written its own. */
export function withTrace(request: HttpRequest, { traceId, parentId, isSampled, state }: TraceContext): HttpRequest {
  if (parentId === undefined || request.headers?.['traceparent'] !== undefined) return request;
  const traceparent = `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}`;
  const headers = { ...request.headers, traceparent, ...(state !== undefined && { tracestate: state }) };
  return { ...request, headers };
}
