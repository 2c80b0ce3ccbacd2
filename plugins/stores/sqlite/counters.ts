import { type CounterState, type Counters, createLocalCounters, type LocalCounters } from '../../../core/index.ts';
import { storeKey } from '../kit/key.ts';
import type { Database } from './database.ts';
import type { Presence } from './presence.ts';
import { createSharedCounters } from './shared-counters.ts';
import type { Writer } from './writer.ts';

/**
 * Counters of a store that one process or several have open. Windows and leases live for a minute and need no disk: while
 * one process is alone it keeps them in its memory, where they cost a microsecond instead of a commit; as soon as
 * another one comes, they move to the tables and both count there. Numbers are always in the tables.
 */
export function createSqliteCounters(database: Database, writer: Writer, presence: Presence): Counters {
  const shared = createSharedCounters(database, writer);
  const tables = createCounterTables(database);
  let alone: LocalCounters | undefined;

  presence.add({
    moveIn: (isAlone) => {
      const state = isAlone ? tables.take(Date.now()) : undefined;
      return () => {
        alone = state && createLocalCounters();
        if (state) alone?.load(state);
      };
    },
    moveOut: () => {
      if (alone) tables.put(alone.dump());
      return () => {
        alone = undefined;
      };
    },
  });

  const count = <T>(operation: (counters: Counters) => Promise<T>): Promise<T> =>
    presence.run(() => operation(alone ?? shared));

  return {
    take: (windows, now) => {
      const keyed = windows.map((window) => ({ ...window, key: storeKey(window.key) }));
      return count((counters) => counters.take(keyed, now));
    },
    adjust: (key, windowMs, delta, now) => count((counters) => counters.adjust(storeKey(key), windowMs, delta, now)),
    lease: (key, id, limit, ttlMs, now) =>
      count((counters) => counters.lease(storeKey(key), storeKey(id), limit, ttlMs, now)),
    release: (key, id) => count((counters) => counters.release(storeKey(key), storeKey(id))),
    next: (key, by) => shared.next(storeKey(key), by),
  };
}

/** Reads and writes all windows and leases at once. */
function createCounterTables(database: Database) {
  const windows = database.prepare('SELECT key, used, resets_at FROM windows WHERE resets_at > ?');
  const leases = database.prepare('SELECT key, id, expires_at FROM leases WHERE expires_at > ?');
  const putWindow = database.prepare('INSERT OR REPLACE INTO windows (key, used, resets_at) VALUES (?, ?, ?)');
  const putLease = database.prepare('INSERT OR REPLACE INTO leases (key, id, expires_at) VALUES (?, ?, ?)');
  return {
    /** Takes everything that is not over out of the tables. */
    take: (now: number): CounterState => {
      const state = {
        windows: windows
          .all(now)
          .map((row) => [String(row['key']), Number(row['used']), Number(row['resets_at'])] as const),
        leases: leases
          .all(now)
          .map((row) => [String(row['key']), String(row['id']), Number(row['expires_at'])] as const),
      };
      database.exec('DELETE FROM windows; DELETE FROM leases');
      return state;
    },
    put: (state: CounterState): void => {
      for (const row of state.windows) putWindow.run(...row);
      for (const row of state.leases) putLease.run(...row);
    },
  };
}
