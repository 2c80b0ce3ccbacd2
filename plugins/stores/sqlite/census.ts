import type { Database } from './database.ts';
import { isBusy } from './database.ts';

/**
 * Who has the store open, by locks on an empty file: the operating system drops them when a process ends, however it
 * ends. One process that is alone holds the file exclusively; several hold it together.
 */
export interface Census {
  /** Takes the file for this process alone; false when somebody else holds it. */
  takeAlone(): boolean;
  /** Takes or keeps the file together with others; false while somebody holds it alone. */
  takeTogether(): boolean;
  /** Asks whoever is alone to share; they notice within {@link NOTICE_MS}. */
  ask(): void;
  /** Whether somebody asked since the last call. */
  wasAsked(): boolean;
  /** Gives the file back, however it is held. */
  leave(): void;
  close(): void;
}

/** How often a process that is alone looks whether somebody asked. */
export const NOTICE_MS = 100;

/** The number that grows whenever somebody asks to share. */
const ASKED = 'tollgate:asked-to-share';

export function createCensus(lock: Database, database: Database): Census {
  const version = database.prepare('PRAGMA data_version');
  const asked = database.prepare('SELECT value FROM numbers WHERE key = ?');
  const raise = database.prepare(
    'INSERT INTO numbers (key, value) VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1',
  );
  const readAsked = (): number => Number(asked.get(ASKED)?.['value'] ?? 0);
  let seenVersion: unknown;
  let seenAsked = 0;

  const leave = (): void => {
    try {
      lock.exec('ROLLBACK');
    } catch {
      // Nothing was held.
    }
  };

  const tryLock = (...statements: readonly string[]): boolean => {
    leave();
    try {
      for (const sql of statements) lock.exec(sql);
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  };

  return {
    takeAlone: () => {
      if (!tryLock('BEGIN EXCLUSIVE')) return false;
      seenVersion = version.get()?.['data_version'];
      seenAsked = readAsked();
      return true;
    },
    // Reading anything takes the shared lock, and the open transaction keeps it.
    takeTogether: () => tryLock('BEGIN', 'SELECT count(*) FROM sqlite_schema'),
    ask: () => void raise.run(ASKED),
    wasAsked: () => {
      // Costs a microsecond: the version changes only when another process has written something.
      const now = version.get()?.['data_version'];
      if (now === seenVersion) return false;
      seenVersion = now;
      return readAsked() !== seenAsked;
    },
    leave,
    close: () => lock.close(),
  };
}
