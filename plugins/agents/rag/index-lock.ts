import { type Database, inTransaction } from './database.ts';

/** Lifetime of the lock without renewal, after which a crashed process has lost it. */
export const LOCK_MS = 60_000;

/** Lock for changing the index; one holder over all processes. */
export interface IndexLock {
  /** True if another process holds it; only reads. */
  isHeldElsewhere(now: number): boolean;
  /** Acquires or renews it; returns false if another process holds it. */
  acquire(now: number): boolean;
  /** Runs a change in a transaction that verifies the lock; throws {@link LockLost} if another process holds it. */
  write<T>(change: () => T): T;
  /** Releases it, if held. */
  release(): void;
}

/** Thrown if another process indexes now; pending changes are dropped. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

export function createIndexLock(database: Database, holder: string): IndexLock {
  const read = database.prepare("SELECT value FROM facts WHERE name = 'indexer'");
  const put = database.prepare("INSERT OR REPLACE INTO facts VALUES ('indexer', ?)");
  const isHeldElsewhere = (now: number): boolean => {
    const value = read.get()?.['value'];
    if (typeof value !== 'string') return false;
    const held = JSON.parse(value) as { readonly holder: string; readonly until: number };
    return held.holder !== holder && held.until > now;
  };
  const renew = (now: number): boolean => {
    if (isHeldElsewhere(now)) return false;
    put.run(JSON.stringify({ holder, until: now + LOCK_MS }));
    return true;
  };
  return {
    isHeldElsewhere,
    acquire: (now) => !isHeldElsewhere(now) && inTransaction(database, () => renew(now)),
    write: (change) =>
      inTransaction(database, () => {
        if (!renew(Date.now())) throw new LockLost('another process indexes this folder now');
        return change();
      }),
    release() {
      inTransaction(database, () => {
        if (!isHeldElsewhere(Date.now())) put.run(JSON.stringify({ holder: '', until: 0 }));
      });
    },
  };
}
