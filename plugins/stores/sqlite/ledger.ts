import type { AccountBalance, AccountRow, Ledger, LedgerEntry } from '../../../core/index.ts';
import { pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { readEntryRow } from '../kit/facts.ts';
import { readName } from './account-names.ts';
import { createCallReads } from './call-reads.ts';
import { CallGroups, callKeys } from './call-records.ts';
import { prepareCalls } from './calls-sql.ts';
import type { Database, Statement } from './driver.ts';
import {
  addCredit,
  type LedgerTables,
  readBudget,
  release,
  reserve,
  SWEEP_BATCH,
  settle,
  sweepSome,
} from './ledger-changes.ts';
import { type LedgerSql, prepareLedger } from './ledger-sql.ts';
import type { Writer } from './writer.ts';

/** Money in SQLite: each change is part of a transaction of the {@link Writer}, and reads see what is queued there. */
export function createSqliteLedger(database: Database, writer: Writer): Ledger {
  const calls = prepareCalls(database);
  const groups = new CallGroups(calls);
  writer.onRollback(() => groups.clear());
  const sql = prepareLedger(database);
  const tables: LedgerTables = { ledger: sql, sql: calls, groups };
  return {
    reserve: (reservation) => writer.write('ledger.reserve', () => reserve(tables, reservation)),
    settle: ({ account, requestId, ...rest }) =>
      writer.write('ledger.settle', () => settle(tables, { of: callKeys(account, requestId), ...rest })),
    release: (account, requestId, facts, now = Date.now()) =>
      writer.write('ledger.release', () =>
        release(tables, { of: callKeys(account, requestId), amount: 0, facts, now }),
      ),
    credit: (account, id, amount, reason, now) =>
      writer.write('ledger.credit', () => addCredit(tables, account, id, amount, reason, now)),
    balance: (account) => writer.readLatest('ledger.balance', () => readBalance(sql.balance.get(storeKey(account)))),
    accounts: (page) => writer.readLatest('ledger.accounts', () => readAccounts(sql, page)),
    budgets: (ids) => writer.readLatest('ledger.budgets', () => ids.map((id) => readBudget(sql, storeKey(id)))),
    entries: (account, page) => writer.readLatest('ledger.entries', () => readEntries(sql, account, page)),
    sweep: async (now) => {
      let total = 0;
      for (let settled = SWEEP_BATCH; settled === SWEEP_BATCH; total += settled) {
        settled = await writer.write('ledger.sweep', () => sweepSome(tables, now));
      }
      return total;
    },
    ...createCallReads(tables, writer),
  };
}

// What the ledger answers, from the tables.

function readBalance(row: ReturnType<Statement['get']>): AccountBalance {
  return {
    balance: Number(row?.['balance'] ?? 0),
    held: Number(row?.['held'] ?? 0),
    spent: Number(row?.['spent'] ?? 0),
    credited: Number(row?.['credited'] ?? 0),
    updatedAt: Number(row?.['updated_at'] ?? 0),
  };
}

interface Page {
  readonly limit: number;
  readonly after?: string;
}

function readAccounts(sql: LedgerSql, { limit, after }: Page): readonly AccountRow[] {
  const rows = sql.accounts.all(after === undefined ? '' : storeKey(after), pageLimit(limit));
  return rows.map((row) => ({ account: readName(String(row['id']), row['name']), ...readBalance(row) }));
}

/** A page of an account's entries, newest first; `account` is its name as the caller has it. */
function readEntries(sql: LedgerSql, account: string, { limit, after }: Page): readonly LedgerEntry[] {
  const id = storeKey(account);
  const first = after === undefined ? sql.newest.get(id) : sql.older.get(readCursor(after), id);
  return sql.entries.all(Number(first?.['n'] ?? 0), pageLimit(limit)).map((row) => readEntryRow(account, row, Number));
}
