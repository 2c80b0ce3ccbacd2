import {
  type BudgetHold,
  type BudgetState,
  type CallFacts,
  createLocalCounters,
  type Ledger,
  type LedgerEntry,
  type Reservation,
  type ReserveResult,
  type Sets,
  type Settlement,
  type Store,
  type StoreWatcher,
} from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkMember,
  checkReservation,
  entryId,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../kit/check.ts';
import { chargeReason, correctionReason, expiredFacts } from '../kit/facts.ts';
import { storeClosed } from '../kit/failure.ts';
import { timeOperations } from '../kit/timed.ts';
import { type CallRecords, createCallRecords } from './records.ts';

/** The atomic half of a store in this process's memory; the `keyv` store uses it beside documents elsewhere. */
export function createMemoryAtomic(
  isClosed: () => boolean,
  observe?: StoreWatcher,
): Pick<Store, 'ledger' | 'sets' | 'counters'> {
  return {
    ledger: timeOperations(refuseClosed(createMemoryLedger(), isClosed), 'ledger', observe),
    sets: timeOperations(refuseClosed(createMemorySets(), isClosed), 'sets', observe),
    counters: timeOperations(refuseClosed(createLocalCounters(), isClosed), 'counters', observe),
  };
}

/** The same methods, which reject with `store_unavailable` once the store is closed. */
function refuseClosed<T extends object>(half: T, isClosed: () => boolean): T {
  const guarded = Object.entries(half).map(([name, method]) => [
    name,
    (...args: unknown[]) =>
      isClosed() ? Promise.reject(storeClosed()) : (method as (...a: unknown[]) => unknown)(...args),
  ]);
  return Object.fromEntries(guarded) as T;
}

/** Sets in this process's memory. */
function createMemorySets(): Sets {
  const sets = new Map<string, Set<string>>();

  const add = (name: string, member: string, max = Number.POSITIVE_INFINITY): 'added' | 'present' | 'full' => {
    checkMember(member);
    const set = sets.get(name) ?? new Set<string>();
    if (set.has(member)) return 'present';
    if (set.size >= max) return 'full';
    sets.set(name, set.add(member));
    return 'added';
  };

  const remove = (name: string, member: string): boolean => {
    const set = sets.get(name);
    const removed = set?.delete(member) ?? false;
    if (set?.size === 0) sets.delete(name);
    return removed;
  };

  return {
    add: async (name, member, max) => add(name, member, max),
    remove: async (name, member) => remove(name, member),
    has: async (name, member) => sets.get(name)?.has(member) ?? false,
    list: async (name, { limit, after }) => {
      const members = [...(sets.get(name) ?? [])].sort(byBytes);
      const rest = after === undefined ? members : members.filter((member) => byBytes(member, after) > 0);
      return rest.slice(0, pageLimit(limit));
    },
    size: async (name) => sets.get(name)?.size ?? 0,
  };
}

/** Ascending order of UTF-8 bytes, which is what SQLite, Redis and Postgres (collation "C") sort by. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The accounts and budgets of this process, what they hold, and the records of calls. */
interface Books {
  readonly accounts: Map<string, Account>;
  readonly budgets: Map<string, Budget>;
  readonly open: Set<Hold>;
  readonly records: CallRecords;
}

/**
 * Money in this process's memory: every method runs to its end without giving way to another, which is what makes it
 * atomic. The reference that the other stores are compared with.
 */
function createMemoryLedger(): Ledger {
  const books: Books = { accounts: new Map(), budgets: new Map(), open: new Set(), records: createCallRecords() };
  return {
    reserve: async (reservation) => reserve(books, reservation),
    settle: async (settlement) => settle(books, settlement),
    release: async (id, requestId, facts, now = Date.now()) => release(books, id, requestId, facts, now),
    credit: async (id, ref, amount, reason, now) => {
      checkCredit(amount);
      const account = accountOf(books, id);
      if (account.refs.has(`credit ${ref}`)) return false;
      account.balance += amount;
      account.credited += amount;
      account.updatedAt = now;
      append(account, { account: id, kind: 'credit', amount, reason, ref, at: now });
      return true;
    },
    sweep: async (now) => sweep(books, now),
    calls: async (query) => books.records.calls(query),
    report: async (query) => books.records.report(query),
    forgetCalls: async (before) => books.records.forget(before),
    ...createReads(books),
  };
}

function accountOf({ accounts }: Books, id: string): Account {
  const account = accounts.get(id) ?? createAccount();
  accounts.set(id, account);
  return account;
}

const NO_BUDGETS: readonly BudgetHold[] = Object.freeze([]);

function reserve(books: Books, reservation: Reservation): ReserveResult {
  checkReservation(reservation);
  const { account: id, requestId, amount, budgets = NO_BUDGETS, expiresAt, facts } = reservation;
  const known = books.accounts.get(id);
  if (known?.holds.has(requestId) || known?.refs.has(`charge ${requestId}`) || known?.released.has(requestId))
    return { outcome: 'duplicate' };
  if ((known?.balance ?? 0) - (known?.held ?? 0) - amount < finite(reservation.floor))
    return { outcome: 'insufficient' };
  for (const [index, budget] of budgets.entries()) {
    const { spent, held } = books.budgets.get(budget.id) ?? NOTHING;
    if (spent + held + amount > finite(budget.limit))
      return { outcome: 'over_budget', budget: index, used: spent + held };
  }
  const used = budgets.map((budget) => holdInBudget(books, budget, amount));
  const account = accountOf(books, id);
  account.held += amount;
  const hold = { account: id, requestId, amount, budgets: budgets.map((budget) => budget.id), expiresAt, facts };
  account.holds.set(requestId, hold);
  books.open.add(hold);
  return { outcome: 'held', used };
}

const NOTHING = Object.freeze({ spent: 0, held: 0 });

function holdInBudget({ budgets }: Books, { id, until }: BudgetHold, amount: number): number {
  const budget = budgets.get(id) ?? { spent: 0, held: 0, until };
  budgets.set(id, budget);
  budget.held += amount;
  return budget.spent + budget.held;
}

function settle(books: Books, settlement: Settlement): boolean {
  const { account: id, requestId, amount, facts, uncharged, now } = settlement;
  checkAmount(amount);
  const account = books.accounts.get(id);
  const hold = account?.holds.get(requestId);
  if (!account || !hold) return correctSwept(books, id, requestId, amount, facts, uncharged);
  books.open.delete(hold);
  dropHold(account, books.budgets, hold);
  spend(books.budgets, hold, amount, uncharged);
  charge(account, hold, amount, facts, now);
  books.records.add({ account: id, id: requestId, facts, cost: amount, at: now });
  return true;
}

function release(books: Books, id: string, requestId: string, facts: CallFacts | undefined, now: number): boolean {
  const account = books.accounts.get(id);
  const hold = account?.holds.get(requestId);
  if (!account || !hold) return correctSwept(books, id, requestId, 0, facts);
  books.open.delete(hold);
  dropHold(account, books.budgets, hold);
  account.released.set(requestId, hold.expiresAt + REMEMBER_MS);
  if (facts) books.records.add({ account: id, id: requestId, facts, cost: 0, at: now });
  return true;
}

/** Corrects what the sweeper charged for a request that ends after it; false when it charged nothing. */
function correctSwept(
  books: Books,
  id: string,
  requestId: string,
  amount: number,
  told?: CallFacts,
  uncharged?: readonly string[],
): boolean {
  const account = books.accounts.get(id);
  const swept = account?.swept.get(requestId);
  if (!account || !swept) return false;
  const before = expiredFacts(swept.facts);
  const facts = told ?? before;
  correct(account, swept, amount, facts, Date.now());
  spend(books.budgets, swept, -swept.amount);
  spend(books.budgets, swept, amount, uncharged);
  const call = { account: id, id: requestId, at: swept.at };
  books.records.correct({ ...call, facts: before, cost: swept.amount }, { ...call, facts, cost: amount });
  return true;
}

function sweep(books: Books, now: number): number {
  let settled = 0;
  for (const hold of books.open) {
    if (hold.expiresAt >= now) continue;
    const { account, requestId, amount, facts } = hold;
    if (!settle(books, { account, requestId, amount, facts: expiredFacts(facts), now })) continue;
    settled += 1;
    accountOf(books, account).swept.set(requestId, { ...hold, at: now });
  }
  for (const account of books.accounts.values()) {
    for (const [requestId, until] of account.released) if (until < now) account.released.delete(requestId);
    for (const [requestId, { at }] of account.swept) if (at + CORRECTABLE_MS < now) account.swept.delete(requestId);
  }
  for (const [id, { until }] of books.budgets) if (until !== undefined && until < now) books.budgets.delete(id);
  return settled;
}

function createReads({ accounts, budgets }: Books): Pick<Ledger, 'balance' | 'accounts' | 'budgets' | 'entries'> {
  return {
    balance: async (id) => balanceOf(accounts.get(id) ?? createAccount()),
    accounts: async ({ limit, after }) => {
      const ids = [...accounts.keys()].sort();
      const rest = after === undefined ? ids : ids.filter((id) => id > after);
      return rest
        .slice(0, pageLimit(limit))
        .map((account) => ({ account, ...balanceOf(accounts.get(account) ?? createAccount()) }));
    },
    budgets: async (ids) =>
      ids.map((id) => {
        const { spent, held } = budgets.get(id) ?? NOTHING;
        return { spent, held };
      }),
    entries: async (id, { limit, after }) => {
      const before = readCursor(after);
      const older = (accounts.get(id)?.entries ?? []).filter((entry) => Number(entry.id) < before);
      return older.slice(-pageLimit(limit)).reverse();
    },
  };
}

function balanceOf({ balance, held, spent, credited, updatedAt }: Account) {
  return { balance, held, spent, credited, updatedAt };
}

/** How many entries an account keeps; the oldest beyond that become one "carried forward" line. */
const MAX_ENTRIES = 10_000;
/** How many are carried forward at once. */
const CARRIED = 1000;

interface Hold extends Pick<Reservation, 'account' | 'requestId' | 'amount' | 'expiresAt' | 'facts'> {
  readonly budgets: readonly string[];
}

/** A hold that the sweeper has charged: its call may still end, which then corrects it. */
interface Swept extends Hold {
  /** When it was swept: its record is of that time. */
  readonly at: number;
}

/** What one budget has spent and holds, over all accounts. */
type Budget = { -readonly [K in keyof BudgetState]: BudgetState[K] } & { readonly until: number | undefined };

type Budgets = ReadonlyMap<string, Budget>;

/** One account's books in this process. */
interface Account {
  balance: number;
  held: number;
  spent: number;
  credited: number;
  updatedAt: number;
  lastEntry: number;
  readonly holds: Map<string, Hold>;
  /** Released request ids and until when they are remembered. */
  readonly released: Map<string, number>;
  /** By request id. */
  readonly swept: Map<string, Swept>;
  /** Oldest first. */
  readonly entries: LedgerEntry[];
  /** `kind ref` of every entry that is kept. */
  readonly refs: Set<string>;
}

function createAccount(): Account {
  return {
    balance: 0,
    held: 0,
    spent: 0,
    credited: 0,
    updatedAt: 0,
    lastEntry: 0,
    holds: new Map(),
    released: new Map(),
    swept: new Map(),
    entries: [],
    refs: new Set(),
  };
}

/** Removes a hold from the account and its budgets. */
function dropHold(account: Account, budgets: Budgets, hold: Hold): void {
  account.holds.delete(hold.requestId);
  account.held -= hold.amount;
  for (const id of hold.budgets) {
    const budget = budgets.get(id);
    if (budget) budget.held -= hold.amount;
  }
}

/** Adds to what the budgets of a hold have spent, but to those in `uncharged`. */
function spend(budgets: Budgets, hold: Hold, amount: number, uncharged: readonly string[] = []): void {
  for (const id of hold.budgets) {
    const budget = budgets.get(id);
    if (budget && !uncharged.includes(id)) budget.spent += amount;
  }
}

/** Turns a dropped hold into a charge of `amount`: entry and balance. */
function charge(account: Account, hold: Hold, amount: number, facts: CallFacts, now: number): void {
  account.balance -= amount;
  account.spent += amount;
  account.updatedAt = now;
  const entry = { account: hold.account, kind: 'charge', ref: hold.requestId, at: now } as const;
  append(account, { ...entry, amount: 0 - amount, reason: chargeReason(facts) });
}

/** Replaces what the sweeper charged by what the call came to. */
function correct(account: Account, swept: Swept, amount: number, facts: CallFacts, now: number): void {
  account.swept.delete(swept.requestId);
  const back = swept.amount - amount;
  account.balance += back;
  account.spent -= back;
  account.updatedAt = now;
  const entry = { account: swept.account, kind: 'charge', amount: back, ref: swept.requestId, at: now } as const;
  append(account, { ...entry, reason: correctionReason(facts) });
}

/** Adds an entry to the books; when there are too many, the oldest ones become one line. */
function append(account: Account, entry: Omit<LedgerEntry, 'id'>): void {
  account.lastEntry += 1;
  account.entries.push({ id: entryId(account.lastEntry), ...entry });
  account.refs.add(`${entry.kind} ${entry.ref}`);
  if (account.entries.length > MAX_ENTRIES + CARRIED) carryForward(account);
}

function carryForward(account: Account): void {
  const old = account.entries.splice(0, CARRIED + 1);
  const last = old.at(-1);
  if (!last) return;
  for (const entry of old) account.refs.delete(`${entry.kind} ${entry.ref}`);
  const amount = old.reduce((sum, entry) => sum + entry.amount, 0);
  account.entries.unshift({
    ...last,
    kind: amount < 0 ? 'charge' : 'credit',
    amount,
    reason: 'carried forward',
    ref: '',
  });
}
