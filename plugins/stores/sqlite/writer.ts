import type { StoreWatcher } from '../../../contract/index.ts';
import { storeClosed, storeUnavailable } from '../kit/failure.ts';
import type { FailureWatcher } from '../kit/timed.ts';
import { type Database, isBusy, isDamage, type Statement, sqliteFailure } from './driver.ts';

interface Job {
  readonly operation: string;
  /** Time of the request, to measure its duration. */
  readonly startedMs: number;
  readonly change: () => unknown;
  /** The job changes nothing, and only waits for the changes before it. */
  readonly isQuery: boolean;
  /** Result of the change, for after the commit. */
  result: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Time when it first found the lock taken by another process; undefined in almost all cases. */
  busySince: number | undefined;
}

/** Maximum time that a change waits for the lock of other processes. */
const BUSY_BOUND_MS = 1000;
/** Maximum pause before the next attempt to get the lock. */
const BUSY_PAUSE_MS = 10;
/** Time between two commits under load, so that more changes share the second. */
const SHARED_COMMIT_MS = 2;
/** Maximum number of waiting changes. Further ones are rejected, so that a hanging disk does not fill the memory. */
const MAX_QUEUED = 10_000;

/**
 * Runs all changes of one event loop turn in one `BEGIN IMMEDIATE` transaction, each completely or not at all. Under
 * load, a transaction also has the changes of turns within 2 ms after the previous one. A promise resolves after the
 * commit of its change.
 */
export class Writer {
  readonly #file: string;
  readonly #observe: StoreWatcher;
  readonly #onFailure: FailureWatcher | undefined;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  #queue: Job[] = [];
  #isScheduled = false;
  #isClosed = false;
  readonly #onCommit: (() => void)[] = [];
  readonly #onRollback: (() => void)[] = [];
  #damage: unknown;
  #hasLoad = (): boolean => false;
  #committedMs = 0;

  /**
   * `file` appears in errors for the operator. `observe` gets the duration of each named operation, `onFailure` the
   * error of a failed one.
   */
  constructor(database: Database, file: string, observe: StoreWatcher = () => undefined, onFailure?: FailureWatcher) {
    this.#file = file;
    this.#observe = observe;
    this.#onFailure = onFailure;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#rollback = database.prepare('ROLLBACK');
  }

  /** First error that no later operation can fix: damaged pages. Undefined without one. */
  get damage(): unknown {
    return this.#damage;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Changes wait for their commit. */
  get hasQueued(): boolean {
    return this.#queue.length > 0;
  }

  /** `hasLoad` returns true if so many calls run concurrently that shared commits are worth their delay. */
  useLoad(hasLoad: () => boolean): void {
    this.#hasLoad = hasLoad;
  }

  /** Calls `listener` at the end of each transaction, as part of it. */
  onCommit(listener: () => void): void {
    this.#onCommit.push(listener);
  }

  /** Calls `listener` after changes were rolled back. Its cached rows may never have existed. */
  onRollback(listener: () => void): void {
    this.#onRollback.push(listener);
  }

  /**
   * Queues a change. It must be synchronous and use only the database, because it may run more than once before its
   * commit.
   */
  write<T>(operation: string, change: () => T, isQuery = false): Promise<T> {
    if (this.#isClosed) return this.#refuse(operation, storeClosed());
    if (this.#queue.length >= MAX_QUEUED)
      return this.#refuse(operation, storeUnavailable('The sqlite store is overloaded: too many changes are queued.'));
    return this.#add(operation, change, isQuery);
  }

  /** Runs a query at once, on committed data. */
  read<T>(operation: string, query: () => T): Promise<T> {
    if (this.#isClosed) return this.#refuse(operation, storeClosed());
    const startedMs = performance.now();
    try {
      const result = query();
      this.#observe(operation, performance.now() - startedMs, true);
      return Promise.resolve(result);
    } catch (error) {
      return this.#refuse(operation, sqliteFailure(error, this.#file), startedMs);
    }
  }

  /**
   * Runs a query that also sees queued changes. If another process holds the lock for too long, the changes are
   * rejected, and the query still returns.
   */
  readLatest<T>(operation: string, query: () => T): Promise<T> {
    return this.#queue.length === 0 ? this.read(operation, query) : this.write(operation, query, true);
  }

  #refuse(operation: string, error: unknown, startedMs = performance.now()): Promise<never> {
    this.#recordFailure(operation, startedMs, error);
    return Promise.reject(error as Error);
  }

  /** Commits queued changes, then rejects all operations. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // Jobs end in the order they were added, so this one ends last; its error does not matter here.
    if (this.#queue.length > 0) await this.#add('store.close', () => undefined).catch(() => undefined);
  }

  #add<T>(operation: string, change: () => T, isQuery = false): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      const startedMs = performance.now();
      const job = { operation, startedMs, change, isQuery, result: undefined, resolve, reject, busySince: undefined };
      this.#queue.push(job);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      const dueMs = this.#hasLoad() && !this.#isClosed ? this.#committedMs + SHARED_COMMIT_MS - startedMs : 0;
      // The transaction includes changes of requests that have arrived meanwhile.
      if (dueMs > 0) setTimeout(setImmediate, Math.ceil(dueMs), this.#flush);
      else setImmediate(this.#flush);
    }) as Promise<T>;
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    const jobs = this.#queue;
    this.#queue = [];
    const busy = this.#settle(jobs);
    if (busy.length > 0) this.#retryLater(busy);
  };

  /**
   * Runs jobs in one transaction. If one fails, runs each in its own transaction, so that only the failing one is
   * rejected. Returns the jobs that found the lock taken.
   */
  #settle(jobs: readonly Job[]): readonly Job[] {
    try {
      this.#begin.run();
      try {
        for (const job of jobs) job.result = job.change();
        for (const listener of this.#onCommit) listener();
        this.#commit.run();
      } catch (error) {
        this.#undo();
        throw error;
      }
    } catch (error) {
      if (isBusy(error)) return jobs;
      if (jobs.length > 1) return this.#settleEach(jobs);
      for (const job of jobs) this.#fail(job, sqliteFailure(error, this.#file));
      return [];
    }
    const now = performance.now();
    this.#committedMs = now;
    for (const { operation, startedMs, resolve, result } of jobs) {
      this.#observe(operation, now - startedMs, true);
      resolve(result);
    }
    return [];
  }

  /** Runs a query outside of a transaction. */
  #query(job: Job): void {
    try {
      job.resolve(job.change());
      this.#observe(job.operation, performance.now() - job.startedMs, true);
    } catch (error) {
      this.#fail(job, sqliteFailure(error, this.#file));
    }
  }

  #settleEach(jobs: readonly Job[]): readonly Job[] {
    for (const [index, job] of jobs.entries()) if (this.#settle([job]).length > 0) return jobs.slice(index);
    return [];
  }

  #fail({ operation, startedMs, reject }: Job, error: unknown): void {
    this.#recordFailure(operation, startedMs, error);
    reject(error);
  }

  #recordFailure(operation: string, startedMs: number, error: unknown): void {
    if (isDamage(error)) this.#damage ??= error;
    this.#observe(operation, performance.now() - startedMs, false);
    this.#onFailure?.(operation, error);
  }

  #undo(): void {
    for (const listener of this.#onRollback) listener();
    try {
      this.#rollback.run();
    } catch {
      // On a full disk, SQLite has already rolled back itself.
    }
  }

  /** Returns jobs to the front of the queue, except those that have waited too long. */
  #retryLater(jobs: readonly Job[]): void {
    const now = performance.now();
    const waiting: Job[] = [];
    for (const job of jobs) {
      job.busySince ??= now;
      if (now - job.busySince < BUSY_BOUND_MS) waiting.push(job);
      // All earlier changes are committed or rejected, so the committed data is the latest.
      else if (job.isQuery) this.#query(job);
      else this.#fail(job, storeUnavailable('The sqlite store is busy: another process holds its lock.'));
    }
    if (waiting.length === 0) return;
    this.#queue = [...waiting, ...this.#queue];
    this.#isScheduled = true;
    setTimeout(this.#flush, 1 + Math.random() * (BUSY_PAUSE_MS - 1));
  }
}
