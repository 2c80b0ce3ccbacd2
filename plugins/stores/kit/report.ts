import {
  type CallFilter,
  GatewayError,
  type ReportDimension,
  type ReportQuery,
  type ReportRow,
} from '../../../contract/index.ts';
import { cleanFilter } from './call-filter.ts';
import {
  type Dimensions,
  hourOf,
  MONEY_SUMS,
  nextHour,
  ROLLUP_DIMENSIONS,
  SUM_NAMES,
  type Totals,
} from './call-rows.ts';
import { misuse } from './failure.ts';

/** Maximum number of intervals of one report. */
const MAX_INTERVALS = 1000;
/** Maximum number of groups of one report. */
const MAX_ROWS = 50_000;

const KNOWN: ReadonlySet<ReportDimension> = new Set<ReportDimension>([...ROLLUP_DIMENSIONS, 'session']);

/** Part of an interval and its source: whole hours of the rollup, or records. */
export interface ReportSpan {
  readonly interval: number;
  readonly from: number;
  readonly to: number;
  readonly of: 'hours' | 'calls';
}

/** Report under construction. The store reads its spans in any order and adds their sums. */
export interface Report {
  /** Ascending, without overlap. */
  readonly spans: readonly ReportSpan[];
  /** Clean filter, with values as in records. */
  readonly filter: CallFilter;
  /** Groups include the session. */
  readonly bySession: boolean;
  /** True for one group of all calls, which has the sums of whole hours. */
  readonly isOfAll: boolean;
  /** Checks a group's dimensions against the filter, as far as they cover it. */
  takes(dimensions: Dimensions): boolean;
  /** Adds the sums of a group that {@link Report.takes}; throws `invalid_request` if there are too many groups. */
  add(interval: number, dimensions: Dimensions, session: string | undefined, sums: Totals): void;
  rows(): readonly ReportRow[];
}

/** Creates a report. `wholeBefore` is the hour before which records are deleted, so only whole hours are known. */
export function createReport(query: ReportQuery, wholeBefore: number): Report {
  checkQuery(query);
  const filter = cleanFilter(query);
  const { by } = query;
  const bySession = by.includes('session');
  const places = by.map((dimension) => ROLLUP_DIMENSIONS.indexOf(dimension as (typeof ROLLUP_DIMENSIONS)[number]));
  const groups = new Map<string, { readonly interval: number; readonly names: readonly string[]; sums: Totals }>();
  return {
    spans: planSpans(query.edges, wholeBefore, bySession || needsRecords(filter)),
    filter,
    bySession,
    isOfAll: by.length === 0 && Object.keys(filter).length === 0,
    takes: (dimensions) => matchesDimensions(filter, dimensions),
    add(interval, dimensions, session, sums) {
      const names = places.map((place) => (place < 0 ? (session ?? '-') : (dimensions[place] ?? '-')));
      const key = JSON.stringify([interval, ...names]);
      const group = groups.get(key) ?? { interval, names, sums: NOTHING };
      if (groups.size >= MAX_ROWS && !groups.has(key)) throw tooManyGroups();
      groups.set(key, group);
      group.sums = group.sums.map((sum, at) => addUp(sum, sums[at] ?? 0));
    },
    rows: () =>
      [...groups.values()]
        .filter(({ sums: [requests = 0] }) => requests > 0)
        .sort((a, b) => a.interval - b.interval || compareNames(a.names, b.names))
        .map(({ interval, names, sums }) => toRow(interval, by, names, sums)),
  };
}

const NOTHING: Totals = SUM_NAMES.map((name) => (MONEY_SUMS.has(name) ? 0n : 0));

function addUp(sum: number | bigint, more: number | bigint): number | bigint {
  return typeof sum === 'bigint' ? sum + BigInt(more) : sum + Number(more);
}

function checkQuery({ edges, by }: ReportQuery): void {
  const isAscending = edges.every((edge, at) => Number.isSafeInteger(edge) && edge > (edges[at - 1] ?? edge - 1));
  if (!isAscending || edges.length < 2) throw misuse('The edges of a report must be ascending whole milliseconds.');
  if (edges.length > MAX_INTERVALS + 1)
    throw new GatewayError('invalid_request', `A report can have at most ${MAX_INTERVALS} intervals. Use longer ones.`);
  if (new Set(by).size < by.length || !by.every((dimension) => KNOWN.has(dimension)))
    throw misuse('The dimensions of a report must be known, and each named once.');
}

/** Checks for filters that the rollup does not have. */
function needsRecords({ session, outcome, requestId }: CallFilter): boolean {
  return session !== undefined || outcome !== undefined || requestId !== undefined;
}

function planSpans(edges: readonly number[], wholeBefore: number, fromRecords: boolean): readonly ReportSpan[] {
  // Without records, an hour counts in the interval that contains its start.
  const moved = fromRecords ? edges : edges.map((edge) => (edge < wholeBefore ? nextHour(edge) : edge));
  return moved.slice(0, -1).flatMap((from, interval) => {
    const to = moved[interval + 1] ?? from;
    const [first, last] = [nextHour(from), hourOf(to)];
    const parts: readonly ReportSpan[] =
      fromRecords || first >= last
        ? [{ interval, from, to, of: 'calls' }]
        : [
            { interval, from, to: first, of: 'calls' },
            { interval, from: first, to: last, of: 'hours' },
            { interval, from: last, to, of: 'calls' },
          ];
    return parts.filter((part) => part.from < part.to);
  });
}

/** Filters on dimensions, with their positions in {@link ROLLUP_DIMENSIONS}. */
const FILTER_PLACES = Object.freeze({ account: 0, userId: 1, key: 2, operation: 4, provider: 5, model: 6 } as const);
const TAGS = ROLLUP_DIMENSIONS.indexOf('tags');

function matchesDimensions(filter: CallFilter, dimensions: Dimensions): boolean {
  for (const [name, place] of Object.entries(FILTER_PLACES)) {
    const wanted = filter[name as keyof typeof FILTER_PLACES];
    if (wanted !== undefined && dimensions[place] !== wanted) return false;
  }
  return filter.tag === undefined || (JSON.parse(dimensions[TAGS] ?? '[]') as readonly string[]).includes(filter.tag);
}

function compareNames(a: readonly string[], b: readonly string[]): number {
  for (const [at, name] of a.entries()) {
    const other = b[at] ?? '';
    if (name !== other) return name < other ? -1 : 1;
  }
  return 0;
}

function toRow(interval: number, by: readonly ReportDimension[], names: readonly string[], sums: Totals): ReportRow {
  type Name = (typeof SUM_NAMES)[number];
  const counts = Object.fromEntries(SUM_NAMES.map((name, at) => [name, Number(sums[at])])) as Record<Name, number>;
  const { requests, errors, estimated, unpriced, cost: _cost, saved: _saved, ...units } = counts;
  const moneyOf = (name: Name): bigint => BigInt(sums[SUM_NAMES.indexOf(name)] ?? 0);
  const named = Object.fromEntries(by.map((dimension, at) => [dimension, names[at] ?? '-']));
  return {
    interval,
    ...named,
    requests,
    errors,
    estimated,
    unpriced,
    units,
    cost: moneyOf('cost'),
    saved: moneyOf('saved'),
  };
}

function tooManyGroups(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `This report has more than ${MAX_ROWS} rows. Use a shorter range, longer intervals or fewer dimensions.`,
  );
}

/** Returns the span that contains an instant, or undefined. `spans` must be ascending. */
export function findSpan(spans: readonly ReportSpan[], at: number): ReportSpan | undefined {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle]?.to ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const span = spans[low];
  return span && span.from <= at ? span : undefined;
}
