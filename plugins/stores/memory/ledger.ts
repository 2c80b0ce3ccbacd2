import type { Ledger, Reservation, ReserveOutcome, Settlement, UsageFacts } from '../../../core/index.ts';
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
import { expiredFacts } from '../kit/usage.ts';
import { type Account, append, budgetOf, charge, correct, createAccount, dropHold, type Hold } from './account.ts';

/** The accounts of this process, and what they hold. */
interface Books {
  readonly accounts: Map<string, Account>;
  readonly open: Set<Hold>;
}

/**
 * Money in this process's memory: every method runs to its end without giving way to another, which is what makes it
 * atomic. The reference that the other stores are compared with.
 */
export function createMemoryLedger(): Ledger {
  const books: Books = { accounts: new Map(), open: new Set() };
  return {
    reserve: async (reservation) => reserve(books, reservation),
    settle: async (settlement) => settle(books, settlement),
    release: async (id, requestId) => release(books, id, requestId),
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
    ...createReads(books.accounts),
  };
}

function accountOf({ accounts }: Books, id: string): Account {
  const account = accounts.get(id) ?? createAccount();
  accounts.set(id, account);
  return account;
}

function reserve(books: Books, reservation: Reservation): ReserveOutcome {
  checkReservation(reservation);
  const { account: id, requestId, amount, budget, expiresAt, facts } = reservation;
  const account = accountOf(books, id);
  if (account.holds.has(requestId) || account.refs.has(`charge ${requestId}`) || account.released.has(requestId))
    return 'duplicate';
  if (account.balance - account.held - amount < finite(reservation.floor)) return 'insufficient';
  if (budget) {
    const { spent, held } = budgetOf(account, budget.id);
    if (spent + held + amount > budget.limit) return 'over_budget';
    budgetOf(account, budget.id).held += amount;
  }
  account.held += amount;
  const hold = { account: id, requestId, amount, budget: budget?.id, expiresAt, facts };
  account.holds.set(requestId, hold);
  books.open.add(hold);
  return 'held';
}

function settle({ accounts, open }: Books, settlement: Settlement): boolean {
  checkAmount(settlement.amount);
  const account = accounts.get(settlement.account);
  const hold = account?.holds.get(settlement.requestId);
  if (!account || !hold) return correctSwept(account, settlement.requestId, settlement.amount, settlement.usage);
  open.delete(hold);
  charge(account, hold, settlement.amount, settlement.usage, settlement.now);
  return true;
}

function release({ accounts, open }: Books, id: string, requestId: string): boolean {
  const account = accounts.get(id);
  const hold = account?.holds.get(requestId);
  if (!account || !hold) return correctSwept(account, requestId, 0);
  open.delete(hold);
  dropHold(account, hold);
  account.released.set(requestId, hold.expiresAt + REMEMBER_MS);
  return true;
}

/** Corrects what the sweeper charged for a request that ends after it; false when it charged nothing. */
function correctSwept(account: Account | undefined, requestId: string, amount: number, usage?: UsageFacts): boolean {
  const swept = account?.swept.get(requestId);
  if (!account || !swept) return false;
  correct(account, swept, amount, usage, Date.now());
  return true;
}

function sweep(books: Books, now: number): number {
  let settled = 0;
  for (const hold of books.open) {
    if (hold.expiresAt >= now) continue;
    const { account, requestId, amount, facts } = hold;
    if (!settle(books, { account, requestId, amount, usage: expiredFacts(facts), now })) continue;
    settled += 1;
    accountOf(books, account).swept.set(requestId, { ...hold, at: now });
  }
  for (const account of books.accounts.values()) {
    for (const [requestId, until] of account.released) if (until < now) account.released.delete(requestId);
    for (const [requestId, { at }] of account.swept) if (at + CORRECTABLE_MS < now) account.swept.delete(requestId);
  }
  return settled;
}

function createReads(accounts: ReadonlyMap<string, Account>): Pick<Ledger, 'balance' | 'budget' | 'entries' | 'usage'> {
  return {
    balance: async (id) => {
      const { balance, held, spent, credited, updatedAt } = accounts.get(id) ?? createAccount();
      return { balance, held, spent, credited, updatedAt };
    },
    budget: async (id, budgetId) => ({ ...(accounts.get(id)?.budgets.get(budgetId) ?? { spent: 0, held: 0 }) }),
    entries: async (id, { limit, after }) => {
      const before = readCursor(after);
      const older = (accounts.get(id)?.entries ?? []).filter((entry) => Number(entry.id) < before);
      return older.slice(-pageLimit(limit)).reverse();
    },
    usage: async (id, from, to) => {
      const rows = [...(accounts.get(id)?.usage.values() ?? [])].filter((row) => row.day >= from && row.day <= to);
      return rows.map((row) => ({ ...row })).sort((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)));
    },
  };
}
