import { GatewayError, type ReportQuery, type ReportRow } from '../../../core/index.ts';
import { matchesCall } from '../kit/call-filter.ts';
import { type Dimensions, dimensionsOf, sumsOf } from '../kit/call-rows.ts';
import { createReport, findSpan, type Report, type ReportSpan } from '../kit/report.ts';
import { readRecords } from './calls.ts';
import type { Connection } from './client.ts';
import type { Keys } from './keys.ts';
import { readJson } from './ledger-reads.ts';

/** How many hours are read at once. */
const AT_ONCE = 16;
const SCAN_COUNT = 500;
/** How many records one report reads: it is this process that filters them. */
const MOST_RECORDS = 500_000;

/** Sums what calls did: whole hours out of their rollups, parts of an hour and sessions out of the records. */
export async function readReport(
  connection: Connection,
  keys: Keys,
  query: ReportQuery,
): Promise<readonly ReportRow[]> {
  const readFrom = async (): Promise<number> =>
    Number((await connection.read((client) => client.get(keys.recordsFrom))) ?? 0);
  for (;;) {
    const from = await readFrom();
    const report = createReport(query, from);
    await readAll(connection, keys, report);
    // Records that were forgotten meanwhile may be missing: then once more, without them.
    if ((await readFrom()) === from) return report.rows();
  }
}

async function readAll(connection: Connection, keys: Keys, report: Report): Promise<void> {
  const hours = report.spans.filter(({ of }) => of === 'hours');
  const [first, last] = [hours[0], hours.at(-1)];
  if (first && last) await readHours(connection, keys, report, { hours, from: first.from, to: last.to });
  let left = MOST_RECORDS;
  for (const span of report.spans)
    if (span.of === 'calls') left -= await readSpan(connection, keys, report, span, left);
}

interface Hours {
  readonly hours: readonly ReportSpan[];
  readonly from: number;
  readonly to: number;
}

async function readHours(
  connection: Connection,
  keys: Keys,
  report: Report,
  { hours, from, to }: Hours,
): Promise<void> {
  const known = await connection.read((client) => client.zRangeByScore(keys.hours, from, to - 1));
  const readHour = async (hour: number): Promise<void> => {
    const span = findSpan(hours, hour);
    if (!span) return;
    for (const [field, sums] of await scanHash(connection, keys.rollup(hour))) {
      const dimensions = readJson<Dimensions>(field);
      if (report.takes(dimensions)) report.add(span.interval, dimensions, undefined, sums.split(' ').map(Number));
    }
  };
  for (let place = 0; place < known.length; place += AT_ONCE)
    await Promise.all(known.slice(place, place + AT_ONCE).map((hour) => readHour(Number(hour))));
}

/** All fields of a hash, bit by bit: a large one read at once would keep the server from others. */
async function scanHash(connection: Connection, key: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  let cursor = '0';
  do {
    const at = cursor;
    const reply = await connection.read((client) => client.hScan(key, at, { COUNT: SCAN_COUNT }));
    for (const { field, value } of reply.entries) found.set(field, value);
    cursor = reply.cursor;
  } while (cursor !== '0');
  return found;
}

async function readSpan(
  connection: Connection,
  keys: Keys,
  report: Report,
  { interval, from, to }: ReportSpan,
  most: number,
): Promise<number> {
  let count = 0;
  for await (const batch of readRecords(connection, keys, { from, to, filter: report.filter })) {
    count += batch.length;
    if (count > most) throw tooManyRecords();
    for (const { call } of batch) {
      if (!call || !matchesCall(report.filter, call)) continue;
      report.add(interval, dimensionsOf(call.account, call), call.session, sumsOf(call, call.cost));
    }
  }
  return count;
}

function tooManyRecords(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `This report would read more than ${MOST_RECORDS} records of calls: ask for less time, name an account, or leave out the session and the outcome.`,
  );
}
