import type { CallContext } from '../contract/plugin.ts';
import type { CallInit } from './live-call.ts';

/** A plugin's call, as calls take it. */
export function callInitOf({ principal, requestId, signal, skip, tags, session, onOutcome }: CallContext): CallInit {
  return {
    principal,
    requestId,
    signal: signal ?? new AbortController().signal,
    ...(skip && { skip }),
    ...(tags && { tags }),
    ...(session !== undefined && { session }),
    ...(onOutcome && { onOutcome }),
  };
}
