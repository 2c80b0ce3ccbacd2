import type {
  AccountRow,
  CallFilter,
  CallPage,
  CallQuery,
  CallRow,
  Ledger,
  LedgerEntry,
  Log,
  ReportQuery,
  ReportRow,
} from '../../../contract/index.ts';
import {
  type CallCursor,
  type ChosenIndex,
  callCursor,
  chooseIndex,
  cleanFilter,
  createCallTest,
  isPlainAddress,
  isPlainText,
  MOST_LOOKED_AT,
  noCallCursor,
  readCallSpan,
} from '../kit/call-filter.ts';
import {
  hourOf,
  LONGEST_LAG_MS,
  ROLLUP_DIMENSIONS,
  readTotals,
  SUM_NAMES,
  type Totals,
  unpackCall,
} from '../kit/call-rows.ts';
import { pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { factText, readEntryRow } from '../kit/facts.ts';
import { createLedgerChanges } from '../kit/ledger.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import { PIECE_MS, Turns } from '../kit/turns.ts';
import type { SearchLimits } from './call-terms.ts';
import { prepareCalls, type RecordWay } from './calls-sql.ts';
import type { Database, SqlValue, Statement } from './driver.ts';
import { type CallGroups, type CallNames, type CallsTables, Journal, openCallsTables } from './journal.ts';
import { type LedgerSql, LedgerTables, readBalance, readBudgetStart, readName } from './ledger-rows.ts';
import { createSqliteRename } from './rename.ts';
import type { Writer } from './writer.ts';

/** Minimum number of concurrent calls for shared commits. */
const LOAD = 4;

/** Ledger in SQLite, and the journal of rows that are not yet in its tables. */
export interface SqliteLedger {
  readonly ledger: Ledger;
  readonly journal: Journal;
}

/**
 * Opens a ledger in SQLite. Each change is part of a transaction of the {@link Writer}, and reads see its queued
 * changes. A connection must have only one ledger: a second one would miss its writes.
 */
export function openSqliteLedger(database: Database, writer: Writer, log?: Log): SqliteLedger {
  const tables = new LedgerTables(database, writer);
  const calls = openCallsTables(prepareCalls(database));
  const journal = new Journal(database, writer, calls, tables.flush, log);
  tables.useJournal(journal);
  writer.useLoad(() => tables.heldCount >= LOAD);
  const ledger = createLedger(tables, writer, journal, calls);
  const rename = createSqliteRename(database, { ledger, tables, writer, journal, calls });
  return { ledger: { ...ledger, rename }, journal };
}

function createLedger(tables: LedgerTables, writer: Writer, journal: Journal, calls: CallsTables): Ledger {
  const { sql } = tables;
  const read = <T>(operation: string, query: () => T): Promise<T> =>
    writer.readLatest(operation, () => {
      tables.flush();
      return query();
    });
  return {
    ...createLedgerChanges({
      transact: (operation, keys, change) => writer.write(operation, () => tables.apply(keys, change)),
      findExpired: (now) => read('ledger.sweep', () => tables.findExpired(now)),
    }),
    balance: (account) => read('ledger.balance', () => readBalance(sql.sums.get('account', storeKey(account)))),
    accounts: (page) => read('ledger.accounts', () => readAccounts(sql, page)),
    budgets: (ids) =>
      read('ledger.budgets', () =>
        ids.map((id) => {
          const row = sql.sums.get('budget', storeKey(id));
          const sums = { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
          const start = readBudgetStart(row?.['name']);
          return start ? { ...sums, start } : sums;
        }),
      ),
    entries: (account, page) => journal.read('ledger.entries', () => readEntries(sql, account, page)),
    ...createCallReads(calls, writer, journal),
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

/** Reads a page of an account's entries, newest first. `account` is its name as the caller gave it. */
function readEntries(sql: LedgerSql, account: string, { limit, after }: Page): readonly LedgerEntry[] {
  const id = storeKey(account);
  const first = after === undefined ? sql.newest.get(id) : sql.older.get(readCursor(after), id);
  return sql.entries.all(Number(first?.['n'] ?? 0), pageLimit(limit)).map((row) => readEntryRow(account, row, Number));
}

/** Number of records that one statement scans between two reads of the clock. */
const STEP = 250;
/** Number of rollup rows or records that one statement of a report sums. */
const PIECE = 5000;
/** Number of records that one transaction deletes. */
const FORGET_BATCH = 2000;

type Row = ReturnType<Statement['all']>[number];

/** Creates the ledger's queries about calls, and their deletion. */
export function createCallReads(
  tables: CallsTables,
  writer: Writer,
  journal: Pick<Journal, 'read'>,
): Pick<Ledger, 'calls' | 'report' | 'forgetCalls'> {
  const wholeBefore = () => Number(tables.sql.wholeBefore.get()?.['value'] ?? 0);
  const turns = new Turns();
  return {
    async calls(query) {
      await turns.next();
      return journal.read('ledger.calls', () => readPage(tables, query));
    },
    async report(query) {
      for (;;) {
        const known = await journal.read('ledger.report', wholeBefore);
        const rows = await readReport(tables, writer, turns, query, known);
        // Records deleted meanwhile may be missing, so read again without them.
        if ((await writer.readLatest('ledger.report', wholeBefore)) === known) return rows;
      }
    },
    async forgetCalls(before) {
      const whole = hourOf(before);
      await journal.read('ledger.forgetCalls', () => undefined);
      await writer.write('ledger.forgetCalls', () => tables.sql.markWhole.run(whole));
      for (let deleted = FORGET_BATCH; deleted === FORGET_BATCH; )
        deleted = await writer.write('ledger.forgetCalls', () => tables.terms.forget(whole, FORGET_BATCH));
      let total = 0;
      for (let deleted = FORGET_BATCH; deleted === FORGET_BATCH; total += deleted)
        deleted = await writer.write('ledger.forgetCalls', () =>
          Number(tables.sql.forget.run(whole, FORGET_BATCH).changes),
        );
      return total;
    },
  };
}

/** Values of the conditions of a page, in the order of its statement; null for absent ones. */
function conditionsOf(filter: CallFilter, query: CallQuery): (string | number | null)[] {
  const { account, userId, key, tag, provider, model, operation, session, outcome, requestId } = filter;
  const { minCost, minDurationMs, errorCode, endUser, requested, status, address, search } = query;
  const texts = [account, userId, key, tag, provider, model, operation, session, outcome, requestId];
  const searched = [minCost, minDurationMs, errorCode, endUser && factText(endUser), requested, status];
  return [
    ...[...texts, ...searched].map((value) => value ?? null),
    isPlainAddress(address) ? (address ?? null) : null,
    isPlainText(search) ? `%${search?.replaceAll(/[!%_]/g, '!$&')}%` : null,
  ];
}

/** Chooses how to find the records of a filter. */
function wayOf(filter: CallFilter, index: ChosenIndex | undefined): RecordWay {
  if (index) return index.name;
  return filter.outcome === undefined || filter.outcome === 'ok' ? 'all' : 'failed';
}

/**
 * Scans records step by step until the page is full, no records are left, or the limit of records or time is reached.
 * Reads only the parts of the time that have the terms of the query.
 */
function readPage({ sql: { reads }, names, terms }: CallsTables, query: CallQuery): CallPage {
  const { from, to, limit, before } = readCallSpan(query);
  const filter = cleanFilter(query);
  const wanted = conditionsOf(filter, query);
  const index = chooseIndex(filter);
  const way = wayOf(filter, index);
  const { page, parts, lastOfPage } = reads[way];
  const test = createCallTest(query);
  const isAllWanted = !test && Object.keys(filter).length === Number(index !== undefined);
  const step = isAllWanted ? limit + 1 : STEP;
  // The statement finds a superset of these, so all of its rows are tested.
  const isTested = query.search !== undefined || query.address !== undefined;
  const until = performance.now() + PIECE_MS;
  const found: { readonly place: RowPosition; readonly call: CallRow }[] = [];
  const first = before && before.at < to ? readPlace(before) : { at: to, tie: NOTHING_BEFORE };
  const value = index ? indexValue(names, index) : null;
  const add = (rows: readonly Row[]): void => {
    for (const row of rows) {
      if (found.length > limit) return;
      const call = readRow(row);
      if (test?.(call) !== false) found.push({ place: { at: Number(row['at']), tie: Number(row['n']) }, call });
    }
  };
  const calls = (): readonly CallRow[] => found.slice(0, limit).map(({ call }) => call);
  const mostRows = (): number => (isTested ? -1 : limit + 1 - found.length);
  const limits: SearchLimits = {
    most: Math.max(MIN_PARTS, limit),
    hasMore: (span, count) =>
      way === 'all' || lastOfPage.get(value, span.from, span.to, NOTHING_BEFORE, count) !== undefined,
  };
  let looked = 0;
  const searched = { from, to: first.tie === NOTHING_BEFORE ? first.at : first.at + 1 };
  for (const span of terms.find(query, searched, limits)) {
    let place: RowPosition | undefined = span.to > first.at ? first : { at: span.to, tie: NOTHING_BEFORE };
    while (place) {
      if (looked >= MOST_LOOKED_AT || (looked > 0 && performance.now() >= until))
        return { calls: calls(), next: cursorOf(place), searchedTo: place.at };
      const bounds: readonly [SqlValue, number, number, number] = [value, span.from, place.at, place.tie];
      if (span.parts) add(parts.all(...bounds, JSON.stringify(span.parts), ...wanted, mostRows()));
      else add(page.all(...bounds, step, ...wanted, mostRows()));
      const last = found[limit - 1];
      if (found.length > limit && last) return { calls: calls(), next: cursorOf(last.place) };
      const end: Row | undefined = span.parts ? undefined : lastOfPage.get(...bounds, step - 1);
      looked += step;
      place = end && placeOf(end);
    }
  }
  return { calls: calls() };
}

/** Minimum number of parts that one statement reads. */
const MIN_PARTS = 50;

/** Returns the value to look up in an index. Unknown names become a number that no row has. */
function indexValue(names: CallNames, { name, value }: ChosenIndex): string | number {
  return name === 'requestId' || name === 'session' ? value : (names.find(value) ?? -1);
}

/** Tie before all records of its millisecond. */
const NOTHING_BEFORE = -1;

function placeOf(row: Row): RowPosition {
  return { at: Number(row['at']), tie: Number(row['tie']) };
}

function cursorOf({ at, tie }: RowPosition): string {
  return callCursor({ at, tie: String(tie) });
}

function readPlace({ at, tie }: CallCursor): RowPosition {
  if (!/^-?\d{1,15}$/.test(tie)) throw noCallCursor();
  return { at, tie: Number(tie) };
}

function readRow(row: Row): CallRow {
  return unpackCall({
    id: String(row['ref']),
    requestId: String(row['request']),
    cost: Number(row['cost']),
    at: Number(row['at']),
    countedAt: Number(row['counted_at']),
    outcome: row['outcome'] as CallRow['outcome'],
    dimensions: ROLLUP_DIMENSIONS.map((name) => String(row[name])),
    session: row['session'] == null ? undefined : String(row['session']),
    packed: String(row['facts']),
  });
}

async function readReport(
  tables: CallsTables,
  writer: Writer,
  turns: Turns,
  query: ReportQuery,
  wholeBefore: number,
): Promise<readonly ReportRow[]> {
  const report = createReport(query, wholeBefore);
  await turns.next();
  let until = performance.now() + PIECE_MS;
  for (const span of report.spans) {
    if (span.of === 'hours' && report.isOfAll) {
      const all = await writer.readLatest('ledger.report', () => tables.sql.sumAll.get(span.from, span.to));
      if (all && all['requests'] !== null) report.add(span.interval, [], undefined, totalsOf(all));
      continue;
    }
    const read = span.of === 'hours' ? readHours : readCalls;
    for (let place: RowPosition | undefined = { at: span.from, tie: NOTHING_BEFORE }; place; ) {
      const start: RowPosition = place;
      // Added outside of the writer, because its queries may run twice.
      const piece = await writer.readLatest('ledger.report', () => read(tables, report, span, start));
      addSums(tables.groups, report, span.interval, piece.rows);
      place = piece.end;
      if (performance.now() < until) continue;
      await turns.next();
      until = performance.now() + PIECE_MS;
    }
  }
  return report.rows();
}

/** Position of a row by its time and its number, which is the order of records and hours. */
interface RowPosition {
  readonly at: number;
  readonly tie: number;
}

/** Sums of some rows by group. `end` is the start of the next piece; absent for the last. */
interface Piece {
  readonly rows: readonly Row[];
  readonly end?: RowPosition;
}

function readHours({ sql }: CallsTables, _report: Report, { to }: ReportSpan, { at, tie }: RowPosition): Piece {
  const end = sql.endOfHours.get(to, at, tie, PIECE - 1);
  const last = end ? { at: Number(end['at']), tie: Number(end['tie']) } : undefined;
  const rows = sql.sumHours.all(at, tie, last?.at ?? to, last?.tie ?? NOTHING_BEFORE);
  return { rows, ...(last && { end: last }) };
}

/** Reads sums of records, as {@link readHours} does of hours; uses an index if the filter has one. */
function readCalls(
  { sql: { reads }, names }: CallsTables,
  { filter, bySession }: Report,
  span: ReportSpan,
  { at, tie }: RowPosition,
): Piece {
  const latest = span.to + LONGEST_LAG_MS;
  const { session, outcome, requestId } = filter;
  const index = chooseIndex(filter);
  const { endOfPiece, sumCalls, sumSessions } = reads[index?.name ?? 'all'];
  const value = index ? indexValue(names, index) : null;
  const end = endOfPiece.get(value, latest, at, tie, PIECE - 1);
  const last = end && placeOf(end);
  const wanted = [span.from, span.to, session ?? null, outcome ?? null, requestId ?? null] as const;
  const rows = (bySession ? sumSessions : sumCalls).all(
    value,
    at,
    tie,
    last?.at ?? latest,
    last?.tie ?? NOTHING_BEFORE,
    ...wanted,
  );
  return { rows, ...(last && { end: last }) };
}

function addSums(groups: CallGroups, report: Report, interval: number, rows: readonly Row[]): void {
  for (const row of rows) {
    const dimensions = groups.dimensionsOf(Number(row['group_id']));
    if (!report.takes(dimensions)) continue;
    const name = row['session'] == null ? undefined : String(row['session']);
    report.add(interval, dimensions, name, totalsOf(row));
  }
}

function totalsOf(row: Row): Totals {
  return readTotals(SUM_NAMES.map((sum) => row[sum]));
}
