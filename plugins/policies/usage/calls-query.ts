import { setImmediate } from 'node:timers/promises';
import type { CallFilter, CallPage, CallRow, CallSearch, Ledger } from '../../../contract/index.ts';
import { OUTCOMES } from './call-shapes.ts';
import { readRange } from './range.ts';
import { readChoice, readFilter, readLimit, readSearch, type Words, wrongWord } from './words.ts';

/** Orders of a list: by time, or highest first. */
const SORTS = Object.freeze(['time', 'cost', 'duration', 'first_byte', 'tokens'] as const);

type CallSort = (typeof SORTS)[number];

/** Parsed query for a page of calls. */
export interface CallsQuery {
  readonly filter: CallFilter & CallSearch;
  /** Absent for everything that is stored. */
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  readonly after?: string;
  /** Default: time, newest first. */
  readonly sort?: Exclude<CallSort, 'time'>;
  /** True to count all matching calls. */
  readonly isCounted?: boolean;
}

const DEFAULT_LIMIT = 50;

/** Reads the parameters of a list; throws a 400 that names an invalid one. */
export function readCallsQuery(words: Words, now: number): CallsQuery {
  const { outcome, after, request, from, to, last, period, tz } = words;
  const known = OUTCOMES.find((each) => each === outcome);
  if (outcome !== undefined && known === undefined)
    throw wrongWord('outcome', `must be one of ${OUTCOMES.join(', ')}.`);
  const isRanged = [from, to, last, period].some((word) => word !== undefined);
  const range = isRanged || tz !== undefined ? readRange({ from, to, last, period, tz }, now) : undefined;
  const sort = readChoice(words, 'sort', SORTS);
  if (sort !== 'time' && after !== undefined)
    throw wrongWord('after', 'continues lists by time only. Raise "limit", or remove "sort".');
  return {
    filter: {
      ...readFilter(words),
      ...readSearch(words),
      ...(known && { outcome: known }),
      ...(request !== undefined && { requestId: request }),
    },
    ...(range && isRanged && { from: range.from, to: range.to }),
    limit: readLimit(words['limit'], DEFAULT_LIMIT),
    ...(after !== undefined && { after }),
    ...(sort !== 'time' && { sort }),
    ...(readChoice(words, 'count', ['false', 'true']) === 'true' && { isCounted: true }),
  };
}

/** Default search time of one page: the longest delay for other work, however rare the matches are. */
const MOST_MS = 40;

/**
 * Page of calls, newest first. It may be short with a `next` if the search took `mostMs`. It is empty with a `next` only
 * if the search took `emptyMs`.
 */
export async function listCalls(
  ledger: Pick<Ledger, 'calls'>,
  { filter, limit, after, from, to }: CallsQuery,
  mostMs = MOST_MS,
  emptyMs = mostMs,
): Promise<CallPage> {
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const calls: CallRow[] = [];
  const startedMs = performance.now();
  for (let next = after; ; ) {
    const cursor = next === undefined ? {} : { after: next };
    const page = await ledger.calls({ ...filter, ...range, ...cursor, limit: limit - calls.length });
    calls.push(...page.calls);
    next = page.next;
    if (next === undefined) return { calls };
    const leftMs = startedMs + (calls.length === 0 ? emptyMs : mostMs) - performance.now();
    if (calls.length >= limit) return { calls, next };
    const { searchedTo } = page;
    if (leftMs <= 0) return { calls, next, ...(searchedTo !== undefined && { searchedTo }) };
    // A store may reply synchronously: let other work run first.
    await setImmediate();
  }
}

/** Search time for the first match: a part of a name has no index, and the page says how far the search came. */
const FIRST_MS = 3000;

/** Maximum number of calls that a list sorts or counts, the latest ones, and its search time. */
const MOST_CALLS = 5000;
const SCAN_MS = 1000;

/** Page of a list, and how much of the records it covers. */
export interface FoundCalls extends CallPage {
  /** Present if sorted: number of compared calls, and whether these are all that match. */
  readonly sortedOf?: Covered;
  /** Present if counted. */
  readonly counted?: Covered;
}

interface Covered {
  readonly calls: number;
  readonly isComplete: boolean;
}

/** Finds the calls of a query. */
export async function findCalls(
  ledger: Pick<Ledger, 'calls'>,
  query: CallsQuery,
  mostMs = MOST_MS,
): Promise<FoundCalls> {
  const counted = query.isCounted === true ? await countCalls(ledger, query) : undefined;
  const { sort } = query;
  if (sort === undefined) return { ...(await listCalls(ledger, query, mostMs, FIRST_MS)), ...(counted && { counted }) };
  const { calls, next } = await listCalls(ledger, { ...query, limit: MOST_CALLS }, SCAN_MS, FIRST_MS);
  const value = SORT_VALUES[sort];
  return {
    calls: calls.toSorted((a, b) => value(b) - value(a)).slice(0, query.limit),
    sortedOf: { calls: calls.length, isComplete: next === undefined },
    ...(counted && { counted }),
  };
}

const SORT_VALUES: Readonly<Record<Exclude<CallSort, 'time'>, (call: CallRow) => number>> = Object.freeze({
  cost: ({ cost }: CallRow) => cost,
  duration: ({ durationMs }: CallRow) => durationMs,
  first_byte: ({ firstByteMs = 0 }: CallRow) => firstByteMs,
  tokens: ({ units }: CallRow) => (units['prompt_tokens'] ?? 0) + (units['completion_tokens'] ?? 0),
});

/** Counts the records of a query, the latest ones if there are many. */
async function countCalls(ledger: Pick<Ledger, 'calls'>, query: CallsQuery): Promise<Covered> {
  const { after: _after, ...all } = query;
  const { calls, next } = await listCalls(ledger, { ...all, limit: MOST_CALLS }, SCAN_MS);
  return { calls: calls.length, isComplete: next === undefined };
}

/** Latest time of a date. */
const LAST_TIME = 8_640_000_000_000_000;

/** Fields of a list in addition to its calls, in the API's form. */
export function tellCovered({ sortedOf, counted, searchedTo }: FoundCalls): Readonly<Record<string, unknown>> {
  const tell = ({ calls, isComplete }: Covered): object => ({ calls, is_complete: isComplete });
  return {
    ...(searchedTo !== undefined && { searched_to: new Date(Math.min(searchedTo, LAST_TIME)).toISOString() }),
    ...(sortedOf && { sorted_of: tell(sortedOf) }),
    ...(counted && { count: tell(counted) }),
  };
}
