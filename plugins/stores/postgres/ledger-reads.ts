import type { AccountBalance, Ledger } from '../../../core/index.ts';
import { pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { readEntryRow } from '../kit/facts.ts';
import { unreadable } from '../kit/failure.ts';
import type { Connection, Row } from './connection.ts';

const BALANCE = 'SELECT balance, held, spent, credited, updated_at FROM tollgate.accounts WHERE id = $1';
/** An account that has no entry was only asked whether it covers a call. */
const ACCOUNTS = `SELECT id, name, balance, held, spent, credited, updated_at FROM tollgate.accounts
  WHERE id > $1 AND last_entry > 0 ORDER BY id LIMIT $2`;
const BUDGETS = 'SELECT id, spent, held FROM tollgate.budgets WHERE id = ANY ($1::text[])';
const ENTRIES =
  'SELECT n, kind, ref, amount, reason, at FROM tollgate.entries WHERE account = $1 AND n < $2 ORDER BY n DESC LIMIT $3';
const CLOCK = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS time';

const NOTHING = Object.freeze({ spent: 0, held: 0 });

/** What is read of accounts and budgets. */
export function createReads(
  connection: Connection,
): Pick<Required<Ledger>, 'balance' | 'accounts' | 'budgets' | 'entries' | 'clock'> {
  return {
    balance: async (account) => readBalance((await connection.read('balance', BALANCE, [storeKey(account)]))[0] ?? {}),
    accounts: async ({ limit, after }) => {
      const rows = await connection.read('accounts', ACCOUNTS, [
        after === undefined ? '' : storeKey(after),
        pageLimit(limit),
      ]);
      return rows.map((row) => ({ account: accountName(row['id'], row['name']), ...readBalance(row) }));
    },
    budgets: async (ids) => {
      const rows = await connection.read('budgets', BUDGETS, [ids.map(storeKey)]);
      const found = new Map(
        rows.map((row) => [String(row['id']), { spent: whole(row['spent']), held: whole(row['held']) }]),
      );
      return ids.map((id) => found.get(storeKey(id)) ?? NOTHING);
    },
    entries: async (account, { limit, after }) => {
      const rows = await connection.read('entries', ENTRIES, [storeKey(account), readCursor(after), pageLimit(limit)]);
      return rows.map((row) => readEntryRow(account, row, whole));
    },
    clock: async () => whole((await connection.read('clock', CLOCK, []))[0]?.['time']),
  };
}

/** What an account is called: its id, unless that is a hash and the name beside it. */
export function accountName(id: unknown, name: unknown): string {
  if (typeof name !== 'string') return String(id);
  try {
    return String(JSON.parse(name));
  } catch (cause) {
    throw unreadable('name of an account', cause);
  }
}

function readBalance(row: Row): AccountBalance {
  return {
    balance: whole(row['balance']),
    held: whole(row['held']),
    spent: whole(row['spent']),
    credited: whole(row['credited']),
    updatedAt: whole(row['updated_at']),
  };
}

/** A bigint of Postgres, which the driver gives as text, as a number. */
export function whole(value: unknown): number {
  const number = Number(value ?? 0);
  if (!Number.isSafeInteger(number)) throw unreadable('balance');
  return number;
}
