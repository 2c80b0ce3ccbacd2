import { type CounterState, type Counters, createLocalCounters, type LocalCounters } from '../../../core/index.ts';
import { storeUnavailable } from '../parts/failure.ts';
import { storeKey } from '../parts/key.ts';
import { type Census, NOTICE_MS } from './census.ts';
import type { Database } from './database.ts';
import { createSharedCounters } from './shared-counters.ts';
import type { Writer } from './writer.ts';

export interface SqliteCounters extends Counters {
  /** Hands the counters over, so that the next start goes on with them. */
  close(): Promise<void>;
}

/** How long a process waits at its first count for another one to share. */
const JOIN_MS = 1000;
/** How often a process that shares looks whether it is alone by now. */
const RETURN_MS = 30_000;

/**
 * Counters of a store that one process or several have open. Windows and leases live for a minute and need no disk: while
 * one process is alone it keeps them in its memory, where they cost a microsecond instead of a commit; as soon as
 * another one counts, they move to the tables and both count there. Every move happens inside a write transaction, so
 * that two processes never move at once and no count falls between. Numbers are always in the tables.
 */
export function createSqliteCounters(
  database: Database,
  writer: Writer,
  openCensus: () => Promise<Census>,
  returnMs = RETURN_MS,
): SqliteCounters {
  const shared = createSharedCounters(database, writer);
  const tables = createCounterTables(database);
  let census: Census | undefined;
  let alone: LocalCounters | undefined;
  /** Where to count; undefined while that is being found out. */
  let current: Counters | undefined;
  let joining: Promise<Counters> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const watch = (everyMs: number, look: () => void): void => {
    clearInterval(timer);
    timer = setInterval(look, everyMs);
    timer.unref();
  };

  /** Finds out whether this process is alone; in a transaction, behind all counts that are queued. */
  const attempt = (of: Census): void => {
    if (of.takeAlone()) {
      alone = createLocalCounters();
      alone.load(tables.take(Date.now()));
      watch(NOTICE_MS, () => {
        if (of.wasAsked()) writer.write(() => share(of)).catch(() => undefined);
      });
      current = alone;
    } else if (of.takeTogether()) {
      countTogether();
    } else {
      of.ask();
    }
  };

  const countTogether = (): void => {
    current = shared;
    watch(returnMs, () => {
      current = undefined;
      ready().catch(() => undefined);
    });
  };

  const share = (of: Census): void => {
    if (!alone) return;
    tables.put(alone.dump());
    of.takeTogether();
    alone = undefined;
    countTogether();
  };

  const join = async (): Promise<Counters> => {
    census ??= await openCensus();
    const of = census;
    const deadline = performance.now() + JOIN_MS;
    while (performance.now() < deadline) {
      await writer.write(() => attempt(of));
      if (current) return current;
      await new Promise((resolve) => setTimeout(resolve, NOTICE_MS / 4));
    }
    throw storeUnavailable('Another process has the sqlite store for itself and does not share its limits.');
  };

  const ready = (): Promise<Counters> => {
    joining ??= join().finally(() => {
      joining = undefined;
    });
    return joining;
  };

  const count = <T>(operation: (counters: Counters) => Promise<T>): Promise<T> =>
    current ? operation(current) : ready().then(operation);

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
    close: async () => {
      await joining?.catch(() => undefined);
      clearInterval(timer);
      const state = alone?.dump();
      alone = undefined;
      current = shared;
      if (state) await writer.write(() => tables.put(state)).catch(() => undefined);
      census?.close();
    },
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
