import { type Database, inTransaction } from './database.ts';

/** How long the lock lasts without being renewed: a process that died has lost it by then. */
export const LOCK_MS = 60_000;

/** The right to change the index; one holder at a time over all processes. */
export interface IndexLock {
  /** Whether another process has it; reads only. */
  isHeldElsewhere(now: number): boolean;
  /** Acquires or renews it; false when another process has it. */
  acquire(now: number): boolean;
  /** Runs a change in one transaction that holds the lock too; throws {@link LockLost} when another process has it. */
  write<T>(change: () => T): T;
  /** Releases it, when it is held. */
  release(): void;
}

/** Another process indexes now: what this one was about to write is not written. */
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
