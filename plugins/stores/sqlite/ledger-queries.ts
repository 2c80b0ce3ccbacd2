import type { AccountBalance, LedgerEntry, UsageRow } from '../../../core/index.ts';
import { pageLimit, readCursor } from '../kit/check.ts';
import { storeKey } from '../kit/key.ts';
import { readEntryRow, readUsageRow } from '../kit/ledger-rows.ts';
import { daysBetween } from '../kit/usage.ts';
import type { LedgerSql } from './ledger-sql.ts';

// What the ledger answers, from the tables. Accounts and ids are store keys.

export function readBalance(sql: LedgerSql, account: string): AccountBalance {
  const row = sql.balance.get(account);
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

export function readBudget(sql: LedgerSql, account: string, id: string) {
  const row = sql.budget.get(account, id);
  return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
}

/** A page of an account's entries, newest first; `account` is its name as the caller has it. */
export function readEntries(
  sql: LedgerSql,
  account: string,
  { limit, after }: { readonly limit: number; readonly after?: string },
): readonly LedgerEntry[] {
  const id = storeKey(account);
  const first = after === undefined ? sql.newest.get(id) : sql.older.get(readCursor(after), id);
  return sql.entries.all(Number(first?.['n'] ?? 0), pageLimit(limit)).map((row) => readEntryRow(account, row, Number));
}

/** The usage rows of all days from `from` to `to`. */
export function readUsage(sql: LedgerSql, account: string, from: string, to: string): readonly UsageRow[] {
  return daysBetween(from, to).flatMap((day) => sql.usage.all(day, account).map((row) => readUsageRow(row, Number)));
}
