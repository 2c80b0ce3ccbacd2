import type { CallFilter, CallPage, CallQuery, CallRow, Ledger } from '../../../core/index.ts';
import {
  callCursor,
  chooseIndex,
  cleanFilter,
  type IndexedName,
  MOST_LOOKED_AT,
  readCallSpan,
} from '../kit/call-filter.ts';
import { hourOf, SUM_NAMES, unpackCall } from '../kit/call-rows.ts';
import { unreadable } from '../kit/failure.ts';
import type { Connection, Row, Value } from './connection.ts';
import { whole } from './ledger-reads.ts';

const COST = SUM_NAMES.indexOf('cost') + 1;
/** What of a filter is in which column; the names of accounts are in another one in each table. */
const COLUMNS = Object.freeze({
  requestId: 'request_id',
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

/** The column of each name that has an index together with `at, n`. */
const INDEX_COLUMNS: Readonly<Record<IndexedName, string>> = Object.freeze({ ...COLUMNS, account: 'name' });

/**
 * One statement: it looks at some records in the order of an index, keeps those that the filter means, and says where it stopped.
 * The column of the index stands in the order and in the bounds of the rows, so that no other index answers it: for a rare
 * value the planner would else go through the calls of all by their time.
 */
export function pageStatement(query: CallQuery) {
  const { from, to, limit, before } = readCallSpan(query);
  const filter = cleanFilter(query);
  const index = chooseIndex(filter);
  const end = before && before.at < to ? before : { at: to, tie: '' };
  const values: Value[] = [from, end.at, readTie(end.tie), limit + 1];
  let order = 'at DESC, n DESC';
  let bounds = 'at >= $1 AND (at, n) < ($2, $3)';
  if (index) {
    const column = INDEX_COLUMNS[index.name];
    const value = `$${values.push(index.value)}::text`;
    order = `${column} DESC, ${order}`;
    bounds = `(${column}, at) >= (${value}, $1) AND (${column}, at, n) < (${value}, $2, $3) AND ${column} IS NOT NULL`;
  }
  const isAllWanted = Object.keys(filter).length === Number(index !== undefined);
  const looked = isAllWanted ? limit + 1 : MOST_LOOKED_AT;
  const text = `WITH looked AS MATERIALIZED (SELECT * FROM tollgate.calls WHERE ${bounds} ORDER BY ${order} LIMIT ${looked}),
      found AS (SELECT * FROM looked WHERE true${filterSql(filter, 'name', values)} ORDER BY at DESC, n DESC LIMIT $4)
    SELECT f.ref, f.at, f.n, f.sums[${COST}] AS cost, f.request_id, f.session, f.outcome, f.facts,
      ARRAY[f.name, f.user_id, f.key, f.tags, f.operation, f.provider, f.model] AS dimensions,
      (SELECT count(*) FROM looked) AS looked, l.at AS last_at, l.n AS last_n
    FROM (SELECT at, n FROM looked ORDER BY at, n LIMIT 1) AS l LEFT JOIN found AS f ON true ORDER BY f.at DESC, f.n DESC`;
  return { text, values, limit, looked };
}

async function readPage(connection: Connection, query: CallQuery): Promise<CallPage> {
  const { text, values, limit, looked } = pageStatement(query);
  const rows = await connection.read('', text, values);
  const found = rows.filter((row) => row['ref'] !== null);
  const calls = found.slice(0, limit).map(readCall);
  const last = found[limit - 1];
  if (found.length > limit && last !== undefined)
    return { calls, next: callCursor({ at: whole(last['at']), tie: String(last['n']) }) };
  const [{ looked: count, last_at: at, last_n: n } = {}] = rows;
  if (whole(count) < looked) return { calls };
  return { calls, next: callCursor({ at: whole(at), tie: String(n) }) };
}

/** The place in the table that a cursor tells; one that tells none is before all calls of its moment. */
function readTie(tie: string): string {
  return /^\d{1,18}$/.test(tie) ? tie : '0';
}

function readCall(row: Row): CallRow {
  try {
    return unpackCall({
      id: String(row['ref']),
      requestId: String(row['request_id']),
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
