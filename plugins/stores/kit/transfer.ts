import type { AccountBalance, Ledger, LedgerEntry, TransferRow } from '../../../contract/index.ts';
import { storeKey } from './check.ts';
import type { BudgetRow, CallRecord, RequestRow } from './ledger.ts';
import {
  accountRowId,
  budgetRowId,
  type LedgerCommit,
  nextVersion,
  pack,
  type RollupChange,
  requestRowId,
  unpack,
  type WrittenEntry,
  type WrittenRecord,
  type WrittenRow,
} from './versioned-ledger.ts';

// Rows of a store in the form that all stores share. Accounts, requests, budgets and document keys are store keys.

interface DocumentRow {
  readonly is: 'document';
  readonly namespace: string;
  readonly key: string;
  /** As Keyv wrote it. */
  readonly value: string;
  /** Unix milliseconds. */
  readonly expires?: number;
}

interface MemberRow {
  readonly is: 'member';
  readonly set: string;
  readonly member: string;
}

interface NumberRow {
  readonly is: 'number';
  readonly key: string;
  readonly value: number;
}

/** Row of the ledger. Entries of one account are in order, and precede its account row. */
export type LedgerRow =
  | (Omit<LedgerEntry, 'id'> & { readonly is: 'entry'; readonly name: string })
  | (AccountBalance & { readonly is: 'account'; readonly account: string; readonly name: string })
  | (BudgetRow & { readonly is: 'budget' })
  | {
      readonly is: 'request';
      readonly account: string;
      readonly of: LedgerEntry['kind'];
      readonly ref: string;
      readonly request: RequestRow;
    }
  | (Omit<CallRecord, 'before'> & {
      readonly is: 'call';
      readonly account: string;
      readonly ref: string;
      readonly name: string;
    })
  | (RollupChange & { readonly is: 'hour' })
  | { readonly is: 'records_from'; readonly at: number };

export type MovedRow = DocumentRow | MemberRow | NumberRow | LedgerRow;

/** Types the rows that a store wrote. */
export function readMoved(rows: readonly TransferRow[]): readonly MovedRow[] {
  return rows as readonly MovedRow[];
}

const PAGE = 1000;

/** Reads the records of all calls, newest first. */
export async function* readCalls(ledger: Pick<Ledger, 'calls'>): AsyncGenerator<LedgerRow> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await ledger.calls({ limit: PAGE, ...(after !== '' && { after }) });
    for (const { id, account, cost, at, countedAt, ...facts } of page.calls)
      yield { is: 'call', account: storeKey(account), ref: id, name: account, facts, cost, at, countedAt };
    after = page.next;
  }
}

/** Converts a row of a versioned ledger. `until` is the time after which it may be deleted. */
export function toLedgerRow(id: string, text: string, until: number | undefined): LedgerRow {
  const row = unpack(id, text);
  if ('name' in row) {
    const { lastEntry: _, ...account } = row;
    return { is: 'account', account: id.slice(accountRowId('').length), ...account };
  }
  if (!('state' in row)) return { is: 'budget', ...row };
  const [of, account = '', ref = ''] = JSON.parse(id.slice(id.indexOf(':') + 1)) as readonly string[];
  const request = row.state === 'ended' ? { ...row, until } : row;
  return { is: 'request', of: of === 'credit' ? of : 'charge', account, ref, request };
}

/** Returns a function that adds rows to an empty versioned ledger. */
export function createLedgerWriter(
  commit: (changes: LedgerCommit) => Promise<unknown>,
): (rows: readonly MovedRow[]) => Promise<void> {
  /** Number and balance of each account's newest entry. */
  const balances = new Map<string, { readonly n: number; readonly balance: number }>();
  return async (moved) => {
    const rows: WrittenRow[] = [];
    const entries: WrittenEntry[] = [];
    const records: WrittenRecord[] = [];
    const rollup: RollupChange[] = [];
    for (const row of moved)
      if (row.is === 'entry') {
        const { n, balance } = balances.get(row.account) ?? { n: 0, balance: 0 };
        const next = { n: n + 1, balance: balance + row.amount };
        balances.set(row.account, next);
        entries.push({ ...row, ...next });
      } else if (row.is === 'account') {
        const { is: _, account, ...sums } = row;
        rows.push(pack(accountRowId(account), { ...sums, lastEntry: balances.get(account)?.n ?? 0 }));
      } else if (row.is === 'budget') rows.push(pack(budgetRowId(row.id), row));
      else if (row.is === 'request') {
        const { account, of, ref, request } = row;
        rows.push(pack(requestRowId({ account, kind: of, ref, name: '' }), request));
      } else if (row.is === 'call') records.push(row);
      else if (row.is === 'hour') rollup.push(row);
    if (rows.length + entries.length + records.length + rollup.length > 0)
      await commit({ expected: new Map(), version: nextVersion(), rows, entries, records, rollup });
  };
}
