import type {
  CallFilter,
  CallPage,
  CallQuery,
  CallRow,
  Ledger,
  ReportQuery,
  ReportRow,
} from '../../../contract/index.ts';
import {
  callCursor,
  chooseIndex,
  cleanFilter,
  createCallTest,
  type IndexedName,
  isPlainAddress,
  isPlainText,
  MOST_LOOKED_AT,
  readCallSpan,
} from '../kit/call-filter.ts';
import {
  dimensionsOf,
  hourOf,
  otherFacts,
  ROLLUP_DIMENSIONS,
  readTotals,
  SUM_NAMES,
  sumsOf,
  unpackCall,
} from '../kit/call-rows.ts';
import { NotedTerms, PART_MS, partOf, termRows, termsOfQuery } from '../kit/call-terms.ts';
import { digest, pageLimit, readCursor, storeKey, whole } from '../kit/check.ts';
import { factText, readEntryRow } from '../kit/facts.ts';
import { storeRefused, unreadable } from '../kit/failure.ts';
import type { JournalMove, JournalMover, JournalRows } from '../kit/journal-mover.ts';
import { createBudgetShares, createLedgerChanges, type LedgerKeys, NEW_ACCOUNT } from '../kit/ledger.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import {
  accountRowId,
  createVersionedLedger,
  type LedgerCommit,
  type RollupChange,
  readAccountRow,
  readBudgets,
  requestKeysOf,
  type StoredRow,
  type VersionedRows,
  type WrittenEntry,
  type WrittenRecord,
} from '../kit/versioned-ledger.ts';
import { type Connection, explainSchemaOf, type Row, readDetail, sqlState, type Value } from './connection.ts';
import { CONFLICT, UNREADABLE } from './functions.ts';
import { createPostgresRename } from './rename.ts';
import { VERSION } from './schema.ts';

const READ = 'SELECT id, version, row AS text FROM tollgate.ledger WHERE id = ANY ($1::text[])';
const SWEEP_BATCH = 200;
const EXPIRED = `SELECT l.id AS request, a.id, a.version, a.row AS text FROM tollgate.ledger AS l
  JOIN tollgate.ledger AS a ON a.id = 'account:' || (substr(l.id, 9)::json ->> 1)
  WHERE l.due < $1 ORDER BY l.due LIMIT ${SWEEP_BATCH}`;
/** Accounts without entries have only holds. */
const ACCOUNTS = `SELECT id, version, row AS text FROM tollgate.ledger
  WHERE id > $1 AND id < 'account;' AND (row::json ->> 'last_entry')::bigint > 0 ORDER BY id LIMIT $2`;
const ENTRIES =
  'SELECT n, kind, ref, amount, reason, at FROM tollgate.entries WHERE account = $1 AND n < $2 ORDER BY n DESC LIMIT $3';
const CLOCK = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS time';

const JOURNAL_IS_EMPTY = 'SELECT NOT EXISTS (SELECT FROM tollgate.journal ORDER BY n LIMIT 1) AS empty';
const DAMAGED = 'SELECT count(*) AS count FROM tollgate.damaged_journal';

/** Journal in Postgres; a database function moves its rows. */
export function createJournal(connection: Connection): JournalRows {
  return {
    kind: 'postgres',
    damagedName: 'tollgate.damaged_journal',
    isEmpty: async () => (await connection.read('journal_is_empty', JOURNAL_IS_EMPTY, []))[0]?.['empty'] === true,
    move: async () => {
      const { state, damaged } = await connection.write('move_journal', []);
      return { state: state as JournalMove['state'], damaged: whole(damaged) };
    },
    countDamaged: async () => whole((await connection.read('damaged_journal', DAMAGED, []))[0]?.['count']),
  };
}

/** Ledger in Postgres: `kit/ledger.ts` decides; one function compares row versions and writes. */
export function createPostgresLedger(connection: Connection, timeoutMs: number, journal: JournalMover): Ledger {
  const rows = createRows(connection, timeoutMs, journal);
  const transact = createVersionedLedger(rows);
  const reads: Pick<Ledger, 'calls' | 'report'> = {
    report: async (query) => {
      await journal.drain();
      return readReport(connection, query);
    },
    calls: async (query) => {
      await journal.drain();
      return readPage(connection, query);
    },
  };
  return {
    ...reads,
    rename: createPostgresRename(connection, { ...reads, drain: () => journal.drain() }),
    ...createLedgerChanges({
      transact,
      findExpired: async (now) => (await connection.read('expired', EXPIRED, [now])).map(readExpired),
    }),
    ...createBudgetShares({ transact }),
    balance: async (account) => {
      const [row] = await rows.read([accountRowId(storeKey(account))]);
      const { balance, held, spent, credited, updatedAt } = row ? readAccountRow(row) : NEW_ACCOUNT;
      return { balance, held, spent, credited, updatedAt };
    },
    accounts: async ({ limit, after }) => {
      const from = accountRowId(after === undefined ? '' : storeKey(after));
      const found = await connection.read('accounts', ACCOUNTS, [from, pageLimit(limit)]);
      return found.map((row) => {
        const { name, lastEntry: _, ...balance } = readAccountRow(readStored(row));
        return { account: name, ...balance };
      });
    },
    budgets: (ids) => readBudgets(rows.read, ids),
    entries: async (account, { limit, after }) => {
      await journal.drain();
      const found = await connection.read('entries', ENTRIES, [storeKey(account), readCursor(after), pageLimit(limit)]);
      return found.map((row) => readEntryRow(account, row, whole));
    },
    clock: async () => whole((await connection.read('clock', CLOCK, []))[0]?.['time']),
    forgetCalls: async (before) => {
      await journal.drain();
      return forgetCalls(connection, before);
    },
  };
}

function readExpired(row: Row): LedgerKeys {
  return requestKeysOf(String(row['request']), () => readAccountRow(readStored(row)).name);
}

export function createRows(connection: Connection, timeoutMs: number, journal: JournalMover): VersionedRows {
  const read = async (ids: readonly string[]) => (await connection.read('read_ledger', READ, [ids])).map(readStored);
  const noted = new NotedTerms();
  return {
    kind: 'postgres',
    timeoutMs,
    now: connection.now,
    reconnected: connection.reconnected,
    read,
    commit: async ({ expected, version, rows, turn = null, ...ends }) => {
      const ids = [...expected.keys()];
      const { terms, keep } = newTerms(noted, ends.records);
      const packed = packEnds(ends, terms);
      const values = [String(VERSION), ids, [...expected.values()], version, JSON.stringify(rows), packed, turn];
      try {
        const { result } = await connection.write('change_ledger', values);
        if (result !== null) return (result as readonly Row[]).map(readStored);
        if (packed !== null) journal.moveLater();
        keep();
        return undefined;
      } catch (error) {
        const { cause } = error as Error;
        if (RETRIED.has(sqlState(cause) ?? '')) return read(ids);
        if (sqlState(cause) === UNREADABLE) throw storeRefused(explainSchemaOf(readDetail(cause)), cause);
        throw error;
      }
    },
  };
}

function readStored({ id, version, text }: Row): StoredRow {
  return { id: String(id), version: String(version), text: String(text) };
}

/** Transaction rolled back because of others: deadlock, serialization, {@link CONFLICT}. */
const RETRIED: ReadonlySet<string> = new Set(['40P01', '40001', CONFLICT]);

/** Packs a journal row: ends of calls for `move_journal`. Null if no call has ended. */
function packEnds(
  { entries, records, rollup }: Pick<LedgerCommit, 'entries' | 'records' | 'rollup'>,
  terms: ReturnType<typeof termRows>,
): string | null {
  if (entries.length + records.length + rollup.length === 0) return null;
  return JSON.stringify({
    entries: entries.map(packEntry),
    calls: records.filter(({ before }) => !before).map(packRecord),
    corrected: records.filter(({ before }) => before).map(packRecord),
    rollup: rollup.map(packSums),
    terms,
  });
}

/** Terms of records that this process has not written yet. `keep` remembers them, after their commit. */
function newTerms(
  noted: NotedTerms,
  records: readonly WrittenRecord[],
): { readonly terms: ReturnType<typeof termRows>; keep(): void } {
  const rows: ReturnType<typeof termRows>[number][] = [];
  const written: (() => void)[] = [];
  for (const { at, facts, cost } of records) {
    const news = noted.findNew(at, facts, cost);
    if (news.length === 0) continue;
    rows.push(...termRows(at, news));
    written.push(() => noted.keep(at, news));
  }
  return {
    terms: rows,
    keep: () => {
      for (const each of written) each();
    },
  };
}

function packEntry({ account, n, kind, ref, amount, reason, at }: WrittenEntry): object {
  return { account, n, kind, ref, amount, reason: reason.replace(/[\0\p{Surrogate}]/gu, ''), at };
}

function packRecord({ account, ref, name, facts, cost, at, countedAt }: WrittenRecord): object {
  const { userId, key, operation, provider, model, requestId, session, outcome } = facts;
  const [shown, , , tags] = dimensionsOf(factText(name), facts);
  return {
    account,
    ref,
    at,
    counted_at: countedAt,
    name: shown,
    user_id: userId,
    key,
    tags,
    operation,
    provider,
    model,
    request_id: requestId,
    session,
    outcome,
    sums: sumsOf(facts, cost),
    // The column is text, and receives this as JSON.
    facts: otherFacts(facts),
  };
}

function packSums({ hour, dimensions, sums }: RollupChange): object {
  const packed: Record<string, unknown> = { hour, id: digest(JSON.stringify(dimensions)) };
  for (const [at, name] of ROLLUP_DIMENSIONS.entries()) packed[name === 'user' ? 'user_id' : name] = dimensions[at];
  for (const [at, name] of SUM_NAMES.entries()) packed[name] = sums[at];
  return packed;
}

export const RECORDS_FROM = "SELECT value FROM tollgate.meta WHERE name = 'records_from'";
/** Maximum number of groups from one slice: more than a report may have. */
const MOST_GROUPS = 50_001;

/** Sources of a report, with their columns. */
const SOURCES = Object.freeze({
  all: {
    table: 'tollgate.hours',
    time: 'hour',
    account: "''",
    bounds: 'SELECT min(hour) AS first, max(hour) AS last FROM tollgate.hours',
    sums: SUM_NAMES.map((name) => `sum(${name})`).join(', '),
  },
  hours: {
    table: 'tollgate.rollup',
    time: 'hour',
    account: 'account',
    bounds: 'SELECT min(hour) AS first, max(hour) AS last FROM tollgate.rollup',
    sums: SUM_NAMES.map((name) => `sum(${name})`).join(', '),
  },
  calls: {
    table: 'tollgate.calls',
    time: 'counted_at',
    account: 'name',
    bounds: 'SELECT min(counted_at) AS first, max(counted_at) AS last FROM tollgate.calls',
    sums: SUM_NAMES.map((_, index) => `sum(sums[${index + 1}])`).join(', '),
  },
} as const);

type Source = keyof typeof SOURCES;

/** Sums calls for a report: Postgres groups the rows of each slice of time, and this process merges the slices. */
async function readReport(connection: Connection, query: ReportQuery): Promise<readonly ReportRow[]> {
  const readFrom = async (): Promise<number> =>
    whole((await connection.read('records_from', RECORDS_FROM, []))[0]?.['value'] ?? 0);
  for (;;) {
    const from = await readFrom();
    const report = createReport(query, from);
    for (const source of [report.isOfAll ? 'all' : 'hours', 'calls'] as const)
      await readSource(connection, query, report, source);
    // Records deleted meanwhile may be missing, so read again without them.
    if ((await readFrom()) === from) return report.rows();
  }
}

async function readSource(connection: Connection, query: ReportQuery, report: Report, of: Source): Promise<void> {
  const spans = report.spans.filter((span) => span.of === (of === 'calls' ? 'calls' : 'hours'));
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
  // Spans do not overlap: a row inside a span has an odd number of edges before it.
  const edges = spans.flatMap(({ from, to }) => [from, to]);
  const values: Value[] = [edges, edges[0] ?? 0, edges.at(-1) ?? 0, MOST_GROUPS];
  const names: Readonly<Record<string, string>> = { account, user: 'user_id' };
  // Unrequested dimensions become one group.
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
    const totals = readTotals(row['sums'] as readonly string[]);
    report.add(interval, found, typeof session === 'string' ? session : undefined, totals);
  }
}

/** Period of time: `from` (inclusive) to `to` (exclusive), in Unix milliseconds. */
interface Slice {
  readonly from: number;
  readonly to: number;
}

const FIRST_MS = 3_600_000;
/** Faster slices double the length of the next one; slower slices halve it. */
const QUICK_MS = 40;
const SLOW_MS = 120;

/**
 * Reads a span from its end in slices, so that each statement stays far below its time limit, however many rows there
 * are. The length of a slice depends on the duration of the previous ones. `read` returns false to stop. Returns the
 * position where it stopped; undefined at the beginning of the span.
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
/** Columns of filter fields. The column of account names differs per table. */
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

/** Returns the SQL conditions of a clean filter, each with a leading `AND`. Appends their parameters to `values`. */
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

async function forgetCalls(connection: Connection, before: number): Promise<number> {
  const { day } = partOf(hourOf(before));
  while (whole((await connection.write('forget_terms', [day]))['result']) > 0);
  for (let total = 0; ; ) {
    const forgotten = whole((await connection.write('forget_calls', [hourOf(before)]))['result']);
    total += forgotten;
    if (forgotten === 0) return total;
  }
}

/** Returns the SQL conditions of a search, as {@link filterSql} does. They find a superset of the records. */
function searchSql(query: CallQuery, values: Value[]): string {
  const { endUser, address, errorCode, status, requested, minCost, minDurationMs, search } = query;
  const conditions: string[] = [];
  const add = (value: string | number | undefined, write: (place: string) => string): void => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(` AND ${write(`$${values.length}`)}`);
  };
  add(minCost, (place) => `sums[${COST}] >= ${place}`);
  add(minDurationMs, (place) => `(facts::jsonb ->> 'durationMs')::bigint >= ${place}`);
  add(errorCode, (place) => `facts::jsonb ->> 'errorCode' = ${place}`);
  add(endUser && factText(endUser), (place) => `facts::jsonb ->> 'endUser' = ${place}`);
  add(requested, (place) => `coalesce(facts::jsonb ->> 'requested', model) = ${place}`);
  add(status && JSON.stringify({ attempts: [{ status }] }), (place) => `facts::jsonb @> ${place}::jsonb`);
  if (isPlainAddress(address)) add(address, (place) => `strpos(facts, ${place}) > 0`);
  if (isPlainText(search)) add(search?.toLowerCase(), (place) => `strpos(${SEARCHED}, ${place}) > 0`);
  return conditions.join('');
}

/** Texts of a record with the names that a search may name a part of. */
const SEARCHED = `lower(concat_ws(' ', facts, user_id, name, key, tags, model, provider, session, ref, request_id))`;

/** Columns of the names that have an index together with `at, n`. */
const INDEX_COLUMNS: Readonly<Record<IndexedName, string>> = Object.freeze({ ...COLUMNS, account: 'name' });

/**
 * Builds the statement of a page. It scans some records in index order, keeps those that match the filter, and returns
 * where it stopped. The index column is part of the order and the row bounds, so that no other index is used. Otherwise
 * the planner would scan all calls by time for a rare value. With `parts`, it scans these parts of time.
 */
export function pageStatement(query: CallQuery, parts?: readonly number[]) {
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
  const test = createCallTest(query);
  const isAllWanted = !test && Object.keys(filter).length === Number(index !== undefined);
  const looked = isAllWanted ? limit + 1 : MOST_LOOKED_AT;
  // The conditions find a superset of these, so all of its rows are tested.
  if (query.search !== undefined || query.address !== undefined) values[3] = MOST_LOOKED_AT;
  const isFailed = index === undefined && (filter.outcome ?? 'ok') !== 'ok';
  const scanned = parts
    ? `SELECT * FROM tollgate.calls_of_parts($${values.push([...parts])}::bigint[], $1, $2, $3, ${isFailed})`
    : `SELECT * FROM tollgate.calls WHERE ${isFailed ? "outcome <> 'ok' AND " : ''}${bounds} ORDER BY ${order} LIMIT ${looked}`;
  const text = `WITH looked AS MATERIALIZED (${scanned}),
      found AS (SELECT * FROM looked WHERE true${filterSql(filter, 'name', values)}${searchSql(query, values)}
        ORDER BY at DESC, n DESC LIMIT $4)
    SELECT f.ref, f.at, f.counted_at, f.n, f.sums[${COST}] AS cost, f.request_id, f.session, f.outcome, f.facts,
      ARRAY[f.name, f.user_id, f.key, f.tags, f.operation, f.provider, f.model] AS dimensions,
      (SELECT count(*) FROM looked) AS looked, l.at AS last_at, l.n AS last_n
    FROM (SELECT at, n FROM looked ORDER BY at, n LIMIT 1) AS l LEFT JOIN found AS f ON true ORDER BY f.at DESC, f.n DESC`;
  return { text, values, limit, looked, test };
}

const TERMS_FROM = "SELECT value FROM tollgate.meta WHERE name = 'terms_from'";
const FIND_PARTS = 'SELECT start FROM tollgate.find_parts($1::jsonb, $2, $3, $4) AS start';
/** Number of parts that one statement reads at least. */
const MOST_PARTS = 200;
/** The same of failed calls: more take longer than all failed calls of their time. */
const MOST_PARTS_OF_FAILED = 100;
/** Time after every record. */
const FOREVER = 8_640_000_000_000_000;

/** Parts of time with the terms of a page, newest first. */
interface FoundParts {
  readonly starts: readonly number[];
  /** Where the search continues: below the parts, or below the records with terms. */
  readonly next: number | undefined;
}

/** Finds the parts of time that a page should read; undefined if it should read all records of its index. */
async function findParts(connection: Connection, query: CallQuery): Promise<FoundParts | undefined> {
  const filter = cleanFilter(query);
  const { outcome, ...others } = query;
  // Most failed calls are errors, which have an index.
  const lists = termsOfQuery(outcome === 'error' ? others : query);
  // An index by a name has few records.
  if (lists.length === 0 || chooseIndex(filter) !== undefined) return undefined;
  const { from, to, before } = readCallSpan(query);
  const end = Math.min(before && before.at < to ? before.at + 1 : to, FOREVER);
  const since = whole((await connection.read('terms_from', TERMS_FROM, []))[0]?.['value'] ?? 0);
  const first = Math.max(from, since);
  if (first >= end) return undefined;
  const isFailed = (filter.outcome ?? 'ok') !== 'ok';
  const most = isFailed ? MOST_PARTS_OF_FAILED : Math.max(MOST_PARTS, Math.min(query.limit, MOST_LOOKED_AT / 2));
  const span = [Math.floor(first / PART_MS), Math.floor((end - 1) / PART_MS), most] as const;
  const rows = await connection.read('find_parts', FIND_PARTS, [JSON.stringify(lists), ...span]);
  const found = rows.map(({ start }) => whole(start));
  const hasMore = rows.length > 0 && Number(rows.at(-1)?.['start']) === -1;
  const starts = hasMore ? found.slice(0, -1) : found;
  if (hasMore && isFailed) return undefined;
  const lowest = hasMore ? starts.at(-1) : undefined;
  return { starts, next: lowest ?? (since > from ? since : undefined) };
}

async function readPage(connection: Connection, query: CallQuery): Promise<CallPage> {
  const parts = await findParts(connection, query);
  if (parts?.starts.length === 0)
    return parts.next === undefined ? { calls: [] } : readPage(connection, { ...query, to: parts.next });
  const { text, values, limit, looked, test } = pageStatement(query, parts?.starts);
  const rows = await connection.read('', text, values);
  const found: { readonly row: Row; readonly call: CallRow }[] = [];
  for (const row of rows) {
    if (row['ref'] === null || found.length > limit) continue;
    const call = readCall(row);
    if (test?.(call) !== false) found.push({ row, call });
  }
  const calls = found.slice(0, limit).map(({ call }) => call);
  const last = found[limit - 1]?.row;
  if (found.length > limit && last !== undefined)
    return { calls, next: callCursor({ at: whole(last['at']), tie: String(last['n']) }) };
  const pageBefore = (at: number, tie: string): CallPage => ({ calls, next: callCursor({ at, tie }), searchedTo: at });
  if (parts) return parts.next === undefined ? { calls } : pageBefore(parts.next, '');
  const [{ looked: count, last_at: at, last_n: n } = {}] = rows;
  if (whole(count ?? 0) < looked) return { calls };
  return pageBefore(whole(at), String(n));
}

/** Reads the table position of a cursor; without a position, the cursor is before all calls of its millisecond. */
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
      countedAt: whole(row['counted_at']),
      outcome: row['outcome'] as CallRow['outcome'],
      dimensions: row['dimensions'] as readonly string[],
      session: row['session'] == null ? undefined : String(row['session']),
      packed: String(row['facts']),
    });
  } catch (cause) {
    throw unreadable('record of a call', cause);
  }
}
