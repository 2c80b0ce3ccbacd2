import type { CallFilter, CallPage, CallQuery, CallRow, Ledger } from '../../../core/index.ts';
import { callCursor, cleanFilter, readCallSpan } from '../kit/call-filter.ts';
import { hourOf, SUM_NAMES, unpackCall } from '../kit/call-rows.ts';
import { unreadable } from '../kit/failure.ts';
import type { Connection, Row, Value } from './connection.ts';
import { whole } from './ledger-reads.ts';
import { readInSlices } from './slices.ts';

const COST = SUM_NAMES.indexOf('cost') + 1;
const BOUNDS = 'SELECT min(at) AS first, max(at) AS last FROM tollgate.calls';
/** How many slices one page reads; what they did not find is for the next page. */
const MOST_SLICES = 60;

/** What of a filter is in which column; the names of accounts are in another one in each table. */
const COLUMNS = Object.freeze({
  userId: 'user_id',
  key: 'key',
  provider: 'provider',
  model: 'model',
  operation: 'operation',
  session: 'session',
  outcome: 'outcome',
} as const);

/** Conditions of a clean filter, each with `AND` before it; its values are appended to `values` and stand as parameters. */
export function filterSql(filter: CallFilter, accountColumn: string, values: Value[]): string {
  const conditions: string[] = [];
  const add = (value: string, write: (place: string) => string): void => {
    values.push(value);
    conditions.push(` AND ${write(`$${values.length}`)}`);
  };
  if (filter.account !== undefined) add(filter.account, (place) => `${accountColumn} = ${place}`);
  if (filter.tag !== undefined) add(filter.tag, (place) => `tags::jsonb ? ${place}`);
  for (const [name, column] of Object.entries(COLUMNS)) {
    const value = filter[name as keyof typeof COLUMNS];
    if (value !== undefined) add(value, (place) => `${column} = ${place}`);
  }
  return conditions.join('');
}

/** The records of calls: pages of them, and forgetting. */
export function createCallReads(connection: Connection): Pick<Ledger, 'calls' | 'forgetCalls'> {
  return {
    calls: (query) => readPage(connection, query),
    forgetCalls: async (before) => {
      for (let total = 0; ; ) {
        const forgotten = whole((await connection.write('forget_calls', [hourOf(before)]))['result']);
        total += forgotten;
        if (forgotten === 0) return total;
      }
    },
  };
}

async function readPage(connection: Connection, query: CallQuery): Promise<CallPage> {
  const { limit, before, ...wanted } = readCallSpan(query);
  const filter = cleanFilter(query);
  const [bounds = {}] = await connection.read('calls_bounds', BOUNDS, []);
  if (bounds['last'] === null) return { calls: [] };
  const span = {
    from: Math.max(wanted.from, whole(bounds['first'])),
    to: Math.min(wanted.to, whole(bounds['last']) + 1, (before?.at ?? Number.MAX_SAFE_INTEGER - 1) + 1),
  };
  const cursor = before ?? { at: span.to, tie: '' };
  const rows: Row[] = [];
  const stopped = await readInSlices(span, async (slice, count) => {
    const values: Value[] = [slice.from, slice.to, cursor.at, readTie(cursor.tie), limit + 1 - rows.length];
    const text = `SELECT ref, at, n, sums[${COST}] AS cost, session, outcome, facts,
      ARRAY[name, user_id, key, tags, operation, provider, model] AS dimensions FROM tollgate.calls WHERE at >= $1 AND at < $2
      AND (at, n) < ($3, $4)${filterSql(filter, 'name', values)} ORDER BY at DESC, n DESC LIMIT $5`;
    rows.push(...(await connection.read('', text, values)));
    return rows.length <= limit && count < MOST_SLICES;
  });
  const calls = rows.slice(0, limit).map(readCall);
  const last = rows[limit - 1];
  if (rows.length > limit && last !== undefined)
    return { calls, next: callCursor({ at: whole(last['at']), tie: String(last['n']) }) };
  return { calls, ...(stopped !== undefined && stopped > span.from && { next: callCursor({ at: stopped, tie: '' }) }) };
}

/** The place in the table that a cursor tells; one that tells none is before all calls of its moment. */
function readTie(tie: string): string {
  return /^\d{1,18}$/.test(tie) ? tie : '0';
}

function readCall(row: Row): CallRow {
  try {
    return unpackCall({
      id: String(row['ref']),
      cost: whole(row['cost']),
      at: whole(row['at']),
      outcome: row['outcome'] as CallRow['outcome'],
      dimensions: row['dimensions'] as readonly string[],
      session: row['session'] == null ? undefined : String(row['session']),
      packed: String(row['facts']),
    });
  } catch (cause) {
    throw unreadable('record of a call', cause);
  }
}
