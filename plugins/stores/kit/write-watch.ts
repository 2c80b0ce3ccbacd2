import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { isGatewayError, type Log, type Store } from '../../../contract/index.ts';
import { asUnavailable } from './failure.ts';
import type { FailureWatcher } from './timed.ts';

/** The operations that write and that calls need: when one fails, a trial finds out whether the store is why, or one account that many use. */
const WRITES = /^(?:ledger\.(?:reserve|settle|release|credit)|documents\.set|counters\.(?:take|lease))$/;

/** How long a trial proves that the store takes writes, how often one is made at most, and how long what it writes may stay. */
const FRESH_MS = 10_000;
const RETRY_MS = 1_000;
const TRIAL_TTL_MS = 60_000;

/** As much as a call writes, so that a disk with room for it has room for a call; random, since stores compress. */
const TRIAL_BYTES = 3_072;
const TRIALS_AT_START = 3;

/** What a store is made of that watches its writes. */
interface WatchedWrites {
  readonly onFailure: FailureWatcher;
  /** Adds `begin`, and makes `health` tell of writes too. */
  over(store: Store): Store;
}

/** Watches what becomes of a store's writes. */
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

/** Whether a store takes writes: by a write of its own, made when one of a call failed, or when none was made for a while. */
class WriteWatch {
  readonly #store: Store;
  readonly #log: Log | undefined;
  /** What the last trial failed with; undefined while they succeed. */
  #failure: unknown;
  #triedMs = Number.NEGATIVE_INFINITY;
  /** Whether a write failed since the last trial began. */
  #isDoubted = false;
  #trial: Promise<void> | undefined;
  #isClosed = false;

  constructor(store: Store, log: Log | undefined) {
    this.#store = store;
    this.#log = log;
  }

  /** Tries more than once: another process may have kept the store busy. */
  async begin(): Promise<void> {
    for (let left = TRIALS_AT_START; await this.#isThere(); left -= 1) {
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
    if (this.#trial || this.#isDoubted || !isFresh) await this.#try();
  }

  /** Notes a write of a call that failed: by the store, unless it says that the caller is why. */
  note(error: unknown): void {
    if (isGatewayError(error) && error.code !== 'store_unavailable') return;
    this.#isDoubted = true;
    if (this.#failure !== undefined || performance.now() - this.#triedMs < RETRY_MS) return;
    // What it finds is told by `check`.
    this.#try().catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
  }

  #isThere(): Promise<boolean> {
    return this.#store.health().then(yes, no);
  }

  /** One trial for all who want to know. When it fails, others are made until one succeeds. */
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
    this.#isDoubted = false;
    await documents.set(key, randomBytes(TRIAL_BYTES).toString('base64'), TRIAL_TTL_MS);
    await documents.delete(key);
  }

  async #recover(): Promise<void> {
    for (;;) {
      await pause(RETRY_MS, undefined, { ref: false });
      if (this.#isClosed) return;
      const isWell = (await this.#isThere()) && (await this.#write().then(yes, no));
      if (!isWell) continue;
      this.#failure = undefined;
      this.#log?.info({ store: this.#store.kind }, 'the store accepts writes again');
      return;
    }
  }
}

const yes = (): boolean => true;
const no = (): boolean => false;
