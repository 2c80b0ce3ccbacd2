import { type Database, inTransaction } from './database.ts';

/** How long the right to index lasts without being renewed: a process that died gives it back by that. */
export const LEASE_MS = 60_000;

/** The right to change the index; one holder at a time over all processes. */
export interface Lease {
  /** Whether somebody else has it; reads only. */
  isTaken(now: number): boolean;
  /** Takes or renews it; false when another has it. */
  take(now: number): boolean;
  /** Runs a change in one transaction that holds the lease too; throws {@link LeaseLost} when another took it. */
  write<T>(change: () => T): T;
  /** Gives it back, when it is held. */
  release(): void;
}

/** Another process indexes now: what this one was about to write is not written. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

export function createLease(database: Database, holder: string): Lease {
  const read = database.prepare("SELECT value FROM facts WHERE name = 'indexer'");
  const put = database.prepare("INSERT OR REPLACE INTO facts VALUES ('indexer', ?)");
  const isTaken = (now: number): boolean => {
    const value = read.get()?.['value'];
    if (typeof value !== 'string') return false;
    const held = JSON.parse(value) as { readonly holder: string; readonly until: number };
    return held.holder !== holder && held.until > now;
  };
  const renew = (now: number): boolean => {
    if (isTaken(now)) return false;
    put.run(JSON.stringify({ holder, until: now + LEASE_MS }));
    return true;
  };
  return {
    isTaken,
    take: (now) => !isTaken(now) && inTransaction(database, () => renew(now)),
    write: (change) =>
      inTransaction(database, () => {
        if (!renew(Date.now())) throw new LeaseLost('another process indexes this folder now');
        return change();
      }),
    release() {
      inTransaction(database, () => {
        if (!isTaken(Date.now())) put.run(JSON.stringify({ holder: '', until: 0 }));
      });
    },
  };
}
