import type { IncomingHttpHeaders } from 'node:http';
import type { CallInit } from '../calls/live-call.ts';

/** Coding clients each have a header of their own for the session, such as `x-<client>-session-id`. */
const SESSION = /^x-(?:[a-z0-9]+-)*session-id$/;

/** A longer one is no name of a session. */
const MAX_SESSION = 128;

/** What a caller says of its call in headers: words for the choice of a target, never for limits or money. */
export function callerHints(headers: IncomingHttpHeaders): Pick<CallInit, 'session' | 'isIdempotent'> {
  const name = 'x-session-id' in headers ? 'x-session-id' : Object.keys(headers).find((each) => SESSION.test(each));
  const session = name === undefined ? undefined : headers[name];
  const key = headers['idempotency-key'];
  return {
    ...(typeof session === 'string' && session !== '' && session.length <= MAX_SESSION && { session }),
    ...(typeof key === 'string' && key !== '' && { isIdempotent: true }),
  };
}
