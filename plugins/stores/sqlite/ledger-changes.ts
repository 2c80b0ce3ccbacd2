import type { CallFacts, Reservation, ReserveResult } from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  finite,
  REMEMBER_MS,
  storeKey,
} from '../kit/check.ts';
import { chargeReason, correctionReason, expiredFacts, readFacts } from '../kit/facts.ts';
import { packName, readName } from './account-names.ts';
import { type CallKeys, type CallsTables, correctCall, recordCall } from './call-records.ts';
import type { LedgerSql } from './ledger-sql.ts';

// The changes of the ledger, each inside a transaction that the caller makes.

export interface LedgerTables extends CallsTables {
  readonly ledger: LedgerSql;
}

/** How many expired reservations one transaction of the sweeper settles. */
export const SWEEP_BATCH = 200;

/** Holds an estimate, once per request; what was written before a refusal is undone. */
export function reserve({ ledger: sql }: LedgerTables, reservation: Reservation): ReserveResult {
  checkReservation(reservation);
  const { amount, expiresAt, budgets = [] } = reservation;
  const account = storeKey(reservation.account);
  const ref = storeKey(reservation.requestId);
  const floor = finite(reservation.floor);
  const ids = budgets.map(({ id }) => storeKey(id));
  const facts = JSON.stringify(reservation.facts);
  const held = sql.hold.run(account, ref, amount, expiresAt, JSON.stringify(ids), facts);
  if (!held.changes) return { outcome: 'duplicate' };
  // An account without a row has nothing: it may only be made when nothing is enough.
  const isCovered =
    0 - amount >= floor
      ? sql.holdOnAny.run(account, packName(reservation.account, account), amount, floor).changes
      : sql.holdOnKnown.run(amount, account, amount, floor).changes;
  if (!isCovered) {
    sql.deleteHold.run(account, ref);
    return { outcome: 'insufficient' };
  }
  const result = ids.length === 0 ? HELD : holdInBudgets(sql, ids, reservation);
  if (result.outcome === 'held') return result;
  sql.deleteHold.run(account, ref);
  sql.releaseAccount.run(amount, account);
  return result;
}

const HELD: ReserveResult = Object.freeze({ outcome: 'held', used: [] });

/** Holds an amount in all budgets, or in none: what is used of them is read first. */
function holdInBudgets(sql: LedgerSql, ids: readonly string[], { amount, budgets = [] }: Reservation): ReserveResult {
  // A budget without a row has all of its limit.
  const known = Object.values(sql.usedOf(ids.length).get(...ids) ?? {});
  const used: number[] = [];
  const rows: (string | number | null)[] = [];
  for (const [at, { limit, until = null }] of budgets.entries()) {
    const before = Number(known[at] ?? 0);
    if (before + amount > finite(limit)) return { outcome: 'over_budget', budget: at, used: before };
    used.push(before + amount);
    rows.push(ids[at] ?? '', until);
  }
  sql.holdInBudgets(ids.length).run(amount, ...rows);
  return { outcome: 'held', used };
}

/** What of a budget is spent and held. */
export function readBudget(sql: LedgerSql, id: string) {
  const row = sql.budget.get(id);
  return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
}

/** How a request ends. */
export interface Ending {
  readonly of: CallKeys;
  /** What is charged; 0 for a release. */
  readonly amount: number;
  /** Undefined leaves no record. */
  readonly facts: CallFacts | undefined;
  readonly uncharged?: readonly string[] | undefined;
  readonly now: number;
}

/** Charges a held request; corrects the charge of a swept one. False when it is neither. */
export function settle(tables: LedgerTables, ending: Ending & { readonly facts: CallFacts }): boolean {
  checkAmount(ending.amount);
  const hold = endHold(tables.ledger, ending.of);
  if (!hold) return correctSwept(tables, ending);
  charge(tables, ending, hold);
  return true;
}

/** Ends a held request without a charge; false when it is not held. */
export function release(tables: LedgerTables, ending: Ending): boolean {
  const { ledger: sql } = tables;
  const { of, facts, now } = ending;
  const hold = endHold(sql, of);
  if (!hold) return correctSwept(tables, ending);
  sql.releaseAccount.run(hold.amount, of.account);
  chargeBudgets(sql, hold.budgets, hold.amount, 0);
  sql.finish.run(of.ref, of.account, 'charge', hold.expiresAt + REMEMBER_MS);
  if (facts) recordCall(tables, { of, facts, cost: 0, at: now });
  return true;
}

function charge(
  tables: LedgerTables,
  { of, amount, facts, uncharged, now }: Ending & { readonly facts: CallFacts },
  hold: EndedHold,
): void {
  const { ledger: sql } = tables;
  const { account, ref } = of;
  sql.finish.run(ref, account, 'charge', now + REMEMBER_MS);
  const entry = sql.addEntry.run(account, 'charge', ref, 0 - amount, chargeReason(facts), now).lastInsertRowid;
  sql.charge.run(hold.amount, amount, Number(entry), now, account);
  const [charged, free] = splitBudgets(hold.budgets, uncharged);
  chargeBudgets(sql, charged, hold.amount, amount);
  chargeBudgets(sql, free, hold.amount, 0);
  recordCall(tables, { of, facts, cost: amount, at: now });
}

/** Adds money once per `id`; false when it was added before. */
export function addCredit(
  { ledger: sql }: LedgerTables,
  name: string,
  id: string,
  amount: number,
  reason: string,
  now: number,
): boolean {
  checkCredit(amount);
  const [account, ref] = [storeKey(name), storeKey(id)];
  if (!sql.finish.run(ref, account, 'credit', null).changes) return false;
  const entry = sql.addEntry.run(account, 'credit', ref, amount, reason, now).lastInsertRowid;
  sql.credit.run(account, packName(name, account), amount, amount, Number(entry), now);
  return true;
}

/** Settles some expired reservations at their estimate; fewer than {@link SWEEP_BATCH} when there are no more. */
export function sweepSome(tables: LedgerTables, now: number): number {
  const { ledger: sql } = tables;
  const rows = sql.expired.all(now, SWEEP_BATCH);
  for (const row of rows) {
    const [account, ref] = [String(row['account']), String(row['ref'])];
    sql.sweep.run(now, now + CORRECTABLE_MS, account, ref);
    const of = { account, ref, name: readName(account, sql.accountName.get(account)?.['name']) };
    const hold = endHold(sql, of);
    if (hold) charge(tables, { of, amount: hold.amount, facts: expiredFacts(readFacts(row['facts'])), now }, hold);
  }
  return rows.length;
}

/** Replaces what the sweeper charged for a request by what it came to; false when the sweeper charged nothing. */
function correctSwept(tables: LedgerTables, { of, amount, facts, uncharged }: Ending): boolean {
  const { ledger: sql } = tables;
  const row = sql.endSwept.get(of.ref, of.account);
  if (!row) return false;
  const now = Date.now();
  const before = expiredFacts(readFacts(row['facts']));
  const after = facts ?? before;
  const charged = Number(row['amount']);
  const back = charged - amount;
  const entry = sql.addEntry.run(of.account, 'charge', of.ref, back, correctionReason(after), now).lastInsertRowid;
  sql.correct.run(back, Number(entry), now, of.account);
  const [paid, free] = splitBudgets(readIds(row['budgets']), uncharged);
  chargeBudgets(sql, paid, 0, 0 - back);
  chargeBudgets(sql, free, 0, 0 - charged);
  correctCall(tables, { of, facts: before, cost: charged, at: Number(row['at']) }, after, amount);
  return true;
}

interface EndedHold {
  readonly amount: number;
  /** Store keys. */
  readonly budgets: readonly string[];
  readonly expiresAt: number;
}

/** Removes the hold of a request that ends; undefined when there is none. */
function endHold(sql: LedgerSql, { account, ref }: CallKeys): EndedHold | undefined {
  const row = sql.endHold.get(account, ref);
  if (!row) return undefined;
  return { amount: Number(row['amount']), budgets: readIds(row['budgets']), expiresAt: Number(row['expires_at']) };
}

/** Those of a call's budgets that it is charged in, and those that it is not. */
function splitBudgets(ids: readonly string[], uncharged: readonly string[] = []) {
  if (uncharged.length === 0) return [ids, []] as const;
  const free = new Set(uncharged.map(storeKey));
  return [ids.filter((id) => !free.has(id)), ids.filter((id) => free.has(id))] as const;
}

function chargeBudgets(sql: LedgerSql, ids: readonly string[], held: number, spent: number): void {
  if (ids.length > 0) sql.chargeBudgets(ids.length).run(held, spent, ...ids);
}

function readIds(text: unknown): readonly string[] {
  return JSON.parse(String(text)) as readonly string[];
}
