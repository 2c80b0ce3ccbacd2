import type Keyv from 'keyv';
import type { Usage } from './chat.ts';

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

export type ReserveOutcome = 'held' | 'insufficient' | 'over_budget' | 'duplicate';

export interface Reservation {
  readonly account: string;
  /** Unique per charge; a second reservation under the same id is `duplicate`. */
  readonly requestId: string;
  /** The estimated cost in micro-dollars. */
  readonly amount: number;
  /** The least that `balance - held - amount` may become; `-Infinity` meters without enforcing. */
  readonly floor: number;
  /** When a crash left this held, the sweeper settles it at `amount` after this time. */
  readonly expiresAt: number;
  /** A spending limit inside the account (a key's budget): spent + held + amount of it must stay within `limit`. */
  readonly budget?: { readonly id: string; readonly limit: number };
  /** What the call is for: the usage row of a reservation that only the sweeper settles. */
  readonly facts: UsageFacts;
  readonly now: number;
}

export interface Settlement {
  readonly account: string;
  readonly requestId: string;
  /** The true cost in micro-dollars. */
  readonly amount: number;
  /** What was used, for the usage report; the keys are the report's dimensions. */
  readonly usage: UsageFacts;
  readonly now: number;
}

export interface UsageFacts {
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** The public id of the API key, or `-`. */
  readonly key: string;
  readonly outcome: string;
  readonly tokens?: Pick<Usage, 'prompt_tokens' | 'completion_tokens'>;
  readonly characters?: number;
  /** Whether the amount is an estimate because the provider told no usage or the price is unknown. */
  readonly estimated: boolean;
}

/** One line of an account's books. The sum of all `amount`s of an account is its balance. */
export interface LedgerEntry {
  /** Unique within the account; also the order. */
  readonly id: string;
  readonly account: string;
  readonly kind: 'credit' | 'charge';
  /** Positive for credits, negative for charges; a correction of a charge may be either. */
  readonly amount: number;
  readonly reason: string;
  /** The request id of a charge, or the id a credit was given under. */
  readonly ref: string;
  readonly at: number;
}

export interface AccountBalance {
  /** Credits less settled charges. */
  readonly balance: number;
  /** Reserved and not yet settled. */
  readonly held: number;
  readonly spent: number;
  readonly credited: number;
  /** When the account last changed; 0 for an account nobody has used. */
  readonly updatedAt: number;
}

export interface UsageRow {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  readonly key: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly characters: number;
  /** Micro-dollars. */
  readonly cost: number;
}

/** Money: append-only, integer micro-dollars, every method idempotent by request id. */
export interface Ledger {
  reserve(reservation: Reservation): Promise<ReserveOutcome>;
  /**
   * Settles once; a second settle or release of the same request changes nothing and answers false. The first one after a sweep
   * corrects what the sweep has charged: an entry of kind `charge` with the difference.
   */
  settle(settlement: Settlement): Promise<boolean>;
  /** Gives a reservation back: nothing was used. After a sweep it corrects that charge to 0. */
  release(account: string, requestId: string): Promise<boolean>;
  /** Adds money (or takes it, when negative) once per `id`; answers false when this id was already credited. */
  credit(account: string, id: string, amount: number, reason: string, now: number): Promise<boolean>;
  balance(account: string): Promise<AccountBalance>;
  /** What of a key's budget is spent and held. */
  budget(account: string, budgetId: string): Promise<{ readonly spent: number; readonly held: number }>;
  /** Newest first. */
  entries(account: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly LedgerEntry[]>;
  /** Usage of the days `from` to `to` (both `YYYY-MM-DD`, inclusive). */
  usage(account: string, from: string, to: string): Promise<readonly UsageRow[]>;
  /** Settles, at their estimate, reservations that expired before `now`; answers how many. */
  sweep(now: number): Promise<number>;
  /** The time by the clock that all who share this store have in common; absent where that is this machine's. */
  clock?(): Promise<number>;
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
