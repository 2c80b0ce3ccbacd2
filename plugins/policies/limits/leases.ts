import type { Taken } from './take.ts';

/** The places of running calls, renewed while their gateway lives, so that those of one that died are soon free. */
export interface Leases {
  hold(callId: string, taken: Taken): void;
  drop(callId: string): void;
  /** Begins to renew; answers how to stop. */
  start(): () => void;
}

/** How many times a lease is renewed within its life. */
const RENEWALS = 3;

/** No call takes longer; a plugin that never reads its answer to the end does not keep a place for ever. */
const LONGEST_CALL_MS = 3_600_000;

export function createLeases(leaseMs: number): Leases {
  const held = new Map<string, { readonly since: number; readonly taken: Taken[] }>();
  const everyMs = leaseMs / RENEWALS;

  const renew = (): void => {
    const now = Date.now();
    for (const [callId, { since, taken }] of held) {
      if (now - since < everyMs) continue;
      if (now - since > LONGEST_CALL_MS) {
        held.delete(callId);
        continue;
      }
      for (const { counters, places } of taken) {
        // One that could not be renewed is tried again next time; its call goes on.
        for (const { key, limit } of places) counters.lease(key, callId, limit, leaseMs, now).catch(() => undefined);
      }
    }
  };

  return {
    hold(callId, taken) {
      if (taken.places.length === 0) return;
      const known = held.get(callId);
      if (known) known.taken.push(taken);
      else held.set(callId, { since: Date.now(), taken: [taken] });
    },
    drop: (callId) => void held.delete(callId),
    start() {
      const timer = setInterval(renew, everyMs);
      timer.unref();
      return () => clearInterval(timer);
    },
  };
}
