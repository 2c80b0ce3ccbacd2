import type { CallFacts, CallPage, CallQuery, ReportQuery, ReportRow } from './call-records.ts';

/** One window of one budget: spent + held + amount of it must stay within `limit`. */
export interface BudgetHold {
  /** Unique over all accounts of the store: `<budget id>@<start of the window, Unix ms>`, without `@…` for one that never ends. */
  readonly id: string;
  /** Micro-dollars; `Infinity` only counts. */
  readonly limit: number;
  /** Unix milliseconds after which nobody asks for it. */
  readonly until?: number;
}

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
  /** The budgets that it counts in, at most 32, each once. */
  readonly budgets?: readonly BudgetHold[];
  /** What is planned: the record of a call that only the sweeper settles. */
  readonly facts: CallFacts;
  readonly now: number;
}

export type ReserveResult =
  /** `used`: what of each budget is spent and held, with this call. */
  | { readonly outcome: 'held'; readonly used: readonly number[] }
  | { readonly outcome: 'insufficient' }
  | { readonly outcome: 'duplicate' }
  /** `budget`: the index of the first that refuses; `used`: what of it is spent and held, without this call. */
  | { readonly outcome: 'over_budget'; readonly budget: number; readonly used: number };

export interface Settlement {
  readonly account: string;
  readonly requestId: string;
  /** The true cost in micro-dollars. */
  readonly amount: number;
  readonly facts: CallFacts;
  /** Ids of budgets that are given back and not charged: those of a provider that did not answer. */
  readonly uncharged?: readonly string[];
  readonly now: number;
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

export interface AccountRow extends AccountBalance {
  readonly account: string;
}

export interface BudgetState {
  readonly spent: number;
  readonly held: number;
}

/**
 * Money: append-only, integer micro-dollars, every method idempotent by request id. The sum of `cost` of any report over all time
 * is the sum of `spent` of all accounts.
 */
export interface Ledger {
  /** Holds the amount in the account and in all budgets, or nothing in any of them. The account is asked first, then the budgets in order. */
  reserve(reservation: Reservation): Promise<ReserveResult>;
  /**
   * Settles once, and writes the call's record; a second settle or release of the same request changes nothing and answers false.
   * The first one after a sweep corrects what the sweep has charged: an entry of kind `charge` with the difference.
   */
  settle(settlement: Settlement): Promise<boolean>;
  /**
   * Gives a reservation back: nothing was used. With facts it also writes the call's record, at no cost, settled at `now` (this
   * moment unless given). After a sweep it corrects that charge to 0.
   */
  release(account: string, requestId: string, facts?: CallFacts, now?: number): Promise<boolean>;
  /** Adds money (or takes it, when negative) once per `id`; answers false when this id was already credited. */
  credit(account: string, id: string, amount: number, reason: string, now: number): Promise<boolean>;
  balance(account: string): Promise<AccountBalance>;
  /** All accounts that were ever credited or charged, in an order of the store's, after the account `after`. */
  accounts(page: { readonly limit: number; readonly after?: string }): Promise<readonly AccountRow[]>;
  /** What of each of these budgets is spent and held; zeros for one that nobody has used. */
  budgets(ids: readonly string[]): Promise<readonly BudgetState[]>;
  /** Newest first. */
  entries(account: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly LedgerEntry[]>;
  /** The records of calls, newest first. */
  calls(query: CallQuery): Promise<CallPage>;
  /**
   * Sums by interval and dimension: ascending by interval, then by the dimensions as asked for. Rejects with `invalid_request` when
   * there are more than 50,000 groups. By session or outcome it knows only calls whose records are kept. Of hours whose records are
   * gone, an interval has those that begin in it whole.
   */
  report(query: ReportQuery): Promise<readonly ReportRow[]>;
  /** Deletes the records of calls settled in the whole hours before this time; reports keep their sums. Answers how many. */
  forgetCalls(before: number): Promise<number>;
  /** Settles, at their estimate, reservations that expired before `now`; answers how many. */
  sweep(now: number): Promise<number>;
  /** The time by the clock that all who share this store have in common; absent where that is this machine's. */
  clock?(): Promise<number>;
}
