import type { Ledger, LedgerEntry, Reservation, ReserveOutcome, UsageFacts, UsageRow } from '../../../core/index.ts';
import {
  checkCredit,
  checkReservation,
  checkSettlement,
  entryId,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../parts/check.ts';
import { storeKey } from '../parts/key.ts';
import { chargeReason, countUsage, dayOf, daysBetween, expiredFacts, readFacts } from '../parts/usage.ts';
import type { Database, Row } from './database.ts';
import { prepareLedger } from './ledger-sql.ts';
import type { Writer } from './writer.ts';

/** How many expired reservations one transaction of the sweeper settles. */
const SWEEP_BATCH = 200;

/**
 * Money in SQLite: every change is one part of a transaction of the {@link Writer}. Nobody waits for a settlement or a
 * release, and a crash before it leaves a hold for the sweeper: they ride with the next reservation.
 */
export function createSqliteLedger(database: Database, writer: Writer): Ledger {
  const sql = prepareLedger(database);

  const reserve = (reservation: Reservation): ReserveOutcome => {
    checkReservation(reservation);
    const facts = JSON.stringify(reservation.facts);
    const { amount, purse, expiresAt } = reservation;
    const account = storeKey(reservation.account);
    const requestId = storeKey(reservation.requestId);
    const purseId = purse && storeKey(purse.id);
    const floor = finite(reservation.floor);
    const held = sql.hold.run(account, requestId, amount, expiresAt, purseId ?? null, facts, requestId, account);
    if (!held.changes) return 'duplicate';
    // An account without a row has nothing: it may only be made when nothing is enough.
    const admitted =
      0 - amount >= floor
        ? sql.holdOnAny.run(account, amount, floor)
        : sql.holdOnKnown.run(amount, account, amount, floor);
    if (!admitted.changes) {
      sql.dropHold.run(account, requestId);
      return 'insufficient';
    }
    if (
      purse &&
      purseId !== undefined &&
      (amount > purse.limit || !sql.holdInPurse.run(account, purseId, amount, finite(purse.limit)).changes)
    ) {
      sql.dropHold.run(account, requestId);
      sql.unhold.run(amount, account);
      return 'over_budget';
    }
    return 'held';
  };

  const settle = (
    account: string,
    requestId: string,
    actual: number | undefined,
    facts: UsageFacts,
    now: number,
  ): boolean => {
    const hold = sql.takeHold.get(account, requestId);
    if (!hold) return false;
    const reserved = Number(hold['amount']);
    const amount = actual ?? reserved;
    sql.finish.run(requestId, account, 'charge', now + REMEMBER_MS);
    const entry = sql.addEntry.run(account, 'charge', requestId, 0 - amount, chargeReason(facts), now).lastInsertRowid;
    sql.charge.run(reserved, amount, amount, Number(entry), now, account);
    if (hold['purse'] != null) sql.chargePurse.run(reserved, amount, account, hold['purse']);
    const { operation, provider, model, key } = facts;
    const { promptTokens, completionTokens, characters } = countUsage(facts);
    sql.addUsage.run(
      dayOf(now),
      account,
      operation,
      provider,
      model,
      key,
      promptTokens,
      completionTokens,
      characters,
      amount,
    );
    return true;
  };

  const release = (account: string, requestId: string): boolean => {
    const hold = sql.takeHold.get(account, requestId);
    if (!hold) return false;
    const amount = Number(hold['amount']);
    sql.unhold.run(amount, account);
    if (hold['purse'] != null) sql.chargePurse.run(amount, 0, account, hold['purse']);
    sql.finish.run(requestId, account, 'charge', Number(hold['expires_at']) + REMEMBER_MS);
    return true;
  };

  const credit = (account: string, ref: string, amount: number, reason: string, now: number): boolean => {
    if (!sql.finish.run(ref, account, 'credit', null).changes) return false;
    const entry = sql.addEntry.run(account, 'credit', ref, amount, reason, now).lastInsertRowid;
    sql.credit.run(account, amount, amount, Number(entry), now);
    return true;
  };

  const sweepSome = (now: number): number => {
    const rows = sql.expired.all(now, SWEEP_BATCH);
    for (const row of rows) {
      settle(String(row['account']), String(row['ref']), undefined, expiredFacts(readFacts(row['facts'])), now);
    }
    return rows.length;
  };

  return {
    reserve: (reservation) => writer.write(() => reserve(reservation)),
    settle: (settlement) =>
      writer.write(() => {
        checkSettlement(settlement);
        const { account, requestId, amount, usage, now } = settlement;
        return settle(storeKey(account), storeKey(requestId), amount, usage, now);
      }, 'later'),
    release: (account, requestId) => writer.write(() => release(storeKey(account), storeKey(requestId)), 'later'),
    credit: (account, id, amount, reason, now) =>
      writer.write(() => {
        checkCredit(amount);
        return credit(storeKey(account), storeKey(id), amount, reason, now);
      }),
    balance: (account) => writer.readLatest(() => readBalance(sql.balance.get(storeKey(account)))),
    purse: (account, id) =>
      writer.readLatest(() => {
        const row = sql.purse.get(storeKey(account), storeKey(id));
        return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
      }),
    entries: (account, { limit, after }) =>
      writer.readLatest(() => {
        const id = storeKey(account);
        const first = after === undefined ? sql.newest.get(id) : sql.older.get(readCursor(after), id);
        return sql.entries.all(Number(first?.['n'] ?? 0), pageLimit(limit)).map((row) => readEntry(account, row));
      }),
    usage: (account, from, to) =>
      writer.readLatest(() =>
        daysBetween(from, to).flatMap((day) => sql.usage.all(day, storeKey(account)).map(readUsage)),
      ),
    sweep: async (now) => {
      let total = 0;
      for (let settled = SWEEP_BATCH; settled === SWEEP_BATCH; total += settled) {
        settled = await writer.write(() => sweepSome(now));
      }
      return total;
    },
  };
}

function readBalance(row: Row | undefined) {
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

function readUsage(row: Row): UsageRow {
  return { ...row } as unknown as UsageRow;
}

function readEntry(account: string, row: Row): LedgerEntry {
  return {
    id: entryId(Number(row['n'])),
    account,
    kind: row['kind'] === 'credit' ? 'credit' : 'charge',
    amount: Number(row['amount']),
    reason: String(row['reason']),
    ref: String(row['ref']),
    at: Number(row['at']),
  };
}
