import type { LimitHold } from './limit-holds.ts';

/** The slots of running calls, renewed while their gateway lives, so that those of one that died are soon free. */
export interface Leases {
  add(callId: string, hold: LimitHold): void;
  remove(callId: string): void;
  /** Begins to renew; returns how to stop. */
  start(): () => void;
}

/** How many times a lease is renewed within its life. */
const RENEWALS = 3;

/** No call takes longer; a plugin that never reads its response to the end does not keep a slot for ever. */
const LONGEST_CALL_MS = 3_600_000;

export function createLeases(leaseMs: number): Leases {
  const held = new Map<string, { readonly since: number; readonly holds: LimitHold[] }>();
  const everyMs = leaseMs / RENEWALS;

  const renew = (): void => {
    const now = Date.now();
    for (const [callId, { since, holds }] of held) {
      if (now - since < everyMs) continue;
      if (now - since > LONGEST_CALL_MS) {
        held.delete(callId);
        continue;
      }
      for (const { counters, slots } of holds) {
        // One that could not be renewed is tried again next time; its call goes on.
        for (const { key, limit } of slots) counters.lease(key, callId, limit, leaseMs, now).catch(() => undefined);
      }
    }
  };

  return {
    add(callId, hold) {
      if (hold.slots.length === 0) return;
      const known = held.get(callId);
      if (known) known.holds.push(hold);
      else held.set(callId, { since: Date.now(), holds: [hold] });
    },
    remove: (callId) => void held.delete(callId),
    start() {
      const timer = setInterval(renew, everyMs);
      timer.unref();
      return () => clearInterval(timer);
    },
  };
}
