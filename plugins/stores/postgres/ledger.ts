import type {
  CallFacts,
  CallFilter,
  CallPage,
  CallQuery,
  CallRow,
  Ledger,
  ReportQuery,
  ReportRow,
  Reservation,
  ReserveResult,
} from '../../../core/index.ts';
import {
  callCursor,
  chooseIndex,
  cleanFilter,
  type IndexedName,
  MOST_LOOKED_AT,
  readCallSpan,
} from '../kit/call-filter.ts';
import { dimensionsOf, hourOf, packFacts, ROLLUP_DIMENSIONS, SUM_NAMES, sumsOf, unpackCall } from '../kit/call-rows.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  digest,
  finite,
  REMEMBER_MS,
  storeKey,
} from '../kit/check.ts';
import { chargeReason, cleanFacts, correctionReason, expiredFacts, factText, readFacts } from '../kit/facts.ts';
import { unreadable } from '../kit/failure.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import type { Connection, Row, Value } from './connection.ts';
import { accountName, createReads, whole } from './ledger-reads.ts';

const SWEEP_BATCH = 100;
const EXPIRED =
  'SELECT h.account, h.ref, h.facts, a.name FROM tollgate.holds AS h JOIN tollgate.accounts AS a ON a.id = h.account WHERE h.expires_at < $1 ORDER BY h.expires_at LIMIT $2';

/** Money in Postgres: one function per change, which locks the account first. */
export function createPostgresLedger(connection: Connection): Ledger {
  return {
    reserve: (reservation) => reserve(connection, reservation),
    settle: async ({ account, requestId, amount, facts, uncharged = [], now }) => {
      checkAmount(amount);
      return settle(connection, { account, requestId, amount, facts, uncharged, now });
    },
    release: async (account, requestId, facts, now = Date.now()) => {
      const about = facts ? callValues({ account, facts, cost: 0 }) : NOTHING_KNOWN;
      const values = [storeKey(account), storeKey(requestId), now, REMEMBER_MS, ...about];
      return (await connection.write('release', values))['result'] === true;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const values = [...accountValues(account), storeKey(id), amount, reason.replaceAll('\0', ''), now];
      return (await connection.write('credit', values))['result'] === true;
    },
    sweep: (now) => sweep(connection, now),
    report: (query) => readReport(connection, query),
    ...createReads(connection),
    ...createCallReads(connection),
  };
}

/** The id of an account's row, and what the account is called where that is another text. */
function accountValues(account: string): readonly [string, string | null] {
  const id = storeKey(account);
  return [id, id === account ? null : JSON.stringify(account)];
}

async function reserve(connection: Connection, reservation: Reservation): Promise<ReserveResult> {
  checkReservation(reservation);
  const { account, requestId, amount, floor, expiresAt, budgets = [], facts } = reservation;
  const { outcome, refused, used_ } = await connection.write('reserve', [
    ...accountValues(account),
    ...[storeKey(requestId), amount, finite(floor), expiresAt],
    budgets.map(({ id }) => storeKey(id)),
    budgets.map(({ limit }) => finite(limit)),
    // A late correction of the sweeper's charge still finds the budget.
    budgets.map(({ until }) => (until === undefined ? null : until + CORRECTABLE_MS)),
    JSON.stringify(facts),
  ]);
  if (outcome === 'insufficient' || outcome === 'duplicate') return { outcome };
  const used = (used_ as readonly string[]).map(Number);
  if (outcome === 'held') return { outcome, used };
  const budget = Number(refused) - 1;
  if (outcome !== 'over_budget') throw unreadable('reservation');
  return { outcome, budget, used: used[budget] ?? 0 };
}

interface Ended {
  readonly account: string;
  readonly facts: CallFacts;
  readonly cost: number;
}

/** What a function writes into the rollup and the record of a call. */
function callValues({ account, facts, cost }: Ended): readonly Value[] {
  const clean = cleanFacts(facts);
  const dimensions = dimensionsOf(factText(account), clean);
  return [
    digest(JSON.stringify(dimensions)),
    [...dimensions, clean.requestId],
    sumsOf(clean, cost),
    clean.session ?? null,
    clean.outcome,
    packFacts(clean),
  ];
}

const NOTHING_KNOWN: readonly Value[] = Object.freeze([null, null, null, null, null, null]);

interface Charge extends Omit<Ended, 'cost'> {
  readonly requestId: string;
  /** What the call cost; null for what was reserved. */
  readonly amount: number | null;
  readonly uncharged: readonly string[];
  readonly now: number;
}

async function settle(connection: Connection, charge: Charge): Promise<boolean> {
  const { account, requestId, amount, facts, uncharged, now } = charge;
  const { result } = await connection.write('settle', [
    ...[storeKey(account), storeKey(requestId), amount, now],
    chargeReason(facts).replaceAll('\0', ''),
    correctionReason(facts).replaceAll('\0', ''),
    CORRECTABLE_MS,
    uncharged.map(storeKey),
    ...callValues({ account, facts, cost: amount ?? 0 }),
  ]);
  return result === true;
}

/** Settles expired reservations batch by batch. A batch of which nothing could be settled ends it. */
async function sweep(connection: Connection, now: number): Promise<number> {
  for (let total = 0; ; ) {
    const rows = await connection.read('expired', EXPIRED, [now, SWEEP_BATCH]);
    let settled = 0;
    for (const row of rows) if (await sweepOne(connection, row, now)) settled += 1;
    total += settled;
    if (settled === 0 || rows.length < SWEEP_BATCH) return total;
  }
}

async function sweepOne(connection: Connection, row: Row, now: number): Promise<boolean> {
  const facts = expiredFacts(readFacts(row['facts']));
  const account = accountName(row['account'], row['name']);
  return settle(connection, { account, requestId: String(row['ref']), amount: null, facts, uncharged: [], now });
}

const RECORDS_FROM = "SELECT value FROM tollgate.meta WHERE name = 'records_from'";
/** The most groups that one slice answers: more than a report may have. */
const MOST_GROUPS = 50_001;

/** What a report is read from, and how it is written there. */
const SOURCES = Object.freeze({
  hours: {
    table: 'tollgate.rollup',
    time: 'hour',
    account: 'account',
    bounds: 'SELECT min(hour) AS first, max(hour) AS last FROM tollgate.rollup',
    sums: SUM_NAMES.map((name) => `sum(${name})`).join(', '),
  },
  calls: {
    table: 'tollgate.calls',
    time: 'at',
    account: 'name',
    bounds: 'SELECT min(at) AS first, max(at) AS last FROM tollgate.calls',
    sums: SUM_NAMES.map((_, index) => `sum(sums[${index + 1}])`).join(', '),
  },
} as const);

type Source = keyof typeof SOURCES;

/** Sums what calls did: Postgres groups the rows of each slice of time, here slices are put together. */
async function readReport(connection: Connection, query: ReportQuery): Promise<readonly ReportRow[]> {
  const readFrom = async (): Promise<number> =>
    whole((await connection.read('records_from', RECORDS_FROM, []))[0]?.['value']);
  for (;;) {
    const from = await readFrom();
    const report = createReport(query, from);
    for (const source of ['hours', 'calls'] as const) await readSource(connection, query, report, source);
    // Records that were forgotten meanwhile may be missing: then once more, without them.
    if ((await readFrom()) === from) return report.rows();
  }
}

async function readSource(connection: Connection, query: ReportQuery, report: Report, of: Source): Promise<void> {
  const spans = report.spans.filter((span) => span.of === of);
  const [first, last] = [spans[0], spans.at(-1)];
  if (!first || !last) return;
  const { bounds } = SOURCES[of];
  const [known = {}] = await connection.read(`bounds_of_${of}`, bounds, []);
  if (known['last'] === null) return;
  const span = { from: Math.max(first.from, whole(known['first'])), to: Math.min(last.to, whole(known['last']) + 1) };
  await readInSlices(span, async (slice) => {
    await readSlice(connection, query, report, of, clip(spans, slice));
    return true;
  });
}

function clip(spans: readonly ReportSpan[], { from, to }: Slice): readonly ReportSpan[] {
  return spans
    .filter((span) => span.from < to && span.to > from)
    .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, to) }));
}

async function readSlice(
  connection: Connection,
  { by }: ReportQuery,
  report: Report,
  of: Source,
  spans: readonly ReportSpan[],
): Promise<void> {
  if (spans.length === 0) return;
  const { table, time, account, sums } = SOURCES[of];
  // Spans are apart from each other: what is in one has an odd number of their edges before it.
  const edges = spans.flatMap(({ from, to }) => [from, to]);
  const values: Value[] = [edges, edges[0] ?? 0, edges.at(-1) ?? 0, MOST_GROUPS];
  const names: Readonly<Record<string, string>> = { account, user: 'user_id' };
  // What is not asked for is one group.
  const dimensions = ROLLUP_DIMENSIONS.map((name) => (by.includes(name) ? (names[name] ?? name) : "''"));
  const groups = [...dimensions, report.bySession ? 'session' : 'NULL'].map((column, at) => `${column} AS d${at}`);
  const places = ['place', ...groups.map((_, at) => `d${at}`)].join(', ');
  const text = `SELECT ${places}, ARRAY[${sums}]::text[] AS sums FROM (
      SELECT width_bucket(${time}, $1::bigint[]) AS place, ${groups.join(', ')}, r.* FROM ${table} AS r
      WHERE ${time} >= $2 AND ${time} < $3${filterSql(report.filter, account, values)}) AS found
    WHERE place % 2 = 1 GROUP BY ${places} LIMIT $4`;
  for (const row of await connection.read('', text, values)) {
    const interval = spans[(Number(row['place']) - 1) / 2]?.interval ?? 0;
    const found = ROLLUP_DIMENSIONS.map((_, at) => String(row[`d${at}`] ?? ''));
    const session = row[`d${ROLLUP_DIMENSIONS.length}`];
    const totals = (row['sums'] as readonly string[]).map(whole);
    report.add(interval, found, typeof session === 'string' ? session : undefined, totals);
  }
}

/** A span of time: `from` (inclusive) to `to` (exclusive), in Unix milliseconds. */
interface Slice {
  readonly from: number;
  readonly to: number;
}

const FIRST_MS = 3_600_000;
/** A slice that took less is followed by one twice as long, one that took more by one half as long. */
const QUICK_MS = 40;
const SLOW_MS = 120;

/**
 * Reads a span from its end in slices, so that no statement comes near its bound however many rows there are: each slice is as
 * long as those before it allow. `read` says whether to go on; answers where it stopped, undefined at the beginning of the span.
 */
async function readInSlices(
  span: Slice,
  read: (slice: Slice, count: number) => Promise<boolean>,
): Promise<number | undefined> {
  let length = FIRST_MS;
  let { to } = span;
  for (let count = 1; to > span.from; count++) {
    const from = Math.max(span.from, to - length);
    const begun = performance.now();
    if (!(await read({ from, to }, count))) return from;
    const took = performance.now() - begun;
    if (took < QUICK_MS) length *= 2;
    else if (took > SLOW_MS) length = Math.max(FIRST_MS / 60, length / 2);
    to = from;
  }
  return undefined;
}

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
function filterSql(filter: CallFilter, accountColumn: string, values: Value[]): string {
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
function createCallReads(connection: Connection): Pick<Ledger, 'calls' | 'forgetCalls'> {
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
