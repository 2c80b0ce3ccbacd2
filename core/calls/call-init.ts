import type { CallContext } from '../contract/plugin.ts';
import type { CallDeps } from './call-deps.ts';
import type { CallInit } from './live-call.ts';

/** A plugin's call, as calls take it. One that belongs to nobody who could leave is cut when its generation closes. */
export function callInitOf(
  { closing }: Pick<CallDeps, 'closing'>,
  { principal, requestId, signal = closing, skip, tags, session, onOutcome }: CallContext,
): CallInit {
  return {
    principal,
    requestId,
    signal,
    ...(skip && { skip }),
    ...(tags && { tags }),
    ...(session !== undefined && { session }),
    ...(onOutcome && { onOutcome }),
  };
}
