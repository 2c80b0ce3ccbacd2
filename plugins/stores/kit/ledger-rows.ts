import type { LedgerEntry, UsageRow } from '../../../core/index.ts';
import { entryId } from './check.ts';

/** A row as a database's driver gives it. */
type Row = Readonly<Record<string, unknown>>;

/** An entry of the books out of a row; `toNumber` reads the driver's form of a whole number. */
export function readEntryRow(account: string, row: Row, toNumber: (value: unknown) => number): LedgerEntry {
  return {
    id: entryId(toNumber(row['n'])),
    account,
    kind: row['kind'] === 'credit' ? 'credit' : 'charge',
    amount: toNumber(row['amount']),
    reason: String(row['reason']),
    ref: String(row['ref']),
    at: toNumber(row['at']),
  };
}

/** A row of usage; `toNumber` reads the driver's form of a whole number. */
export function readUsageRow(row: Row, toNumber: (value: unknown) => number): UsageRow {
  return {
    day: String(row['day']),
    operation: String(row['operation']),
    provider: String(row['provider']),
    model: String(row['model']),
    key: String(row['key']),
    requests: toNumber(row['requests']),
    prompt_tokens: toNumber(row['prompt_tokens']),
    completion_tokens: toNumber(row['completion_tokens']),
    characters: toNumber(row['characters']),
    cost: toNumber(row['cost']),
  };
}
