import type { AccountBalance, Ledger, LedgerEntry, UsageRow } from '../../../core/index.ts';
import { pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { daysBetween, readEntryRow, readUsageRow } from '../kit/usage.ts';
import type { Database } from './driver.ts';
import { addCredit, release, reserve, SWEEP_BATCH, settle, sweepSome } from './ledger-changes.ts';
import { type LedgerSql, prepareLedger } from './ledger-sql.ts';
import type { Writer } from './writer.ts';

/** Money in SQLite: each change is part of a transaction of the {@link Writer}, and reads see what is queued there. */
export function createSqliteLedger(database: Database, writer: Writer): Ledger {
  const sql = prepareLedger(database);
  return {
    reserve: (reservation) => writer.write(() => reserve(sql, reservation)),
    settle: ({ account, requestId, amount, usage, now }) =>
      writer.write(() => settle(sql, storeKey(account), storeKey(requestId), amount, usage, now)),
    release: (account, requestId) => writer.write(() => release(sql, storeKey(account), storeKey(requestId))),
    credit: (account, id, amount, reason, now) =>
      writer.write(() => addCredit(sql, storeKey(account), storeKey(id), amount, reason, now)),
    balance: (account) => writer.readLatest(() => readBalance(sql, storeKey(account))),
    budget: (account, id) => writer.readLatest(() => readBudget(sql, storeKey(account), storeKey(id))),
    entries: (account, page) => writer.readLatest(() => readEntries(sql, account, page)),
    usage: (account, from, to) => writer.readLatest(() => readUsage(sql, storeKey(account), from, to)),
    sweep: async (now) => {
      let total = 0;
      for (let settled = SWEEP_BATCH; settled === SWEEP_BATCH; total += settled) {
        settled = await writer.write(() => sweepSome(sql, now));
      }
      return total;
    },
  };
}

// What the ledger answers, from the tables. Accounts and ids are store keys.

function readBalance(sql: LedgerSql, account: string): AccountBalance {
  const row = sql.balance.get(account);
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

function readBudget(sql: LedgerSql, account: string, id: string) {
  const row = sql.budget.get(account, id);
  return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
}

/** A page of an account's entries, newest first; `account` is its name as the caller has it. */
function readEntries(
  sql: LedgerSql,
  account: string,
  { limit, after }: { readonly limit: number; readonly after?: string },
): readonly LedgerEntry[] {
  const id = storeKey(account);
  const first = after === undefined ? sql.newest.get(id) : sql.older.get(readCursor(after), id);
  return sql.entries.all(Number(first?.['n'] ?? 0), pageLimit(limit)).map((row) => readEntryRow(account, row, Number));
}

/** The usage rows of all days from `from` to `to`. */
function readUsage(sql: LedgerSql, account: string, from: string, to: string): readonly UsageRow[] {
  return daysBetween(from, to).flatMap((day) => sql.usage.all(day, account).map((row) => readUsageRow(row, Number)));
}
