import type { AccountBalance, Ledger, LedgerEntry } from '../../../core/index.ts';
import { entryId, pageLimit, readCursor } from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import type { Connection } from './client.ts';
import type { AccountKeys, Keys } from './keys.ts';

const BALANCE = ['balance', 'held', 'spent', 'credited', 'updated_at'];

/** What is read of accounts and budgets. */
export function createReads(
  connection: Connection,
  keys: Keys,
): Pick<Ledger, 'balance' | 'accounts' | 'budgets' | 'entries'> {
  const readNumbers = async (key: string, fields: string[]): Promise<readonly number[]> =>
    (await connection.read((client) => client.hmGet(key, fields))).map(readWhole);
  const readBalance = async (of: AccountKeys): Promise<AccountBalance> => {
    const [balance = 0, held = 0, spent = 0, credited = 0, updatedAt = 0] = await readNumbers(of.account, BALANCE);
    return { balance, held, spent, credited, updatedAt };
  };
  return {
    balance: (account) => readBalance(keys.ofAccount(account)),
    accounts: async ({ limit, after }) => {
      const from = after === undefined ? '-' : `(${JSON.stringify(after)}`;
      const page = { LIMIT: { offset: 0, count: pageLimit(limit) } };
      const names = await connection.read((client) => client.zRangeByLex(keys.accounts, from, '+', page));
      return Promise.all(
        names.map(async (text) => {
          const account = readJson<string>(text);
          return { account, ...(await readBalance(keys.ofAccount(account))) };
        }),
      );
    },
    budgets: (ids) =>
      Promise.all(
        ids.map(async (id) => {
          const [spent = 0, held = 0] = await readNumbers(keys.budget(id), ['spent', 'held']);
          return { spent, held };
        }),
      ),
    entries: async (account, { limit, after }) => {
      const before = readCursor(after);
      const of = keys.ofAccount(account);
      const [last = 0] = await readNumbers(of.account, ['last_entry']);
      // The list ends with entry `last` and has no gaps: the place of an entry follows from its number.
      const skip = Math.max(0, last - before + 1);
      const lines = await connection.read((client) =>
        client.lRange(of.entries, -(skip + pageLimit(limit)), -(skip + 1)),
      );
      // Entries written between the two reads push the list along; they are newer than this page.
      return lines
        .map((line) => readEntry(account, line))
        .filter((entry) => Number(entry.id) < before)
        .reverse();
    },
  };
}

/** The name of an account. */
export async function nameOfAccount(connection: Connection, { account }: AccountKeys): Promise<string> {
  const [name] = await connection.read((client) => client.hmGet(account, ['name']));
  if (name == null) throw unreadable('name of an account');
  return readJson<string>(name);
}

function readWhole(text: string | null): number {
  const value = Number(text ?? 0);
  if (!Number.isSafeInteger(value)) throw unreadable('balance');
  return value;
}

/** Reads what a script or this gateway has written as JSON. */
export function readJson<T>(text: string): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable('ledger record', cause);
  }
}

function readEntry(account: string, line: string): LedgerEntry {
  const match = /^(\d+) (-?\d+) (\{.*\})$/s.exec(line);
  if (!match) throw unreadable('ledger entry');
  const { kind, reason, ref, at } = readJson<Pick<LedgerEntry, 'kind' | 'reason' | 'ref' | 'at'>>(match[3] ?? '');
  return { id: entryId(Number(match[1])), account, kind, amount: readWhole(match[2] ?? null), reason, ref, at };
}
