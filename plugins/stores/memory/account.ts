import type { BudgetState, CallFacts, LedgerEntry, Reservation } from '../../../core/index.ts';
import { entryId } from '../kit/check.ts';
import { chargeReason, correctionReason } from '../kit/facts.ts';

/** How many entries an account keeps; the oldest beyond that become one "carried forward" line. */
const MAX_ENTRIES = 10_000;
/** How many are carried forward at once. */
const CARRIED = 1000;

export interface Hold extends Pick<Reservation, 'account' | 'requestId' | 'amount' | 'expiresAt' | 'facts'> {
  readonly budgets: readonly string[];
}

/** A hold that the sweeper has charged: its call may still end, which then corrects it. */
export interface Swept extends Hold {
  /** When it was swept: its record is of that time. */
  readonly at: number;
}

/** What one budget has spent and holds, over all accounts. */
export type Budget = { -readonly [K in keyof BudgetState]: BudgetState[K] } & { readonly until: number | undefined };

export type Budgets = ReadonlyMap<string, Budget>;

/** One account's books in this process. */
export interface Account {
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

export function createAccount(): Account {
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
export function dropHold(account: Account, budgets: Budgets, hold: Hold): void {
  account.holds.delete(hold.requestId);
  account.held -= hold.amount;
  for (const id of hold.budgets) {
    const budget = budgets.get(id);
    if (budget) budget.held -= hold.amount;
  }
}

/** Adds to what the budgets of a hold have spent, but to those in `uncharged`. */
export function spend(budgets: Budgets, hold: Hold, amount: number, uncharged: readonly string[] = []): void {
  for (const id of hold.budgets) {
    const budget = budgets.get(id);
    if (budget && !uncharged.includes(id)) budget.spent += amount;
  }
}

/** Turns a dropped hold into a charge of `amount`: entry and balance. */
export function charge(account: Account, hold: Hold, amount: number, facts: CallFacts, now: number): void {
  account.balance -= amount;
  account.spent += amount;
  account.updatedAt = now;
  const entry = { account: hold.account, kind: 'charge', ref: hold.requestId, at: now } as const;
  append(account, { ...entry, amount: 0 - amount, reason: chargeReason(facts) });
}

/** Replaces what the sweeper charged by what the call came to. */
export function correct(account: Account, swept: Swept, amount: number, facts: CallFacts, now: number): void {
  account.swept.delete(swept.requestId);
  const back = swept.amount - amount;
  account.balance += back;
  account.spent -= back;
  account.updatedAt = now;
  const entry = { account: swept.account, kind: 'charge', amount: back, ref: swept.requestId, at: now } as const;
  append(account, { ...entry, reason: correctionReason(facts) });
}

/** Adds an entry to the books; when there are too many, the oldest ones become one line. */
export function append(account: Account, entry: Omit<LedgerEntry, 'id'>): void {
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
