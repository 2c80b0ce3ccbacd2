import type { Reservation, ReserveOutcome, UsageFacts } from '../../../core/index.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  finite,
  REMEMBER_MS,
  storeKey,
} from '../kit/check.ts';
import { chargeReason, correctionReason, countUsage, dayOf, expiredFacts, readFacts } from '../kit/usage.ts';
import type { LedgerSql } from './ledger-sql.ts';

// The changes of the ledger, each inside a transaction that the caller makes. Accounts and ids are store keys.

/** How many expired reservations one transaction of the sweeper settles. */
export const SWEEP_BATCH = 200;

/** Holds an estimate, once per request; what was written before a refusal is undone. Takes names as the caller has them. */
export function reserve(sql: LedgerSql, reservation: Reservation): ReserveOutcome {
  checkReservation(reservation);
  const { amount, expiresAt } = reservation;
  const account = storeKey(reservation.account);
  const ref = storeKey(reservation.requestId);
  const budget = reservation.budget && { id: storeKey(reservation.budget.id), limit: reservation.budget.limit };
  const floor = finite(reservation.floor);
  const facts = JSON.stringify(reservation.facts);
  const held = sql.hold.run(account, ref, amount, expiresAt, budget?.id ?? null, facts, ref, account);
  if (!held.changes) return 'duplicate';
  // An account without a row has nothing: it may only be made when nothing is enough.
  const isCovered =
    0 - amount >= floor
      ? sql.holdOnAny.run(account, amount, floor).changes
      : sql.holdOnKnown.run(amount, account, amount, floor).changes;
  if (!isCovered) {
    sql.deleteHold.run(account, ref);
    return 'insufficient';
  }
  if (!budget) return 'held';
  const isInBudget =
    amount <= budget.limit && sql.holdInBudget.run(account, budget.id, amount, finite(budget.limit)).changes;
  if (isInBudget) return 'held';
  sql.deleteHold.run(account, ref);
  sql.releaseAccount.run(amount, account);
  return 'over_budget';
}

/**
 * Charges a held request with `actual`, or with its estimate when that is undefined; corrects the charge of a swept one. False when
 * it is neither.
 */
export function settle(
  sql: LedgerSql,
  account: string,
  ref: string,
  actual: number | undefined,
  facts: UsageFacts,
  now: number,
): boolean {
  if (actual !== undefined) checkAmount(actual);
  const hold = endHold(sql, account, ref);
  if (!hold) return correctSwept(sql, account, ref, actual ?? 0, facts);
  const amount = actual ?? hold.amount;
  sql.finish.run(ref, account, 'charge', now + REMEMBER_MS);
  const entry = sql.addEntry.run(account, 'charge', ref, 0 - amount, chargeReason(facts), now).lastInsertRowid;
  sql.charge.run(hold.amount, amount, amount, Number(entry), now, account);
  if (hold.budget !== null) sql.chargeBudget.run(hold.amount, amount, account, hold.budget);
  addUsage(sql, account, amount, facts, now);
  return true;
}

/** Ends a held request without a charge; false when it is not held. */
export function release(sql: LedgerSql, account: string, ref: string): boolean {
  const hold = endHold(sql, account, ref);
  if (!hold) return correctSwept(sql, account, ref, 0, undefined);
  sql.releaseAccount.run(hold.amount, account);
  if (hold.budget !== null) sql.chargeBudget.run(hold.amount, 0, account, hold.budget);
  sql.finish.run(ref, account, 'charge', hold.expiresAt + REMEMBER_MS);
  return true;
}

/** Adds money once per `ref`; false when it was added before. */
export function addCredit(
  sql: LedgerSql,
  account: string,
  ref: string,
  amount: number,
  reason: string,
  now: number,
): boolean {
  checkCredit(amount);
  if (!sql.finish.run(ref, account, 'credit', null).changes) return false;
  const entry = sql.addEntry.run(account, 'credit', ref, amount, reason, now).lastInsertRowid;
  sql.credit.run(account, amount, amount, Number(entry), now);
  return true;
}

/** Settles some expired reservations at their estimate; fewer than {@link SWEEP_BATCH} when there are no more. */
export function sweepSome(sql: LedgerSql, now: number): number {
  const rows = sql.expired.all(now, SWEEP_BATCH);
  for (const row of rows) {
    const facts = expiredFacts(readFacts(row['facts']));
    const account = String(row['account']);
    const ref = String(row['ref']);
    sql.sweep.run(now, now + CORRECTABLE_MS, account, ref);
    settle(sql, account, ref, undefined, facts, now);
  }
  return rows.length;
}

/** Replaces what the sweeper charged for a request by what it came to; false when the sweeper charged nothing. */
function correctSwept(
  sql: LedgerSql,
  account: string,
  ref: string,
  amount: number,
  usage: UsageFacts | undefined,
): boolean {
  const row = sql.endSwept.get(ref, account);
  if (!row) return false;
  const now = Date.now();
  const facts = readFacts(row['facts']);
  const back = Number(row['amount']) - amount;
  const entry = sql.addEntry.run(account, 'charge', ref, back, correctionReason(facts), now).lastInsertRowid;
  sql.correct.run(back, Number(entry), now, account);
  if (row['purse'] != null) sql.chargeBudget.run(0, 0 - back, account, String(row['purse']));
  const { promptTokens, completionTokens, characters } = countUsage(usage ?? facts);
  const { operation, provider, model, key } = facts;
  const where = [dayOf(Number(row['at'])), account, operation, provider, model, key] as const;
  sql.correctUsage.run(promptTokens, completionTokens, characters, back, ...where);
  return true;
}

/** Removes the hold of a request that ends; undefined when there is none. */
function endHold(sql: LedgerSql, account: string, ref: string) {
  const row = sql.endHold.get(account, ref);
  if (!row) return undefined;
  const budget = row['purse'] == null ? null : String(row['purse']);
  return { amount: Number(row['amount']), budget, expiresAt: Number(row['expires_at']) };
}

function addUsage(sql: LedgerSql, account: string, amount: number, facts: UsageFacts, now: number): void {
  const { operation, provider, model, key } = facts;
  const { promptTokens, completionTokens, characters } = countUsage(facts);
  const counts = [promptTokens, completionTokens, characters, amount] as const;
  sql.addUsage.run(dayOf(now), account, operation, provider, model, key, ...counts);
}
