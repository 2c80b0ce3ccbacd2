import type { BudgetHold, CallFacts, Ledger, Reservation, ReserveResult, Settlement } from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../kit/check.ts';
import { expiredFacts } from '../kit/facts.ts';
import {
  type Account,
  append,
  type Budget,
  charge,
  correct,
  createAccount,
  dropHold,
  type Hold,
  spend,
} from './account.ts';
import { type CallRecords, createCallRecords } from './records.ts';

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
export function createMemoryLedger(): Ledger {
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
