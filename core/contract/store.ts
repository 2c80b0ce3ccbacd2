import type Keyv from 'keyv';
import type { Ledger } from './ledger.ts';

/**
 * A store opens two halves: documents (Keyv) and what must be atomic (ledger, sets, counters). Keyv alone loses
 * updates under parallel writers, so no balance, list or limit lives in it.
 *
 * Every method rejects with `GatewayError('store_unavailable')` when the store does not answer within its bound:
 * unknown is never reported as absent. All amounts are whole micro-dollars (1 USD = 1,000,000), all times are
 * Unix milliseconds unless a name says otherwise.
 */
export interface Store {
  /** A word for logs and `/readyz`, such as `sqlite`. Never a URL: those hold passwords. */
  readonly kind: string;
  /** True for a store that nobody else can open and that is gone with its process: commands beside a gateway refuse it. */
  readonly endsWithProcess?: boolean;
  /** Documents of one namespace, from a fixed list of names without `:`. The same name gives the same object. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  readonly ledger: Ledger;
  readonly sets: Sets;
  readonly counters: Counters;
  /** Resolves when the store answers. */
  health(): Promise<void>;
  close(): Promise<void>;
}

/** Sets of short strings, for indexes: a list inside a document would lose parallel additions. */
export interface Sets {
  /** Adds a member; answers `full`, and adds nothing, when the set already has `max` members. */
  add(set: string, member: string, max?: number): Promise<'added' | 'present' | 'full'>;
  remove(set: string, member: string): Promise<boolean>;
  has(set: string, member: string): Promise<boolean>;
  /** Members in ascending order, after `after`. */
  list(set: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]>;
  size(set: string): Promise<number>;
}

export interface Window {
  readonly key: string;
  readonly limit: number;
  readonly windowMs: number;
  /** How much this call takes: 1 for a request, the estimate for tokens. */
  readonly amount: number;
}

export interface WindowState {
  readonly remaining: number;
  /** Milliseconds until the window is empty again. */
  readonly resetMs: number;
}

/** Counters for limits, leases and versions, shared by all workers and nodes of a store. */
export interface Counters {
  /** Takes from all windows or from none. `refused` is the index of the first window that had not enough. */
  take(
    windows: readonly Window[],
    now: number,
  ): Promise<{ readonly refused: number | undefined; readonly states: readonly WindowState[] }>;
  /** Corrects a window of {@link take} after the fact (estimated to true tokens); `delta` may be negative. */
  adjust(key: string, windowMs: number, delta: number, now: number): Promise<void>;
  /** Takes one of `limit` places under `key` for `id` until released or expired; false when all are taken. */
  lease(key: string, id: string, limit: number, ttlMs: number, now: number): Promise<boolean>;
  release(key: string, id: string): Promise<void>;
  /** Adds `by` (1 unless set) to a number that only grows, and answers the new value; reads it with `by` 0. */
  next(key: string, by?: number): Promise<number>;
}
