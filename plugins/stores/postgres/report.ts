import type { ReportQuery, ReportRow } from '../../../core/index.ts';
import { ROLLUP_DIMENSIONS, SUM_NAMES } from '../kit/call-rows.ts';
import { createReport, type Report, type ReportSpan } from '../kit/report.ts';
import { filterSql } from './calls.ts';
import type { Connection, Value } from './connection.ts';
import { whole } from './ledger-reads.ts';
import { readInSlices, type Slice } from './slices.ts';

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
export async function readReport(connection: Connection, query: ReportQuery): Promise<readonly ReportRow[]> {
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
