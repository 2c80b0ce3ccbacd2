import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { isGatewayError, type Log, type Store } from '../../../contract/index.ts';
import { asUnavailable } from './failure.ts';
import type { FailureWatcher } from './timed.ts';

/** Writes that calls need. If one fails, a trial shows if the store is the cause, or only a contended account. */
const WRITES = /^(?:ledger\.(?:reserve|settle|release|credit)|documents\.set|counters\.(?:take|lease))$/;

/**
 * Time that a successful trial stays valid, minimum interval between trials, and lifetime of the written trial
 * document.
 */
const FRESH_MS = 10_000;
const RETRY_MS = 1_000;
const TRIAL_TTL_MS = 60_000;

/** As much as a call writes, so a disk with room for it has room for a call. Random, because stores compress. */
const TRIAL_BYTES = 3_072;
const TRIALS_AT_START = 3;

/** Write watch of a store. */
interface WatchedWrites {
  readonly onFailure: FailureWatcher;
  /** Adds `begin`, and includes writes in `health`. */
  over(store: Store): Store;
}

/** Watches the results of a store's writes. */
export function watchWrites(log: Log | undefined): WatchedWrites {
  let watch: WriteWatch | undefined;
  return {
    onFailure: (operation, error) => void (WRITES.test(operation) && watch?.note(error)),
    over(store) {
      const writes = new WriteWatch(store, log);
      watch = writes;
      return {
        ...store,
        begin: () => writes.begin(),
        health: () => writes.check(),
        close: () => {
          writes.close();
          return store.close();
        },
      };
    },
  };
}

/**
 * Checks that a store accepts writes. Runs a trial write after a failed write of a call, or when the last trial is old.
 */
class WriteWatch {
  readonly #store: Store;
  readonly #log: Log | undefined;
  /** Error of the last trial; undefined after success. */
  #failure: unknown;
  #triedMs = Number.NEGATIVE_INFINITY;
  /** A write has failed since the last trial began. */
  #hasFailed = false;
  #trial: Promise<void> | undefined;
  #isClosed = false;

  constructor(store: Store, log: Log | undefined) {
    this.#store = store;
    this.#log = log;
  }

  /** Tries several times: another process may have kept the store busy. */
  async begin(): Promise<void> {
    for (let left = TRIALS_AT_START; await this.#isReachable(); left -= 1) {
      const failure = await this.#write().catch((error: unknown) =>
        asUnavailable('The store does not accept writes.', error),
      );
      if (failure === undefined) return;
      if (left === 1) throw failure;
      await pause(RETRY_MS);
    }
  }

  async check(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await this.#store.health();
    const isFresh = performance.now() - this.#triedMs < FRESH_MS;
    if (this.#trial || this.#hasFailed || !isFresh) await this.#try();
  }

  /** Records a failed write of a call, except for errors that the caller caused. */
  note(error: unknown): void {
    if (isGatewayError(error) && error.code !== 'store_unavailable') return;
    this.#hasFailed = true;
    if (this.#failure !== undefined || performance.now() - this.#triedMs < RETRY_MS) return;
    // `check` reports the result.
    this.#try().catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
  }

  #isReachable(): Promise<boolean> {
    return this.#store.health().then(yes, no);
  }

  /** Runs one trial for all concurrent checks. After a failure, trials repeat until one succeeds. */
  #try(): Promise<void> {
    this.#trial ??= this.#write()
      .catch((error: unknown) => {
        this.#failure = asUnavailable('The store does not accept writes.', error);
        this.#log?.error(
          { store: this.#store.kind, err: error },
          'the store rejects writes; this gateway is not ready until it accepts them',
        );
        void this.#recover();
        throw this.#failure;
      })
      .finally(() => {
        this.#trial = undefined;
      });
    return this.#trial;
  }

  async #write(): Promise<void> {
    const documents = this.#store.keyv<string>('core.trial');
    const key = randomUUID();
    this.#triedMs = performance.now();
    this.#hasFailed = false;
    await documents.set(key, randomBytes(TRIAL_BYTES).toString('base64'), TRIAL_TTL_MS);
    await documents.delete(key);
  }

  async #recover(): Promise<void> {
    for (;;) {
      await pause(RETRY_MS, undefined, { ref: false });
      if (this.#isClosed) return;
      const isWell = (await this.#isReachable()) && (await this.#write().then(yes, no));
      if (!isWell) continue;
      this.#failure = undefined;
      this.#log?.info({ store: this.#store.kind }, 'the store accepts writes again');
      return;
    }
  }
}

const yes = (): boolean => true;
const no = (): boolean => false;
