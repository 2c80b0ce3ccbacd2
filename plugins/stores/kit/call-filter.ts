import { BlockList, isIP } from 'node:net';
import {
  type CallFilter,
  type CallQuery,
  type CallRow,
  type CallSearch,
  GatewayError,
} from '../../../contract/index.ts';
import { pageLimit } from './check.ts';
import { factText } from './facts.ts';

/** Names that a filter may have. */
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

/** Cleans the values of a filter as record texts are cleaned, and omits undefined values. */
export function cleanFilter(filter: CallFilter): CallFilter {
  const set = FILTERS.flatMap((name) => {
    const value = filter[name];
    return value === undefined ? [] : [[name, factText(value)]];
  });
  return Object.fromEntries(set) as CallFilter;
}

/** Reports if a record matches a clean filter. */
export function matchesCall(filter: CallFilter, call: CallRow): boolean {
  return FILTERS.every((name) => {
    const wanted = filter[name];
    if (wanted === undefined) return true;
    return name === 'tag' ? call.tags.includes(wanted) : call[name] === wanted;
  });
}

/** Test for one condition of a search; undefined if the search does not have it. */
type Condition = (search: CallSearch) => ((call: CallRow) => boolean) | undefined;

/** Conditions on records, which this process tests: their fields have no columns of their own. */
const CONDITIONS: readonly Condition[] = Object.freeze([
  ({ search }) => (search === undefined ? undefined : containsText(search.toLowerCase())),
  ({ endUser }) => (endUser === undefined ? undefined : isEndUser(factText(endUser))),
  ({ address }) => (address === undefined ? undefined : isFrom(address)),
  ({ errorCode }) => (errorCode === undefined ? undefined : (call) => call.errorCode === errorCode),
  ({ status }) =>
    status === undefined ? undefined : ({ attempts }) => attempts.some((attempt) => attempt.status === status),
  ({ requested }) => (requested === undefined ? undefined : (call) => (call.requested ?? call.model) === requested),
  ({ minCost }) => (minCost === undefined ? undefined : ({ cost }) => cost >= minCost),
  ({ minDurationMs }) => (minDurationMs === undefined ? undefined : ({ durationMs }) => durationMs >= minDurationMs),
]);

/** Creates the test of a search; undefined if it matches everything. */
export function createCallTest(search: CallSearch): ((call: CallRow) => boolean) | undefined {
  const tests = CONDITIONS.flatMap((condition) => condition(search) ?? []);
  return tests.length === 0 ? undefined : (call) => tests.every((test) => test(call));
}

/** Checks that stores find a searched text in the written form of a record: it has no character that JSON escapes. */
export function isPlainText(search: string | undefined): boolean {
  return search !== undefined && /^[\x20-\x7e]+$/.test(search) && !/["\\]/.test(search);
}

/** Checks that stores find an address in the written form of a record. */
export function isPlainAddress(address: string | undefined): boolean {
  return address !== undefined && isIP(address) === 4;
}

function containsText(part: string): (call: CallRow) => boolean {
  const has = (text: string | undefined): boolean => text?.toLowerCase().includes(part) ?? false;
  return (call) =>
    has(call.userId) ||
    has(call.key) ||
    has(call.account) ||
    has(call.endUser) ||
    has(call.session) ||
    has(call.model) ||
    has(call.provider) ||
    has(call.requested) ||
    has(call.address) ||
    has(call.id) ||
    has(call.requestId) ||
    call.tags.some(has);
}

function isEndUser(wanted: string): (call: CallRow) => boolean {
  return ({ endUser }) => endUser === wanted;
}

function isFrom(wanted: string): (call: CallRow) => boolean {
  const [network = '', bits] = wanted.split('/');
  const list = new BlockList();
  try {
    const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(network, family);
    else list.addSubnet(network, Number(bits), family);
  } catch {
    throw new GatewayError('invalid_request', `"${wanted.slice(0, 60)}" is not an IP address or network.`, {
      param: 'address',
    });
  }
  return ({ address = '' }) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Indexed fields of stores, most selective first. */
const INDEXED = Object.freeze(['requestId', 'session', 'key', 'userId', 'account'] as const);

export type IndexedName = (typeof INDEXED)[number];

/** Index, and the value to look up in it. */
export interface ChosenIndex {
  readonly name: IndexedName;
  readonly value: string;
}

/** Returns the most selective index for a filter; undefined if no field of the filter has an index. */
export function chooseIndex(filter: CallFilter): ChosenIndex | undefined {
  for (const name of INDEXED) {
    const value = filter[name];
    if (value !== undefined) return { name, value };
  }
  return undefined;
}

/** Returns the index entries of a record. */
export function indexedBy(call: CallRow): readonly (readonly [name: IndexedName, value: string])[] {
  return INDEXED.flatMap((name) => {
    const value = call[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** Maximum number of records that one page scans, even if few of them match the filter. */
export const MOST_LOOKED_AT = 2000;

/** Start of a page of calls: calls before this one, newest first. `tie` orders calls of the same millisecond. */
export interface CallCursor {
  readonly at: number;
  readonly tie: string;
}

/** Page of calls to read: from `from` (inclusive) to `to` (exclusive), at most `limit`. */
export interface CallSpan {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly before: CallCursor | undefined;
}

/** Reads the span and the cursor of a query; throws `invalid_request` for an invalid cursor. */
export function readCallSpan({ from = 0, to = Number.MAX_SAFE_INTEGER, limit, after }: CallQuery): CallSpan {
  return { from, to, limit: pageLimit(limit), before: after === undefined ? undefined : readCallCursor(after) };
}

/** Returns the `next` of a page that ends with this call. */
export function callCursor({ at, tie }: CallCursor): string {
  return Buffer.from(JSON.stringify([at, tie])).toString('base64url');
}

function readCallCursor(text: string): CallCursor {
  try {
    const [at, tie] = JSON.parse(Buffer.from(text, 'base64url').toString()) as readonly unknown[];
    if (Number.isSafeInteger(at) && typeof tie === 'string') return { at: at as number, tie };
  } catch {
    // The error below covers invalid JSON as well as valid JSON that is not a cursor.
  }
  throw noCallCursor();
}

/** Error for an invalid cursor. */
export function noCallCursor(): GatewayError {
  return new GatewayError('invalid_request', 'after must be the "next" of the previous page.', {
    param: 'after',
  });
}
