import { setImmediate } from 'node:timers/promises';
import type { CallPage, CallQuery, CallRow, Ledger, ReportQuery, ReportRow } from '../../../core/index.ts';
import { callCursor, cleanFilter, readCallSpan } from '../kit/call-filter.ts';
import { HOUR_MS, hourOf, ROLLUP_DIMENSIONS, SUM_NAMES, unpackCall } from '../kit/call-rows.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import type { CallsTables } from './call-records.ts';
import type { Statement } from './driver.ts';
import type { Writer } from './writer.ts';

/** How many records a page with a filter looks at: a bounded pause, however rare what it looks for is. */
const LOOKED_AT = 10_000;
/** How much of a report is read at once: other work goes on between. */
const PART_MS = 48 * HOUR_MS;
/** How many records one transaction deletes. */
const FORGET_BATCH = 2000;

type Row = ReturnType<Statement['all']>[number];

/** What the ledger answers about calls, and how it forgets them. */
export function createCallReads(tables: CallsTables, writer: Writer): Pick<Ledger, 'calls' | 'report' | 'forgetCalls'> {
  const wholeBefore = () => Number(tables.sql.wholeBefore.get()?.['value'] ?? 0);
  return {
    calls: (query) => writer.readLatest('ledger.calls', () => readPage(tables, query)),
    async report(query) {
      for (;;) {
        const known = await writer.readLatest('ledger.report', wholeBefore);
        const rows = await readReport(tables, writer, query, known);
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

function readPage({ sql }: CallsTables, query: CallQuery): CallPage {
  const { from, to, limit, before } = readCallSpan(query);
  const filter = cleanFilter(query);
  const isFiltered = Object.keys(filter).length > 0;
  const span = [from, to, before?.at ?? Number.MAX_SAFE_INTEGER, before?.tie ?? ''] as const;
  const { account, userId, key, tag, provider, model, operation, session, outcome } = filter;
  const wanted = [account, userId, key, tag, provider, model, operation, session, outcome].map((text) => text ?? null);
  const rows = sql.page.all(...span, isFiltered ? LOOKED_AT : limit + 1, ...wanted, limit + 1);
  const calls = rows.slice(0, limit);
  const last = rows.length > limit ? calls.at(-1) : isFiltered ? sql.lastOfPage.get(...span, LOOKED_AT - 1) : undefined;
  const next = last && callCursor({ at: Number(last['at']), tie: String(last['tie']) });
  return { calls: calls.map(readRow), ...(next !== undefined && { next }) };
}

function readRow(row: Row): CallRow {
  const [id = ''] = JSON.parse(String(row['tie'])) as readonly string[];
  return unpackCall({
    id,
    cost: Number(row['cost']),
    at: Number(row['at']),
    outcome: row['outcome'] as CallRow['outcome'],
    dimensions: ROLLUP_DIMENSIONS.map((name) => String(row[name])),
    session: row['session'] == null ? undefined : String(row['session']),
    packed: String(row['facts']),
  });
}

async function readReport(
  tables: CallsTables,
  writer: Writer,
  query: ReportQuery,
  wholeBefore: number,
): Promise<readonly ReportRow[]> {
  const report = createReport(query, wholeBefore);
  const { first, last } = (await writer.readLatest('ledger.report', () => tables.sql.hours.get())) ?? {};
  // Where nothing is, nothing is looked for: a report may ask for all times.
  const [earliest, latest] = [Number(first ?? 0), Number(last ?? 0) + HOUR_MS];
  for (const span of report.spans)
    for (let from = Math.max(span.from, earliest), end = Math.min(span.to, latest); from < end; from += PART_MS) {
      const part = { ...span, from, to: Math.min(from + PART_MS, end) };
      await writer.readLatest('ledger.report', () => addPart(tables, report, part));
      await setImmediate();
    }
  return report.rows();
}

function addPart({ sql, groups }: CallsTables, report: Report, { interval, from, to, of }: ReportSpan): void {
  const { session, outcome } = report.filter;
  const records = report.bySession ? sql.sumSessions : sql.sumCalls;
  const rows = of === 'hours' ? sql.sumHours.all(from, to) : records.all(from, to, session ?? null, outcome ?? null);
  for (const row of rows) {
    const dimensions = groups.dimensionsOf(Number(row['group_id']));
    if (!report.takes(dimensions)) continue;
    const name = row['session'] == null ? undefined : String(row['session']);
    report.add(
      interval,
      dimensions,
      name,
      SUM_NAMES.map((sum) => Number(row[sum])),
    );
  }
}
