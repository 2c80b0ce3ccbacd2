import type Keyv from 'keyv';
import type { CallAttempt, CallHook, CostPart, HookTime, Units } from './call.ts';

/**
 * A store has two parts: documents (Keyv) and atomic data (ledger, sets, counters). Keyv alone loses updates of parallel writers,
 * so it holds no balance, list or limit.
 *
 * Every method rejects with `GatewayError('store_unavailable')` if the store does not respond within its timeout: unknown is never
 * reported as absent. All amounts are whole nano-dollars (1 USD = 1,000,000,000). All times are Unix milliseconds, except where a
 * name indicates otherwise.
 */
export interface Store {
  /** Name for logs and `/readyz`, such as `sqlite`. Never a URL, which may contain a password. */
  readonly kind: string;
  /** True for a store that is private to its process and ends with it: separate commands reject it. */
  readonly endsWithProcess?: boolean;
  /** Returns the documents of one namespace, from a fixed list of names without `:`. The same name returns the same object. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  readonly ledger: Ledger;
  readonly sets: Sets;
  readonly counters: Counters;
  /** Returns documents of accounts; keys are unique per owner, such as a plugin's instance. */
  stored(owner: string): AccountDocuments;
  /** Returns the export and import of the store; absent if the store cannot list its data. */
  transfer?(): Transfer;
  /** Writes once at startup. Rejects if the store responds and rejects writes; resolves if it is unreachable. */
  begin?(): Promise<void>;
  /**
   * Resolves if the store responds and accepts writes, by the results of recent ones. `/readyz` publishes a rejection with a
   * `GatewayError` to anyone.
   */
  health(): Promise<void>;
  close(): Promise<void>;
}

/** Export and import of a store, except windows and leases, in a common format. No gateway runs during a transfer. */
export interface Transfer {
  read(): AsyncIterable<TransferRow>;
  /** Adds rows to an empty store in the order of reading; the next call waits for this one. */
  write(rows: readonly TransferRow[]): Promise<void>;
}

/** JSON-only row: a document, a member of a set, a number, or a row of the ledger. */
export interface TransferRow {
  readonly is: string;
}

/**
 * Documents of accounts, in addition to their ledger. An account has a limit of bytes over all documents and processes; beyond it
 * the least recently written documents are deleted.
 */
export interface AccountDocuments {
  /**
   * Writes a document and replaces the one under its key. Returns false and writes nothing if it is too large. A `lasting` document
   * is deleted after all others.
   */
  set(account: string, key: string, value: unknown, ttlMs: number, lasting?: 'lasting'): Promise<boolean>;
  get<T>(key: string): Promise<T | undefined>;
  delete(account: string, key: string): Promise<boolean>;
  /** Returns the stored bytes of an account. */
  bytes(account: string): Promise<number>;
  /** Returns the number of documents of an account, of all owners; `remove` deletes them. */
  count(account: string, remove?: boolean): Promise<number>;
  /** State of this process: bytes of the accounts it wrote for, and documents it deleted for lack of space. */
  readonly known: { readonly bytes: number; readonly dropped: number };
}

/** Sets of short strings, for indexes: a list inside a document would lose parallel additions. */
export interface Sets {
  /** Adds a member; returns `full`, and adds nothing, if the set already has `max` members. */
  add(set: string, member: string, max?: number): Promise<'added' | 'present' | 'full'>;
  remove(set: string, member: string): Promise<boolean>;
  has(set: string, member: string): Promise<boolean>;
  /** Returns members in ascending order, after `after`. */
  list(set: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]>;
  size(set: string): Promise<number>;
}

export interface Window {
  readonly key: string;
  readonly limit: number;
  readonly windowMs: number;
  /** Amount of this call: 1 for a request, the estimate for tokens. */
  readonly amount: number;
}

export interface WindowState {
  readonly remaining: number;
  /** Milliseconds until the window resets. */
  readonly resetMs: number;
}

/** Counters for limits, leases and versions, shared by all workers and nodes of a store. */
export interface Counters {
  /** Takes from all windows or from none. `refused` is the index of the first window with too little left. */
  take(
    windows: readonly Window[],
    now: number,
  ): Promise<{ readonly refused: number | undefined; readonly states: readonly WindowState[] }>;
  /** Corrects a window of {@link take} later (from estimated to actual tokens); `delta` may be negative. */
  adjust(key: string, windowMs: number, delta: number, now: number): Promise<void>;
  /** Takes one of `limit` slots under `key` for `id` until released or expired; false if all are taken. */
  lease(key: string, id: string, limit: number, ttlMs: number, now: number): Promise<boolean>;
  release(key: string, id: string): Promise<void>;
  /** Adds `by` (default: 1) to an increasing number and returns the new value; `by` 0 reads it. */
  next(key: string, by?: number): Promise<number>;
}

/** One window of one budget: the sum of its spent, held and new amount must stay within `limit`. */
export interface BudgetHold {
  /** Unique over all accounts of the store: `<budget id>@<start of the window, Unix ms>`, without `@…` for a window without end. */
  readonly id: string;
  /** Nano-dollars; `Infinity` only counts. */
  readonly limit: number;
  /** Unix milliseconds after which the window is unused. */
  readonly until?: number;
  /** The id is that of a leased share: the hold must also fit the share, as the store knows it. */
  readonly isShare?: boolean;
}

export interface Reservation {
  readonly account: string;
  /** Unique per charge; a second reservation under the same id is `duplicate`. */
  readonly requestId: string;
  /** Estimated cost in nano-dollars. */
  readonly amount: number;
  /** Lower bound of `balance - held - amount`; `-Infinity` meters without enforcing. */
  readonly floor: number;
  /** Time after which the sweeper settles an orphaned reservation at `amount`. */
  readonly expiresAt: number;
  /** Budgets that count it, at most 32, each once. */
  readonly budgets?: readonly BudgetHold[];
  /** Planned facts: the record of a call that only the sweeper settles. */
  readonly facts: CallFacts;
  /** Time that budgets and reports count it at. */
  readonly now: number;
  /**
   * Called if the amount does not fit, in the same transaction. Returns a smaller amount to hold, or undefined to reject. Without
   * side effects: a store may call it again with newer states.
   */
  readonly lower?: ((states: ReserveStates) => number | undefined) | undefined;
}

/** States of the account and the budgets of a reservation, excluding the reservation. */
export interface ReserveStates {
  readonly account: AccountBalance;
  /** In the order of the reservation's budgets. */
  readonly budgets: readonly BudgetState[];
}

export type ReserveResult =
  /** `used`: spent and held of each budget, including this call. `amount`: the smaller amount from {@link Reservation.lower}. */
  | { readonly outcome: 'held'; readonly used: readonly number[]; readonly amount?: number }
  | { readonly outcome: 'insufficient' }
  | { readonly outcome: 'duplicate' }
  /** `budget`: index of the first exceeded budget; `used`: its spent and held amount, excluding this call. */
  | { readonly outcome: 'over_budget'; readonly budget: number; readonly used: number };

export interface Settlement {
  readonly account: string;
  readonly requestId: string;
  /** Actual cost in nano-dollars. */
  readonly amount: number;
  readonly facts: CallFacts;
  /** Ids of budgets that are released and not charged: those of a provider that did not respond. */
  readonly uncharged?: readonly string[];
  readonly now: number;
}

/** Entry of an account's ledger. The sum of all `amount`s of an account is its balance. */
export interface LedgerEntry {
  /** Unique within the account; also the order. */
  readonly id: string;
  readonly account: string;
  readonly kind: 'credit' | 'charge';
  /** Positive for credits, negative for charges; corrections of charges have either sign. */
  readonly amount: number;
  readonly reason: string;
  /** Request id of a charge, or the id of a credit. */
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
  /** Time of the last change; 0 for an unused account. */
  readonly updatedAt: number;
}

export interface AccountRow extends AccountBalance {
  readonly account: string;
}

export interface BudgetState {
  readonly spent: number;
  readonly held: number;
  /** Set for a budget that began inside its window. */
  readonly start?: BudgetStart | undefined;
}

/** Beginning of a budget inside its window. Calls before it are part of the opening amount. */
export interface BudgetStart {
  /** Identifies the beginning: Unix milliseconds at which the budget was created. */
  readonly since: number;
  /** Calls that count before this time belong to the opening amount. */
  readonly before: number;
  /** Spent amount of these calls that the budget includes. */
  readonly counted: number;
}

/** Request for a share of a budget. */
export interface BudgetShareRequest {
  /** Id of the budget. */
  readonly id: string;
  /** Id of the share, which reservations name instead of the budget: unique per process and budget. */
  readonly shareId: string;
  /** Limit of the budget. */
  readonly limit: number;
  /** Unix milliseconds after which the window is unused. */
  readonly until?: number | undefined;
  /** Wanted free part of the share; 0 ends the lease. */
  readonly amount: number;
  /** Lifetime of the lease. After it, others may end it. */
  readonly ttlMs: number;
  /** Ends the lease of another process, if it has expired. */
  readonly ifExpired?: boolean;
}

/** Result of a request for a share. */
export interface BudgetShare {
  /** Free part of the share. 0 if the rest of the budget is too small to lease from. */
  readonly free: number;
  /** Holds of running calls in the share. */
  readonly held: number;
  /** State of the budget, in which all of a share counts as held. */
  readonly budget: BudgetState;
  /** Expired shares of other processes. */
  readonly expired: readonly string[];
}

/** Opening amount of a budget. */
export interface BudgetOpening extends Pick<BudgetStart, 'since' | 'before'> {
  readonly id: string;
  /** Unix milliseconds after which the window is unused. */
  readonly until?: number | undefined;
  /** Spent amount of all settled calls that count before {@link BudgetStart.before}. */
  readonly spent: number;
}

/**
 * Ledger: append-only, integer nano-dollars, every method idempotent by request id. The sum of `cost` of any report over all time
 * equals the sum of `spent` of all accounts.
 */
export interface Ledger {
  /**
   * Holds the amount in the account and in all budgets, or in none of them. Checks the account first, then the budgets in order.
   */
  reserve(reservation: Reservation): Promise<ReserveResult>;
  /**
   * Settles once, and writes the call's record. A second settle or release of the same request changes nothing and returns false.
   * The first one after a sweep corrects the sweep's charge: an entry of kind `charge` with the difference.
   */
  settle(settlement: Settlement): Promise<boolean>;
  /**
   * Releases a reservation without usage. With facts it also writes the call's record, at no cost, settled at `now` (default: this
   * moment). After a sweep it corrects that charge to 0.
   */
  release(account: string, requestId: string, facts?: CallFacts, now?: number): Promise<boolean>;
  /**
   * Adds money (or removes it, if negative) once per `id`; returns false if this id was already credited. Rejects with
   * `invalid_request` if all credits of the account would exceed 9,000,000 USD.
   */
  credit(account: string, id: string, amount: number, reason: string, now: number): Promise<boolean>;
  balance(account: string): Promise<AccountBalance>;
  /** Returns all accounts with credits or charges after the account `after`, in a store-specific order. */
  accounts(page: { readonly limit: number; readonly after?: string }): Promise<readonly AccountRow[]>;
  /** Returns the spent and held amount of each budget; zeros for an unused budget. */
  budgets(ids: readonly string[]): Promise<readonly BudgetState[]>;
  /**
   * Adds what calls spent before a budget was created, except what the budget includes. Repeat it until all calls of that time have
   * settled: a repetition adds only the difference, and never subtracts. The first beginning with this `since` sets `before`. Absent if
   * budgets of this store start at zero.
   */
  openBudget?(opening: BudgetOpening): Promise<BudgetState>;
  /**
   * Moves the spent amount of a share to its budget, and leases a new free part. So calls of many processes do not all change the
   * row of the budget. The budget counts a share as held, so all processes together never exceed it. Absent if a store has no need of it.
   */
  shareBudget?(request: BudgetShareRequest): Promise<BudgetShare>;
  /** Newest first. */
  entries(account: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly LedgerEntry[]>;
  /** Returns the records of calls, newest first. */
  calls(query: CallQuery): Promise<CallPage>;
  /**
   * Returns sums by interval and dimension: ascending by interval, then by the dimensions in the requested order. Rejects with
   * `invalid_request` beyond 50,000 groups. Sessions and outcomes include only calls with a record. For hours whose records were
   * deleted, an interval includes all hours that start in it, whole.
   */
  report(query: ReportQuery): Promise<readonly ReportRow[]>;
  /** Deletes the records of calls settled in the whole hours before this time; reports retain their sums. Returns their number. */
  forgetCalls(before: number): Promise<number>;
  /**
   * Replaces the name of an erased person by an id: account, user, end user, and texts of the person's records. Sums and balances stay,
   * under the id; budgets of the name are deleted, and addresses of the person's callers. A repetition with the same id continues after a
   * failure. Rejects with `conflict` while a call of the person is running, because its end belongs to the name. Absent if the store
   * cannot do it.
   */
  rename?(name: string, id: string): Promise<void>;
  /** Settles reservations that expired before `now` at their estimate; returns their number. */
  sweep(now: number): Promise<number>;
  /** Returns the time by the clock shared by all clients of this store; absent if that is this machine's. */
  clock?(): Promise<number>;
}

/**
 * Facts of a call. The store writes them as one durable record in the same transaction as the charge. Texts have up to 256
 * characters. A longer or ill-formed text is returned shortened, with a hash of the whole after a `~`; filters accept both forms.
 */
export interface CallFacts {
  /** Id of the HTTP request; one request may make several calls. */
  readonly requestId: string;
  /** Trace of the call; absent in records of calls that were never settled. */
  readonly traceId?: string;
  readonly userId: string;
  /** Public id of the API key, or `-`. */
  readonly key: string;
  /** `name=value`; the order does not matter. */
  readonly tags: readonly string[];
  readonly session?: string;
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** Model name of the request, if it is an alias or a route. */
  readonly requested?: string;
  readonly stream: boolean;
  /**
   * `refused`: before any target was tried. `unknown`: before the end of the call. `expired`: charged by the sweeper because its
   * end was never reported.
   */
  readonly outcome: 'ok' | 'error' | 'aborted' | 'refused' | 'expired' | 'unknown';
  readonly errorCode?: string;
  /** Error message that the caller received. */
  readonly errorMessage?: string;
  /** Limit, budget, check or plugin that rejected the call. */
  readonly refusedBy?: string;
  /** Requests to providers; stores retain the first 20, with texts of 256 characters. */
  readonly attempts: readonly CallAttempt[];
  /** Actions of plugin hooks; absent if there were none. */
  readonly hooks?: readonly CallHook[];
  /** Lane of the request: `native` (as the client wrote it), `translated`, or `mixed`. */
  readonly lane?: string;
  /** Service tier of the charge. */
  readonly serviceTier?: string;
  /** Request fields that were not sent to the provider; stores retain the first 20. */
  readonly dropped?: readonly string[];
  /** Parts of the response that the caller's format cannot express. */
  readonly leftOut?: readonly string[];
  /** Address of the caller; absent for calls without an HTTP request. */
  readonly address?: string;
  /** End user of the caller's application. */
  readonly endUser?: string;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly firstByteMs?: number;
  /** Milliseconds before the start of the call: authentication, waiting, reading the body. */
  readonly receiveMs?: number;
  /** Part of that in the line of the account. */
  readonly queueMs?: number;
  /** Milliseconds of requests to providers. */
  readonly upstreamMs?: number;
  /** Milliseconds of pauses before retries. */
  readonly retryWaitMs?: number;
  /** Asynchronous hooks that took over a millisecond. */
  readonly hookTimes?: readonly HookTime[];
  /** Usage: the units of {@link ReportUnits}, and others by operation. */
  readonly units: Units;
  /** Components of its cost by the price, before rounding; absent if unknown. */
  readonly costParts?: readonly CostPart[];
  /** True if the units are estimated because the provider reported none. */
  readonly estimated: boolean;
  /** False if the cost is unknown. The held amount is then charged if money is limited, and nothing otherwise. */
  readonly priced: boolean;
  /** Nano-dollars saved by a cached response; present for every cache hit. */
  readonly saved?: number;
}

/** Record of one call. */
export interface CallRow extends CallFacts {
  /** Id of the call, which is the `requestId` of its reservation. */
  readonly id: string;
  readonly account: string;
  /** Charged nano-dollars. */
  readonly cost: number;
  /** Time of settlement, at most one hour after {@link CallRow.countedAt}. Corrections do not change it. */
  readonly at: number;
  /** Time of reservation, which reports and budgets count it at. */
  readonly countedAt: number;
}

/**
 * Filter of calls. All fields must match; absent fields match everything. A store has indexes by account, user, key, session and
 * request: calls of others do not affect the duration. Other fields filter the results of the index, page by page.
 */
export interface CallFilter {
  readonly account?: string;
  /** Id of the HTTP request that made it. */
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

/**
 * Conditions on records without an index or a sum. All must match; absent ones match everything. Reports do not support them.
 */
export interface CallSearch {
  /** Part of a name: user, key, account, end user, session, tag, model, alias, provider, address, call or request id. Any case. */
  readonly search?: string;
  readonly endUser?: string;
  /** Address, or the network of several: `10.1.0.0/16`. */
  readonly address?: string;
  readonly errorCode?: string;
  /** HTTP status of one of its attempts. */
  readonly status?: number;
  /** Alias or other name in the request; also matches the model of a request that named it. */
  readonly requested?: string;
  /** Smallest cost in nano-dollars, and smallest duration. */
  readonly minCost?: number;
  readonly minDurationMs?: number;
}

/** Page of calls settled from `from` (inclusive) to `to` (exclusive). */
export interface CallQuery extends CallFilter, CallSearch {
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  /** `next` of the previous page. */
  readonly after?: string;
}

/**
 * Newest first. A page reads at most a few thousand records and blocks the event loop for at most about 10 ms. It may contain fewer
 * calls than requested, or none. More may follow only if `next` is set.
 */
export interface CallPage {
  readonly calls: readonly CallRow[];
  readonly next?: string;
  /** Time back to which all records were searched, if the page has fewer calls than requested. */
  readonly searchedTo?: number;
}

export type ReportDimension = 'account' | 'user' | 'key' | 'tags' | 'provider' | 'model' | 'operation' | 'session';

/** Sums over calls, by interval of time and dimension. */
export interface ReportQuery extends CallFilter {
  /** 2 to 1,001 ascending instants; interval `i` is from `edges[i]` (inclusive) to `edges[i + 1]` (exclusive). */
  readonly edges: readonly number[];
  readonly by: readonly ReportDimension[];
}

/** Units that reports sum. */
export interface ReportUnits {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly characters: number;
}

/** One group of one interval; groups without calls are omitted. */
export interface ReportRow extends Readonly<Partial<Record<ReportDimension, string>>> {
  /** Index of the interval, from 0. */
  readonly interval: number;
  readonly requests: number;
  /** Calls with the outcome `error`. */
  readonly errors: number;
  /** Calls with estimated units. */
  readonly estimated: number;
  /** Calls with an unknown price. */
  readonly unpriced: number;
  readonly units: ReportUnits;
  /** Nano-dollars; a sum over all accounts may exceed the safe range of numbers. */
  readonly cost: bigint;
  readonly saved: bigint;
}

/** Current version of a record. */
export interface RecordVersion<T> {
  /** Number of changes; 0 if never written. */
  readonly version: number;
  readonly value: T | undefined;
}

export interface RecordChange<T> {
  readonly version: number;
  readonly before: T | undefined;
  readonly value: T;
}

/**
 * Records with serialized changes, on every store and any number of nodes. No change is lost: each is applied to the result of the
 * previous one.
 */
export interface Records<T> {
  find(id: string): Promise<RecordVersion<T>>;
  /**
   * Writes the result of `make`; runs it again on the newer value after a concurrent change. With `expected`, throws
   * `precondition_failed` for any other version. A throw of `make` changes nothing.
   */
  change(id: string, make: (value: T | undefined) => T, expected?: number): Promise<RecordChange<T>>;
  /** Adds a listener for the id of each record that this process changes, to invalidate caches. */
  onChange(listener: (id: string) => void): void;
  /** Adds an id to the list, with or without a record; written once an hour by each process. Does not reject. */
  note(id: string): Promise<void>;
  /** Returns the listed ids in ascending order, after `after`. */
  ids(page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]>;
  /** Removes an id from the list. */
  unlist(id: string): Promise<void>;
}
