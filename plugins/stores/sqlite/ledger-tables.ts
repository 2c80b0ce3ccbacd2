import type {
  AccountBalance,
  LedgerEntry,
  Reservation,
  ReserveOutcome,
  UsageFacts,
  UsageRow,
} from '../../../core/index.ts';
import {
  checkCredit,
  checkReservation,
  checkSettlement,
  entryId,
  finite,
  pageLimit,
  REMEMBER_MS,
  readCursor,
} from '../kit/check.ts';
import { storeKey } from '../kit/key.ts';
import { chargeReason, countUsage, dayOf, daysBetween, expiredFacts, readFacts } from '../kit/usage.ts';
import type { Database, Row } from './database.ts';
import { prepareLedger } from './ledger-sql.ts';

/** How many expired reservations one transaction of the sweeper settles. */
export const SWEEP_BATCH = 200;

/** What a call that is not over holds. */
export interface Hold {
  readonly amount: number;
  readonly purse: string | null;
  readonly expiresAt: number;
}

export type LedgerTables = ReturnType<typeof createLedgerTables>;

/** Money in the tables: every change is part of a transaction that the caller makes. Takes and answers store keys. */
export function createLedgerTables(database: Database) {
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

  /** Removes the reservation of a call that ends; undefined when there is none. */
  const takeHold = (account: string, ref: string): Hold | undefined => readHold(sql.takeHold.get(account, ref));

  /** Remembers that a call is over, so that it is not reserved again. */
  const finish = (account: string, ref: string, until: number): void => {
    sql.finish.run(ref, account, 'charge', until);
  };

  /** The number of an account's newest entry; 0 when it has none. */
  const newestEntry = (account: string): number => Number(sql.newest.get(account)?.['n'] ?? 0);

  const settle = (
    account: string,
    requestId: string,
    actual: number | undefined,
    facts: UsageFacts,
    now: number,
  ): boolean => {
    if (actual !== undefined) checkSettlement({ amount: actual });
    const hold = takeHold(account, requestId);
    if (!hold) return false;
    const { amount: reserved, purse } = hold;
    const amount = actual ?? reserved;
    finish(account, requestId, now + REMEMBER_MS);
    const entry = sql.addEntry.run(account, 'charge', requestId, 0 - amount, chargeReason(facts), now).lastInsertRowid;
    sql.charge.run(reserved, amount, amount, Number(entry), now, account);
    if (purse !== null) sql.chargePurse.run(reserved, amount, account, purse);
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
    const hold = takeHold(account, requestId);
    if (!hold) return false;
    const { amount, purse, expiresAt } = hold;
    sql.unhold.run(amount, account);
    if (purse !== null) sql.chargePurse.run(amount, 0, account, purse);
    finish(account, requestId, expiresAt + REMEMBER_MS);
    return true;
  };

  const credit = (account: string, ref: string, amount: number, reason: string, now: number): boolean => {
    checkCredit(amount);
    if (!sql.finish.run(ref, account, 'credit', null).changes) return false;
    const entry = sql.addEntry.run(account, 'credit', ref, amount, reason, now).lastInsertRowid;
    sql.credit.run(account, amount, amount, Number(entry), now);
    return true;
  };

  /** Settles some expired reservations at their estimate; less than {@link SWEEP_BATCH} when there are no more. */
  const sweepSome = (now: number): number => {
    const rows = sql.expired.all(now, SWEEP_BATCH);
    for (const row of rows) {
      settle(String(row['account']), String(row['ref']), undefined, expiredFacts(readFacts(row['facts'])), now);
    }
    return rows.length;
  };

  return {
    reserve,
    settle,
    release,
    credit,
    sweepSome,
    takeHold,
    finish,
    newestEntry,
    balance: (account: string) => readBalance(sql.balance.get(account)),
    purse: (account: string, id: string) => {
      const row = sql.purse.get(account, id);
      return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
    },
    entries: (account: string, { limit, after }: { readonly limit: number; readonly after?: string }) => {
      const id = storeKey(account);
      const first = after === undefined ? newestEntry(id) : Number(sql.older.get(readCursor(after), id)?.['n'] ?? 0);
      return sql.entries.all(first, pageLimit(limit)).map((row) => readEntry(account, row));
    },
    usage: (account: string, from: string, to: string) =>
      daysBetween(from, to).flatMap((day) => sql.usage.all(day, account).map(readUsage)),
    /** Whether a request is reserved or over. */
    knows: (account: string, ref: string): boolean => sql.known.get(account, ref) !== undefined,
    /** The greatest id of a request that is reserved or over; empty when there is none. */
    newest: (): string =>
      [sql.newestFinished.get(), sql.newestHeld.get()].map((row) => `${row?.['ref'] ?? ''}`).sort()[1] ?? '',
    hold: (account: string, ref: string): Hold | undefined => readHold(sql.findHold.get(account, ref)),
  };
}

function readHold(row: Row | undefined): Hold | undefined {
  if (!row) return undefined;
  const purse = row['purse'] == null ? null : String(row['purse']);
  return { amount: Number(row['amount']), purse, expiresAt: Number(row['expires_at']) };
}

function readBalance(row: Row | undefined): AccountBalance {
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
