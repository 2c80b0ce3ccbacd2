import { type CallFilter, GatewayError, isObject, type Ledger, parseJson, readArray } from '../../../contract/index.ts';
import { END_USER_TAG } from '../kit/index.ts';
import { type By, isTimeUnit, readBy } from './dimensions.ts';
import { type Latencies, measureLatency } from './latency.ts';
import { cutRange, type Range, rangeBefore, readRange, readZone } from './range.ts';
import { dimensionsOf, makeReport, NOTHING, type Sums, type UsageReport, type UsageRow } from './report.ts';
import { readChoice, readFilter, readLimit, type Words, wrongWord } from './words.ts';

/** Parsed query for a report. */
export interface UsageQuery {
  readonly range: Range;
  readonly by: readonly By[];
  readonly filter: CallFilter;
  readonly sort: Sort;
  readonly limit: number;
  readonly after: ReturnType<typeof readCursor> | undefined;
  readonly format: 'json' | 'csv';
  /** True if each row includes latencies. */
  readonly latency: boolean;
  /** True if each row includes its sums in the range before. */
  readonly isCompared: boolean;
}

const DEFAULT_LIMIT = 100;

/** Reads the parameters of a report; throws a 400 that names an invalid one. */
export function readUsageQuery(words: Words, now: number): UsageQuery {
  if (words['by'] !== undefined && words['group_by'] !== undefined)
    throw wrongWord('group_by', 'is the former name of "by"; remove one of them.');
  const param = words['group_by'] === undefined ? 'by' : 'group_by';
  const by = readBy(words[param] ?? 'day', param);
  const after = words['after'] === undefined ? undefined : readCursor(words['after'], by);
  const { from, to, last, period, tz } = words;
  const format = readChoice(words, 'format', ['json', 'csv']);
  const paging = ['limit', 'after'].find((word) => words[word] !== undefined);
  if (format === 'csv' && paging !== undefined)
    throw wrongWord(paging, 'is not supported for CSV, which has all rows.');
  const latency = readChoice(words, 'latency', ['false', 'true']) === 'true';
  if (format === 'csv' && latency) throw wrongWord('latency', 'is not supported for CSV. Remove one of them.');
  return {
    range: after
      ? { from: after.from, to: after.to, zone: readZone(tz) }
      : readRange({ from, to, last, period, tz }, now),
    by,
    filter: readReportFilter(words),
    sort: readChoice(words, 'sort', ['name', 'cost']),
    limit: readLimit(words['limit'], DEFAULT_LIMIT),
    after,
    format,
    latency,
    isCompared: readChoice(words, 'compare', ['none', 'previous']) === 'previous',
  };
}

/** Sums know the end user as a tag. */
function readReportFilter(words: Words): CallFilter {
  const filter = readFilter(words);
  const endUser = words['end_user'];
  if (endUser === undefined) return filter;
  if (filter.tag !== undefined) throw wrongWord('tag', 'cannot be combined with "end_user" in a report.');
  return { ...filter, tag: `${END_USER_TAG}=${endUser}` };
}

/** Report with one page of its rows. */
export interface UsagePage extends UsageReport {
  readonly page: readonly UsageRow[];
  readonly next?: string;
  /** Present if requested. */
  readonly latencies?: Latencies;
  readonly previous?: Previous;
}

/** Sums of the range before. */
export interface Previous {
  readonly range: Range;
  readonly totals: Sums;
  /** Excess of the rows over the totals, as in {@link UsageReport.shared}. */
  readonly repeated: Sums;
  /** Sums of a row in the range before: by its names, and by the position of its interval. */
  of(row: UsageRow): Sums;
}

/** Queries the store; totals cover all rows, on every page. */
export async function runUsageQuery(ledger: Pick<Ledger, 'report' | 'calls'>, query: UsageQuery): Promise<UsagePage> {
  const { range, by, filter, sort } = query;
  const { edges, names } = cutRange(range, by.find(isTimeUnit));
  const found = await ledger.report({ ...filter, edges, by: dimensionsOf(by) });
  const made = makeReport(found, by, names);
  const compared = query.isCompared ? await readPrevious(ledger, query) : undefined;
  const report = compared ? { ...made, rows: withMissing(made.rows, compared.rows, by, names) } : made;
  const rows = sortRows(report.rows, by, sort);
  const latencies = query.latency ? await measureLatency(ledger, { filter, by, edges, names }) : undefined;
  const { rows: page, next } = pageOf(rows, query, range);
  const previous = compared?.previous;
  return {
    ...report,
    rows,
    page,
    ...(latencies && { latencies }),
    ...(previous && { previous }),
    ...(next !== undefined && { next }),
  };
}

/** Reads the report of the range before. */
async function readPrevious(
  ledger: Pick<Ledger, 'report'>,
  { range, by, filter }: UsageQuery,
): Promise<{ readonly rows: readonly UsageRow[]; readonly previous: Previous }> {
  const before = rangeBefore(range);
  const { edges, names } = cutRange(before, by.find(isTimeUnit));
  const found = await ledger.report({ ...filter, edges, by: dimensionsOf(by) });
  const { rows, totals, shared } = makeReport(found, by, names);
  const repeated = shared?.repeated ?? NOTHING;
  const sums = new Map(rows.map((row) => [placeKey(row, by), row.sums]));
  return { rows, previous: { range: before, totals, repeated, of: (row) => sums.get(placeKey(row, by)) ?? NOTHING } };
}

/** Key of a row in both ranges: its names apart from time, and the position of its interval. */
function placeKey({ interval, names }: UsageRow, by: readonly By[]): string {
  return JSON.stringify([interval, ...names.filter((_, at) => !isTimeUnit(by[at] as By))]);
}

/** Adds rows that only the range before has, with sums of zero. */
function withMissing(
  rows: readonly UsageRow[],
  before: readonly UsageRow[],
  by: readonly By[],
  intervals: readonly string[],
): readonly UsageRow[] {
  const known = new Set(rows.map((row) => placeKey(row, by)));
  const missing = before.flatMap((row): readonly UsageRow[] => {
    const interval = intervals[row.interval];
    if (known.has(placeKey(row, by)) || interval === undefined) return [];
    const names = row.names.map((name, at) => (isTimeUnit(by[at] as By) ? interval : name));
    return [{ names, interval: row.interval, sums: NOTHING }];
  });
  return [...rows, ...missing];
}

/** Order of rows: by time and name, or the most expensive first. */
export type Sort = 'name' | 'cost';

/**
 * End of a page: the range of the report, which relative words such as `last=30d` would move, and the position of the
 * last row.
 */
interface Cursor {
  readonly from: number;
  readonly to: number;
  readonly interval: number;
  readonly cost: bigint;
  readonly names: readonly string[];
}

type SortKey = Pick<Cursor, 'interval' | 'cost' | 'names'>;

function placeOf({ interval, names, sums: { cost } }: UsageRow): SortKey {
  return { interval, cost, names };
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Compares rows in the order of the words; times by instant, since an hour may occur twice. */
function comparePlaces(by: readonly By[], sort: Sort): (a: SortKey, b: SortKey) => number {
  return (a, b) => {
    if (sort === 'cost' && a.cost !== b.cost) return b.cost > a.cost ? 1 : -1;
    for (const [i, word] of by.entries()) {
      const order = isTimeUnit(word) ? a.interval - b.interval : compareText(a.names[i] ?? '', b.names[i] ?? '');
      if (order !== 0) return order;
    }
    return 0;
  };
}

export function sortRows(rows: readonly UsageRow[], by: readonly By[], sort: Sort): readonly UsageRow[] {
  const compare = comparePlaces(by, sort);
  return rows.toSorted((a, b) => compare(placeOf(a), placeOf(b)));
}

/** Page of sorted rows, with the cursor of the next one if there are more. */
export function pageOf(
  sorted: readonly UsageRow[],
  {
    by,
    sort,
    limit,
    after,
  }: { readonly by: readonly By[]; readonly sort: Sort; readonly limit: number; readonly after?: Cursor | undefined },
  { from, to }: Pick<Cursor, 'from' | 'to'>,
): { readonly rows: readonly UsageRow[]; readonly next?: string } {
  const compare = comparePlaces(by, sort);
  const rest = after ? sorted.filter((row) => compare(placeOf(row), after) > 0) : sorted;
  const rows = rest.slice(0, limit);
  const last = rows.at(-1);
  return rest.length > limit && last ? { rows, next: writeCursor({ from, to, ...placeOf(last) }) } : { rows };
}

function writeCursor({ from, to, interval, cost, names }: Cursor): string {
  return Buffer.from(JSON.stringify({ from, to, interval, cost: String(cost), names })).toString('base64url');
}

/** Longer than any issued cursor. */
const MAX_CURSOR = 8192;

/** Reads a cursor of a report by these words; throws a 400 for anything else. */
export function readCursor(text: string, by: readonly By[]): Cursor {
  const value = text.length > MAX_CURSOR ? undefined : parseJson(Buffer.from(text, 'base64url').toString());
  if (isObject(value)) {
    const { from, to, interval, cost, names } = value;
    const numbers = { from: Number(from), to: Number(to), interval: Number(interval) };
    const texts = readArray(names).filter((name) => typeof name === 'string');
    const areNumbers = Object.values(numbers).every(Number.isSafeInteger) && numbers.from < numbers.to;
    if (areNumbers && /^-?\d{1,30}$/.test(String(cost)) && texts.length === by.length)
      return { ...numbers, cost: BigInt(String(cost)), names: texts };
  }
  throw new GatewayError(
    'invalid_request',
    '"after" is not a cursor of this report. Use "next" of the previous page with the same parameters.',
    { param: 'after' },
  );
}
