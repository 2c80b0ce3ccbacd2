import type { Ledger, Log } from '../../../core/index.ts';

/** The time that reservations expire by, in Unix milliseconds: that of the store where it has a clock of its own. */
export interface LedgerClock {
  now(): number;
  /** Compares with the store's clock. Rejects when the store does not answer. */
  adjust(): Promise<void>;
}

/** How far a machine's clock may be from the store's before its operator is told. */
const TOLD_MS = 30_000;

/**
 * Makes a clock that does not jump when somebody sets that of the machine: a call must not look forgotten because of it.
 * The machine's clock counts only at the start, and for stores without one of their own.
 */
export function createLedgerClock(ledger: Pick<Ledger, 'clock'>, log: Log): LedgerClock {
  let offsetMs = Date.now() - performance.now();
  let isTold = false;
  const now = (): number => Math.round(performance.now() + offsetMs);
  return {
    now,
    async adjust() {
      if (!ledger.clock) return;
      const startedMs = performance.now();
      const storeMs = await ledger.clock();
      // The store read its clock somewhere between the request and the response.
      offsetMs = storeMs - (startedMs + performance.now()) / 2;
      const aheadMs = Date.now() - now();
      if (!isTold && Math.abs(aheadMs) > TOLD_MS)
        log.warn(
          { ahead_s: Math.round(aheadMs / 1000) },
          'the clock of this machine differs from that of the store: set it right (NTP), or limits, expiries and days of usage are wrong by as much',
        );
      isTold = Math.abs(aheadMs) > TOLD_MS;
    },
  };
}
