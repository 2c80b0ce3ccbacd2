import { storeClosed, storeUnavailable } from '../kit/failure.ts';
import { type Database, isBusy, sqliteFailure } from './database.ts';

/** Runs changes, each whole or not at all, and answers once they are committed. */
export interface Writer {
  /**
   * Queues a change, which is synchronous and uses the database only. It runs in this tick's transaction; with `later`
   * it waits, at most {@link LATER_MS}, for the transaction of somebody who is in a hurry, and costs none of its own.
   * `committed` runs with the answer right after the commit, before anything else can.
   */
  write<T>(change: () => T, when?: 'soon' | 'later', committed?: (answer: T) => void): Promise<T>;
  /** Runs a query at once; it sees what is committed. */
  read<T>(query: () => T): Promise<T>;
  /** Runs a query that also sees what is queued. */
  readLatest<T>(query: () => T): Promise<T>;
  /** Commits what is queued, then refuses everything. */
  close(): Promise<void>;
}

interface Job {
  readonly change: () => unknown;
  readonly committed: ((answer: never) => void) | undefined;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  /** When it first found the lock taken; undefined for almost all. */
  busySince: number | undefined;
}

/** How long a change may wait for the lock of other processes. */
const BUSY_BOUND_MS = 1000;
/** How long a change that nobody waits for may wait for others. */
export const LATER_MS = 10;
/** How many changes may wait at once; more are refused, so that a stuck disk does not fill the memory. */
export const MAX_QUEUED = 10_000;
export const TOO_MANY = 'The sqlite store cannot keep up: too many changes wait.';

/**
 * Batches all changes of one turn of the event loop into one `BEGIN IMMEDIATE` transaction. A promise resolves after
 * the commit that holds its change. When one change of a batch fails, the batch is rolled back and every change runs
 * again in a transaction of its own, so that only the faulty one fails.
 */
export function createWriter(database: Database): Writer {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  let queue: Job[] = [];
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let drained: (() => void) | undefined;

  const schedule = (delayMs?: number): void => {
    if (delayMs === undefined) immediate ??= setImmediate(flush);
    else timer ??= setTimeout(flush, delayMs);
  };

  const transact = (jobs: readonly Job[]): unknown[] => {
    begin.run();
    try {
      const results = jobs.map((job) => job.change());
      commit.run();
      return results;
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // A full disk makes SQLite roll back by itself; then there is nothing left to roll back.
      }
      throw error;
    }
  };

  /** Runs jobs in one transaction; answers false when another process holds the lock. */
  const settle = (jobs: readonly Job[]): boolean => {
    try {
      const results = transact(jobs);
      for (const [index, job] of jobs.entries()) job.committed?.(results[index] as never);
      for (const [index, job] of jobs.entries()) job.resolve(results[index] as never);
    } catch (error) {
      if (isBusy(error)) return false;
      if (jobs.length > 1) settleInTurn(jobs);
      else jobs[0]?.reject(sqliteFailure(error));
    }
    return true;
  };

  const settleInTurn = (jobs: readonly Job[]): void => {
    for (const [index, job] of jobs.entries()) {
      if (settle([job])) continue;
      retry(jobs.slice(index));
      return;
    }
  };

  const retry = (jobs: readonly Job[]): void => {
    const now = performance.now();
    const patient: Job[] = [];
    for (const job of jobs) {
      job.busySince ??= now;
      if (now - job.busySince < BUSY_BOUND_MS) patient.push(job);
      else job.reject(storeUnavailable('The sqlite store is busy: another process holds its lock.'));
    }
    queue = [...patient, ...queue];
    if (queue.length > 0) schedule(1 + Math.random() * 9);
  };

  const flush = (): void => {
    clearImmediate(immediate);
    clearTimeout(timer);
    immediate = undefined;
    timer = undefined;
    const jobs = queue;
    queue = [];
    if (jobs.length > 0 && !settle(jobs)) retry(jobs);
    if (queue.length === 0) drained?.();
  };

  const write = <T>(change: () => T, when: 'soon' | 'later' = 'soon', committed?: (answer: T) => void): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (closed) return reject(storeClosed());
      if (queue.length >= MAX_QUEUED) {
        return reject(storeUnavailable(TOO_MANY));
      }
      queue.push({ change, committed, resolve, reject, busySince: undefined });
      // While another process holds the lock, the next attempt is scheduled already.
      if (when === 'soon' && queue[0]?.busySince === undefined) schedule();
      else schedule(LATER_MS);
    });

  const read = async <T>(query: () => T): Promise<T> => {
    if (closed) throw storeClosed();
    try {
      return query();
    } catch (error) {
      throw sqliteFailure(error);
    }
  };

  return {
    write,
    read,
    readLatest: (query) => (queue.length === 0 ? read(query) : write(query)),
    close: () =>
      new Promise<void>((resolve) => {
        closed = true;
        if (queue.length === 0) return resolve();
        drained = resolve;
        schedule();
      }),
  };
}
