import type Keyv from 'keyv';
import type { CallAttempt, CallHook, CostPart, Units } from './call.ts';

/**
 * A store opens two halves: documents (Keyv) and what must be atomic (ledger, sets, counters). Keyv alone loses
 * updates under parallel writers, so no balance, list or limit lives in it.
 *
 * Every method rejects with `GatewayError('store_unavailable')` when the store does not answer within its bound:
 * unknown is never reported as absent. All amounts are whole nano-dollars (1 USD = 1,000,000,000), all times are
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
  /** What is kept for accounts; keys are those of one owner of documents, such as a plugin's instance. */
  kept(owner: string): AccountDocuments;
  /** For moving to another store; absent where a store cannot tell all that it keeps. */
  transfer?(): Transfer;
  /** For the start: writes once. Rejects when the store answers and takes no write; resolves also while it is away. */
  begin?(): Promise<void>;
  /**
   * Resolves when the store answers and takes writes, by the outcome of the last ones. What it rejects with is shown by `/readyz`, to
   * anyone, when it is a `GatewayError`.
   */
  health(): Promise<void>;
  close(): Promise<void>;
}

/** All that a store keeps but windows and leases, in the form that stores share. No gateway runs meanwhile. */
export interface Transfer {
  read(): AsyncIterable<TransferRow>;
  /** Adds rows to a store that was empty, in the order in which they were read; the next call waits for this one. */
  write(rows: readonly TransferRow[]): Promise<void>;
}

/** Of JSON alone: a document, a member of a set, a number, or a row of the ledger. */
export interface TransferRow {
  readonly is: string;
}

/**
 * Documents that are kept for accounts, in addition to their books. An account has so many bytes for all of them, over all processes:
 * beyond that those go that were written least recently.
 */
export interface AccountDocuments {
  /**
   * Writes a document, in place of the one under its key; answers false, and writes nothing, for one that is too large to be kept. One that is
   * `lasting` goes after all that are not.
   */
  set(account: string, key: string, value: unknown, ttlMs: number, lasting?: 'lasting'): Promise<boolean>;
  get<T>(key: string): Promise<T | undefined>;
  delete(account: string, key: string): Promise<boolean>;
  /** What an account keeps. */
  bytes(account: string): Promise<number>;
  /** How many documents an account keeps, of all owners; with `remove` they are deleted. */
  count(account: string, remove?: boolean): Promise<number>;
  /** What this process knows: bytes of the accounts that it wrote for, and how many documents it dropped because there was too much. */
  readonly known: { readonly bytes: number; readonly dropped: number };
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

/** One window of one budget: spent + held + amount of it must stay within `limit`. */
export interface BudgetHold {
  /** Unique over all accounts of the store: `<budget id>@<start of the window, Unix ms>`, without `@…` for one that never ends. */
  readonly id: string;
  /** Nano-dollars; `Infinity` only counts. */
  readonly limit: number;
  /** Unix milliseconds after which nobody asks for it. */
  readonly until?: number;
}

export interface Reservation {
  readonly account: string;
  /** Unique per charge; a second reservation under the same id is `duplicate`. */
  readonly requestId: string;
  /** The estimated cost in nano-dollars. */
  readonly amount: number;
  /** The least that `balance - held - amount` may become; `-Infinity` meters without enforcing. */
  readonly floor: number;
  /** When a crash left this held, the sweeper settles it at `amount` after this time. */
  readonly expiresAt: number;
  /** The budgets that it counts in, at most 32, each once. */
  readonly budgets?: readonly BudgetHold[];
  /** What is planned: the record of a call that only the sweeper settles. */
  readonly facts: CallFacts;
  /** When it counts, in budgets and in reports. */
  readonly now: number;
  /**
   * Called when the amount does not fit, in the same change: returns a smaller amount that is held instead, or undefined to refuse.
   * It has no side effects, since a store may call it again with newer states.
   */
  readonly lower?: ((states: ReserveStates) => number | undefined) | undefined;
}

/** The account and the budgets of a reservation as they are without it. */
export interface ReserveStates {
  readonly account: AccountBalance;
  /** In the order of the reservation's budgets. */
  readonly budgets: readonly BudgetState[];
}

export type ReserveResult =
  /** `used`: what of each budget is spent and held, with this call. `amount`: the smaller amount that is held, by {@link Reservation.lower}. */
  | { readonly outcome: 'held'; readonly used: readonly number[]; readonly amount?: number }
  | { readonly outcome: 'insufficient' }
  | { readonly outcome: 'duplicate' }
  /** `budget`: the index of the first that refuses; `used`: what of it is spent and held, without this call. */
  | { readonly outcome: 'over_budget'; readonly budget: number; readonly used: number };

export interface Settlement {
  readonly account: string;
  readonly requestId: string;
  /** The true cost in nano-dollars. */
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
 * Money: append-only, integer nano-dollars, every method idempotent by request id. The sum of `cost` of any report over all time
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
  /**
   * Adds money (or takes it, when negative) once per `id`; answers false when this id was already credited. Rejects with
   * `invalid_request` when all credits of the account would come to more than 9,000,000 USD.
   */
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

/**
 * What is known of a call; the store makes one durable record of it, in the same transaction as its charge. Texts are kept up to
 * 256 characters: a longer or ill-formed one is told shortened, with a hash of the whole behind a `~`; filters take either.
 */
export interface CallFacts {
  /** The id of the HTTP request; one request may make several calls. */
  readonly requestId: string;
  /** The trace that it belongs to; absent in records of calls that were never settled. */
  readonly traceId?: string;
  readonly userId: string;
  /** The public id of the API key, or `-`. */
  readonly key: string;
  /** `name=value`; the order does not matter. */
  readonly tags: readonly string[];
  readonly session?: string;
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** The model as the request named it, where that is an alias or a route. */
  readonly requested?: string;
  readonly stream: boolean;
  /**
   * `refused` before any target was tried, `unknown` before a call has ended, `expired` when the sweeper charged it because its end
   * was never reported.
   */
  readonly outcome: 'ok' | 'error' | 'aborted' | 'refused' | 'expired' | 'unknown';
  readonly errorCode?: string;
  /** What the caller was sent as the error's message. */
  readonly errorMessage?: string;
  /** Of a refused call: the limit, budget, check or plugin that refused it. */
  readonly refusedBy?: string;
  /** The requests to providers that it took; stores keep the first 20, with texts of 256 characters. */
  readonly attempts: readonly CallAttempt[];
  /** What plugins' hooks did to it; absent where none did anything. */
  readonly hooks?: readonly CallHook[];
  /** How the request went upstream: `native`, as the client wrote it, `translated`, or `mixed`. */
  readonly lane?: string;
  /** The service tier that it was charged by. */
  readonly serviceTier?: string;
  /** Request fields that the provider was not sent; stores keep the first 20. */
  readonly dropped?: readonly string[];
  /** What of the response the caller's format cannot say. */
  readonly leftOut?: readonly string[];
  readonly startedAt: number;
  readonly durationMs: number;
  readonly firstByteMs?: number;
  /** What was used: those of {@link ReportUnits}, and others by the operation. */
  readonly units: Units;
  /** What its cost is made of by the price, before it is rounded; absent where that is not known. */
  readonly costParts?: readonly CostPart[];
  /** Whether the units are an estimate, because the provider told none. */
  readonly estimated: boolean;
  /** False when the cost is not known: then what was held is charged where money is limited, and nothing where it is not. */
  readonly priced: boolean;
  /** Nano-dollars that a kept response has saved; present for every call that got one. */
  readonly saved?: number;
}

/** The record of one call. */
export interface CallRow extends CallFacts {
  /** The call's id, which is the `requestId` of its reservation. */
  readonly id: string;
  readonly account: string;
  /** Nano-dollars that it was charged. */
  readonly cost: number;
  /** When it was settled, or an hour after {@link CallRow.countedAt} where that is earlier. A correction leaves it as it is. */
  readonly at: number;
  /** When it was reserved: reports count it there, as budgets do. */
  readonly countedAt: number;
}

/**
 * Which calls; what is absent does not matter. All of it must hold. By account, user, key, session and request a store has an index:
 * how many calls others made does not matter there. The rest is looked for among what the index gives, page by page.
 */
export interface CallFilter {
  readonly account?: string;
  /** The id of the HTTP request that it was made for. */
  readonly requestId?: string;
  readonly userId?: string;
  readonly key?: string;
  /** One of its tags, `name=value`. */
  readonly tag?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly operation?: string;
  readonly session?: string;
  readonly outcome?: CallFacts['outcome'];
}

/** A page of calls: those settled from `from` (inclusive) to `to` (exclusive). */
export interface CallQuery extends CallFilter {
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/**
 * Newest first. A page looks at a few thousand records at most, and keeps the event loop for some 10 ms at most: it may hold fewer
 * calls than were asked for, or none. There may be more exactly while `next` is told.
 */
export interface CallPage {
  readonly calls: readonly CallRow[];
  readonly next?: string;
}

export type ReportDimension = 'account' | 'user' | 'key' | 'tags' | 'provider' | 'model' | 'operation' | 'session';

/** Sums of what calls did, by interval of time and dimension. */
export interface ReportQuery extends CallFilter {
  /** 2 to 1,001 ascending instants; interval `i` is from `edges[i]` (inclusive) to `edges[i + 1]` (exclusive). */
  readonly edges: readonly number[];
  readonly by: readonly ReportDimension[];
}

/** The units that reports sum. */
export interface ReportUnits {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly characters: number;
}

/** One group of one interval; groups without a call are left out. */
export interface ReportRow extends Readonly<Partial<Record<ReportDimension, string>>> {
  /** The number of its interval, from 0. */
  readonly interval: number;
  readonly requests: number;
  /** Calls with the outcome `error`. */
  readonly errors: number;
  /** Calls whose units are estimated. */
  readonly estimated: number;
  /** Calls whose price is not known. */
  readonly unpriced: number;
  readonly units: ReportUnits;
  /** Nano-dollars; those of all accounts may be more than a number counts exactly. */
  readonly cost: bigint;
  readonly saved: bigint;
}

/** A record as it is now. */
export interface RecordVersion<T> {
  /** How often it was changed; 0 for one that was never written. */
  readonly version: number;
  readonly value: T | undefined;
}

export interface RecordChange<T> {
  readonly version: number;
  readonly before: T | undefined;
  readonly value: T;
}

/**
 * Records that are changed one change after the other, on every store and by any number of nodes: no change is lost,
 * each is made of what the one before it left.
 */
export interface Records<T> {
  find(id: string): Promise<RecordVersion<T>>;
  /**
   * Writes what `make` makes of the value; runs it again on the newer value when another change came first. With `expected`
   * it throws `precondition_failed` unless that is the version. What `make` throws changes nothing.
   */
  change(id: string, make: (value: T | undefined) => T, expected?: number): Promise<RecordChange<T>>;
  /** Told the id of each record that this process changed, so that it forgets what it knew. */
  onChange(listener: (id: string) => void): void;
  /** Lists an id, whether or not there is a record of it; written once an hour by each process. It does not reject. */
  note(id: string): Promise<void>;
  /** The listed ids in ascending order, after `after`. */
  ids(page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]>;
  /** Takes an id out of the list. */
  unlist(id: string): Promise<void>;
}
