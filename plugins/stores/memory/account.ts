import type { LedgerEntry, Reservation, UsageFacts, UsageRow } from '../../../core/index.ts';
import { entryId } from '../kit/check.ts';
import { chargeReason, correctionReason, countUsage, dayOf } from '../kit/usage.ts';

/** How many entries an account keeps; the oldest beyond that become one "carried forward" line. */
const MAX_ENTRIES = 10_000;
/** How many are carried forward at once. */
const CARRIED = 1000;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface Hold extends Pick<Reservation, 'account' | 'requestId' | 'amount' | 'expiresAt' | 'facts'> {
  readonly budget: string | undefined;
}

/** A hold that the sweeper has charged: its call may still end, which then corrects it. */
export interface Swept extends Hold {
  /** When it was swept: its usage row is of that day. */
  readonly at: number;
}

export interface Budget {
  spent: number;
  held: number;
}

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
  readonly budgets: Map<string, Budget>;
  /** By request id. */
  readonly swept: Map<string, Swept>;
  /** Oldest first. */
  readonly entries: LedgerEntry[];
  /** `kind ref` of every entry that is kept. */
  readonly refs: Set<string>;
  readonly usage: Map<string, Mutable<UsageRow>>;
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
    budgets: new Map(),
    swept: new Map(),
    entries: [],
    refs: new Set(),
    usage: new Map(),
  };
}

/** The budget of this id, made when it is new. */
export function budgetOf(account: Account, id: string): Budget {
  const known = account.budgets.get(id);
  if (known) return known;
  const budget = { spent: 0, held: 0 };
  account.budgets.set(id, budget);
  return budget;
}

/** Removes a hold from the account and its budget. */
export function dropHold(account: Account, hold: Hold): void {
  account.holds.delete(hold.requestId);
  account.held -= hold.amount;
  if (hold.budget !== undefined) budgetOf(account, hold.budget).held -= hold.amount;
}

/** Turns a hold into a charge of `amount`: entry, balance, budget and usage row. */
export function charge(account: Account, hold: Hold, amount: number, facts: UsageFacts, now: number): void {
  dropHold(account, hold);
  account.balance -= amount;
  account.spent += amount;
  account.updatedAt = now;
  if (hold.budget !== undefined) budgetOf(account, hold.budget).spent += amount;
  const entry = {
    account: hold.account,
    kind: 'charge',
    amount: 0 - amount,
    reason: chargeReason(facts),
    ref: hold.requestId,
    at: now,
  } as const;
  append(account, entry);
  addUsage(account, facts, amount, now);
}

/** Replaces what the sweeper charged by what the call came to. */
export function correct(
  account: Account,
  swept: Swept,
  amount: number,
  facts: UsageFacts | undefined,
  now: number,
): void {
  account.swept.delete(swept.requestId);
  const back = swept.amount - amount;
  account.balance += back;
  account.spent -= back;
  account.updatedAt = now;
  if (swept.budget !== undefined) budgetOf(account, swept.budget).spent -= back;
  const entry = { account: swept.account, kind: 'charge', amount: back, ref: swept.requestId, at: now } as const;
  append(account, { ...entry, reason: correctionReason(swept.facts) });
  const row = usageRow(account, swept.facts, swept.at);
  const counts = countUsage(facts ?? swept.facts);
  row.prompt_tokens += counts.promptTokens;
  row.completion_tokens += counts.completionTokens;
  row.characters += counts.characters;
  row.cost -= back;
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

function addUsage(account: Account, facts: UsageFacts, cost: number, now: number): void {
  const row = usageRow(account, facts, now);
  const counts = countUsage(facts);
  row.requests += 1;
  row.prompt_tokens += counts.promptTokens;
  row.completion_tokens += counts.completionTokens;
  row.characters += counts.characters;
  row.cost += cost;
}

/** The usage row of a call, made when it is new. */
function usageRow(account: Account, { operation, provider, model, key }: UsageFacts, now: number): Mutable<UsageRow> {
  const dimensions = { day: dayOf(now), operation, provider, model, key };
  const id = JSON.stringify(Object.values(dimensions));
  const known = account.usage.get(id);
  if (known) return known;
  const row = { ...dimensions, requests: 0, prompt_tokens: 0, completion_tokens: 0, characters: 0, cost: 0 };
  account.usage.set(id, row);
  return row;
}
