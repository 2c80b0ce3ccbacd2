import { type CallFilter, type CallQuery, type CallRow, GatewayError } from '../../../contract/index.ts';
import { pageLimit } from './check.ts';
import { factText } from './facts.ts';

/** What a filter may name. */
const FILTERS = Object.freeze([
  'account',
  'requestId',
  'userId',
  'key',
  'tag',
  'provider',
  'model',
  'operation',
  'session',
  'outcome',
] as const);

/** A filter as records have their texts; names that are not set are left out. */
export function cleanFilter(filter: CallFilter): CallFilter {
  const set = FILTERS.flatMap((name) => {
    const value = filter[name];
    return value === undefined ? [] : [[name, factText(value)]];
  });
  return Object.fromEntries(set) as CallFilter;
}

/** Whether a record is meant by a clean filter. */
export function matchesCall(filter: CallFilter, call: CallRow): boolean {
  return FILTERS.every((name) => {
    const wanted = filter[name];
    if (wanted === undefined) return true;
    return name === 'tag' ? call.tags.includes(wanted) : call[name] === wanted;
  });
}

/** What stores have an index by, the one that fits fewest calls first. */
const INDEXED = Object.freeze(['requestId', 'session', 'key', 'userId', 'account'] as const);

export type IndexedName = (typeof INDEXED)[number];

/** An index, and the value that it is read by. */
export interface ChosenIndex {
  readonly name: IndexedName;
  readonly value: string;
}

/** The index that answers a filter with the fewest records to look at; undefined when it names nothing that has one. */
export function chooseIndex(filter: CallFilter): ChosenIndex | undefined {
  for (const name of INDEXED) {
    const value = filter[name];
    if (value !== undefined) return { name, value };
  }
  return undefined;
}

/** What a record is indexed by. */
export function indexedBy(call: CallRow): readonly (readonly [name: IndexedName, value: string])[] {
  return INDEXED.flatMap((name) => {
    const value = call[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** How many records one page looks at, however few of them its filter fits. */
export const MOST_LOOKED_AT = 2000;

/** Where a page of calls begins: the calls before this one, newest first; calls of one moment are ordered by `tie`. */
export interface CallCursor {
  readonly at: number;
  readonly tie: string;
}

/** A page of calls to read: of `from` (inclusive) to `to` (exclusive), at most `limit`. */
export interface CallSpan {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly before: CallCursor | undefined;
}

/** Reads the span and the cursor of a query; throws `invalid_request` for a cursor that no page told. */
export function readCallSpan({ from = 0, to = Number.MAX_SAFE_INTEGER, limit, after }: CallQuery): CallSpan {
  return { from, to, limit: pageLimit(limit), before: after === undefined ? undefined : readCallCursor(after) };
}

/** The `next` of a page whose last call this is. */
export function callCursor({ at, tie }: CallCursor): string {
  return Buffer.from(JSON.stringify([at, tie])).toString('base64url');
}

function readCallCursor(text: string): CallCursor {
  try {
    const [at, tie] = JSON.parse(Buffer.from(text, 'base64url').toString()) as readonly unknown[];
    if (Number.isSafeInteger(at) && typeof tie === 'string') return { at: at as number, tie };
  } catch {
    // Told below, with what is well-formed and no cursor.
  }
  throw noCallCursor();
}

/** The error of a cursor that no page has returned. */
export function noCallCursor(): GatewayError {
  return new GatewayError('invalid_request', 'after must be the "next" of the previous page.', {
    param: 'after',
  });
}
