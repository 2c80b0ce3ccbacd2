import { setImmediate } from 'node:timers/promises';
import type { CallFilter, CallPage, CallRow, Ledger } from '../../../contract/index.ts';
import { OUTCOMES } from './call-shapes.ts';
import { readRange } from './range.ts';
import { readFilter, readLimit, type Words, wrongWord } from './words.ts';

/** Parsed query for a page of calls. */
export interface CallsQuery {
  readonly filter: CallFilter;
  /** Absent for everything that is stored. */
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  readonly after?: string;
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
  return {
    filter: {
      ...readFilter(words),
      ...(known && { outcome: known }),
      ...(request !== undefined && { requestId: request }),
    },
    ...(range && isRanged && { from: range.from, to: range.to }),
    limit: readLimit(words['limit'], DEFAULT_LIMIT),
    ...(after !== undefined && { after }),
  };
}

/** Default search time of one page: the longest delay for other work, however rare the matches are. */
const MOST_MS = 40;

/** Page of calls, newest first. It may be short, or even empty, with a `next` if the search took `mostMs`. */
export async function listCalls(
  ledger: Pick<Ledger, 'calls'>,
  { filter, limit, after, from, to }: CallsQuery,
  mostMs = MOST_MS,
): Promise<CallPage> {
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const calls: CallRow[] = [];
  const until = performance.now() + mostMs;
  for (let next = after; ; ) {
    const cursor = next === undefined ? {} : { after: next };
    const page = await ledger.calls({ ...filter, ...range, ...cursor, limit: limit - calls.length });
    calls.push(...page.calls);
    next = page.next;
    if (next === undefined) return { calls };
    if (calls.length >= limit || performance.now() >= until) return { calls, next };
    // A store may reply synchronously: let other work run first.
    await setImmediate();
  }
}
