import type {
  AccountRow,
  CallPage,
  CallQuery,
  CallRow,
  Ledger,
  LedgerEntry,
  ReportQuery,
  ReportRow,
} from '../../../core/index.ts';
import {
  type CallCursor,
  callCursor,
  chooseIndex,
  cleanFilter,
  MOST_LOOKED_AT,
  readCallSpan,
} from '../kit/call-filter.ts';
import { hourOf, LONGEST_LAG_MS, ROLLUP_DIMENSIONS, readTotals, SUM_NAMES, unpackCall } from '../kit/call-rows.ts';
import { pageLimit, readCursor, storeKey } from '../kit/check.ts';
import { readEntryRow } from '../kit/facts.ts';
import { createLedgerChanges } from '../kit/ledger.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import { PIECE_MS, Turns } from '../kit/turns.ts';
import { type CallsSql, prepareCalls } from './calls-sql.ts';
import type { Database, Statement } from './driver.ts';
import { CallGroups, type CallsTables, type LedgerSql, LedgerTables, readBalance, readName } from './ledger-rows.ts';
import type { Writer } from './writer.ts';

/**
 * Money in SQLite: each change is part of a transaction of the {@link Writer}, and reads see what is queued there. One for each
 * connection: it would not see what another ledger writes on the same one.
 */
export function createSqliteLedger(database: Database, writer: Writer): Ledger {
  const calls = prepareCalls(database);
  const groups = new CallGroups(calls);
  writer.onRollback(() => groups.clear());
  const callTables = { sql: calls, groups };
  const tables = new LedgerTables(database, writer, callTables);
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
          return { spent: Number(row?.['spent'] ?? 0), held: Number(row?.['held'] ?? 0) };
        }),
      ),
    entries: (account, page) => read('ledger.entries', () => readEntries(sql, account, page)),
    ...createCallReads(callTables, writer),
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

/** How many records one statement looks at: the clock is looked at between two of them. */
const STEP = 250;
/** How many rows of the rollup, or records, one statement of a report sums. */
const PIECE = 5000;
/** How many records one transaction deletes. */
const FORGET_BATCH = 2000;

type Row = ReturnType<Statement['all']>[number];

/** What the ledger answers about calls, and how it forgets them. */
export function createCallReads(tables: CallsTables, writer: Writer): Pick<Ledger, 'calls' | 'report' | 'forgetCalls'> {
  const wholeBefore = () => Number(tables.sql.wholeBefore.get()?.['value'] ?? 0);
  const turns = new Turns();
  return {
    async calls(query) {
      await turns.next();
      return writer.readLatest('ledger.calls', () => readPage(tables.sql, query));
    },
    async report(query) {
      for (;;) {
        const known = await writer.readLatest('ledger.report', wholeBefore);
        const rows = await readReport(tables, writer, turns, query, known);
        // Records that went away meanwhile may be missing: then once more, without them.
        if ((await writer.readLatest('ledger.report', wholeBefore)) === known) return rows;
      }
    },
    async forgetCalls(before) {
      const whole = hourOf(before);
      await writer.write('ledger.forgetCalls', () => tables.sql.markWhole.run(whole));
      let total = 0;
      for (let deleted = FORGET_BATCH; deleted === FORGET_BATCH; total += deleted)
        deleted = await writer.write('ledger.forgetCalls', () =>
          Number(tables.sql.forget.run(whole, FORGET_BATCH).changes),
        );
      return total;
    },
  };
}

/** Looks at records step by step until the page is full, there are no more, or it has looked at as many or as long as it may. */
function readPage({ reads }: CallsSql, query: CallQuery): CallPage {
  const { from, to, limit, before } = readCallSpan(query);
  const filter = cleanFilter(query);
  const { account, userId, key, tag, provider, model, operation, session, outcome, requestId } = filter;
  const texts = [account, userId, key, tag, provider, model, operation, session, outcome, requestId];
  const wanted = texts.map((text) => text ?? null);
  const index = chooseIndex(filter);
  const { page, lastOfPage } = reads[index?.name ?? 'all'];
  const isAllWanted = Object.keys(filter).length === Number(index !== undefined);
  const step = isAllWanted ? limit + 1 : STEP;
  const until = performance.now() + PIECE_MS;
  const found: Row[] = [];
  let place = before && before.at < to ? before : { at: to, tie: '' };
  for (let looked = 0; looked < MOST_LOOKED_AT && (looked === 0 || performance.now() < until); looked += step) {
    const span = [index?.value ?? null, from, place.at, place.tie] as const;
    found.push(...page.all(...span, step, ...wanted, limit + 1 - found.length));
    const last = found[limit - 1];
    if (found.length > limit && last)
      return { calls: found.slice(0, limit).map(readRow), next: callCursor(placeOf(last)) };
    const end = lastOfPage.get(...span, step - 1);
    if (!end) return { calls: found.map(readRow) };
    place = placeOf(end);
  }
  return { calls: found.map(readRow), next: callCursor(place) };
}

function placeOf(row: Row): CallCursor {
  return { at: Number(row['at']), tie: String(row['tie']) };
}

function readRow(row: Row): CallRow {
  const [id = ''] = JSON.parse(String(row['tie'])) as readonly string[];
  return unpackCall({
    id,
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
    const read = span.of === 'hours' ? readHours : readCalls;
    for (let place: Place | undefined = { at: span.from, tie: span.of === 'hours' ? -1 : '' }; place; ) {
      const start: Place = place;
      // Added afterwards: what runs in the writer may run twice.
      const piece = await writer.readLatest('ledger.report', () => read(tables.sql, report, span, start));
      addSums(tables.groups, report, span.interval, piece.rows);
      place = piece.end;
      if (performance.now() < until) continue;
      await turns.next();
      until = performance.now() + PIECE_MS;
    }
  }
  return report.rows();
}

/** Behind which row a piece of a report begins. */
interface Place {
  readonly at: number;
  readonly tie: number | string;
}

/** The sums of some rows by group; `end` is where the next piece begins, absent for the last. */
interface Piece {
  readonly rows: readonly Row[];
  readonly end?: Place;
}

function readHours(sql: CallsSql, _report: Report, { to }: ReportSpan, { at, tie }: Place): Piece {
  const end = sql.endOfHours.get(to, at, tie, PIECE - 1);
  const last = end ? { at: Number(end['at']), tie: Number(end['tie']) } : undefined;
  const rows = sql.sumHours.all(at, tie, last?.at ?? to, last?.tie ?? -1);
  return { rows, ...(last && { end: last }) };
}

/** As {@link readHours}, of the records: those of an index where the filter has one. */
function readCalls({ reads }: CallsSql, { filter, bySession }: Report, span: ReportSpan, { at, tie }: Place): Piece {
  const latest = span.to + LONGEST_LAG_MS;
  const { session, outcome, requestId } = filter;
  const index = chooseIndex(filter);
  const { endOfPiece, sumCalls, sumSessions } = reads[index?.name ?? 'all'];
  const value = index?.value ?? null;
  const end = endOfPiece.get(value, latest, at, tie, PIECE - 1);
  const last = end && placeOf(end);
  const wanted = [span.from, span.to, session ?? null, outcome ?? null, requestId ?? null] as const;
  const rows = (bySession ? sumSessions : sumCalls).all(value, at, tie, last?.at ?? latest, last?.tie ?? '', ...wanted);
  return { rows, ...(last && { end: last }) };
}

function addSums(groups: CallGroups, report: Report, interval: number, rows: readonly Row[]): void {
  for (const row of rows) {
    const dimensions = groups.dimensionsOf(Number(row['group_id']));
    if (!report.takes(dimensions)) continue;
    const name = row['session'] == null ? undefined : String(row['session']);
    report.add(interval, dimensions, name, readTotals(SUM_NAMES.map((sum) => row[sum])));
  }
}
