import type { CallFacts, CallFilter, CallPage, CallRow, Ledger } from '../../../core/index.ts';
import { readRange } from './range.ts';
import { readFilter, readLimit, type Words, wrongWord } from './words.ts';

/** How a call may have ended. */
const OUTCOMES: readonly CallFacts['outcome'][] = Object.freeze(['ok', 'error', 'aborted', 'expired', 'unknown']);

/** A page of calls as it was asked for. */
export interface CallsQuery {
  readonly filter: CallFilter;
  /** Calls made for the HTTP request with this id. */
  readonly request?: string;
  /** Absent: all that is kept. */
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  readonly after?: string;
}

const DEFAULT_LIMIT = 50;

/** Reads a list's words; throws a 400 that names the wrong one. */
export function readCallsQuery(words: Words, now: number): CallsQuery {
  const { outcome, after, request, from, to, last, period, tz } = words;
  const known = OUTCOMES.find((each) => each === outcome);
  if (outcome !== undefined && known === undefined)
    throw wrongWord('outcome', `must be one of ${OUTCOMES.join(', ')}.`);
  const isRanged = [from, to, last, period].some((word) => word !== undefined);
  const range = isRanged || tz !== undefined ? readRange({ from, to, last, period, tz }, now) : undefined;
  return {
    filter: { ...readFilter(words), ...(known && { outcome: known }) },
    ...(range && isRanged && { from: range.from, to: range.to }),
    limit: readLimit(words['limit'], DEFAULT_LIMIT),
    ...(after !== undefined && { after }),
    ...(request !== undefined && { request }),
  };
}

/** How many pages of the store one page of ours may take: a filter may fit few of many calls. */
const MAX_PAGES = 50;

/** As many records as a store gives at once. */
const WHOLE_PAGE = 1000;

/** A page of calls, newest first; it may be short, and even empty, while there is a `next`. */
export async function listCalls(ledger: Pick<Ledger, 'calls'>, query: CallsQuery): Promise<CallPage> {
  const { filter, limit, after, request, ...range } = query;
  const calls: CallRow[] = [];
  let next = after;
  for (let page = 0; page < MAX_PAGES && calls.length < limit; page += 1) {
    const cursor = next === undefined ? {} : { after: next };
    const wanted = request === undefined ? limit - calls.length : WHOLE_PAGE;
    const found = await ledger.calls({ ...filter, ...range, ...cursor, limit: wanted });
    const own = request === undefined ? found.calls : found.calls.filter(({ requestId }) => requestId === request);
    calls.push(...own);
    next = found.next;
    if (next === undefined) break;
    // The calls of one request lie together.
    if (request !== undefined && own.length === 0 && calls.length > 0) break;
  }
  return next === undefined ? { calls } : { calls, next };
}
