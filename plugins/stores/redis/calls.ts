import {
  type CallFilter,
  type CallPage,
  type CallQuery,
  type CallRow,
  GatewayError,
  type ReportQuery,
  type ReportRow,
} from '../../../contract/index.ts';
import {
  callCursor,
  chooseIndex,
  cleanFilter,
  createCallTest,
  MOST_LOOKED_AT,
  matchesCall,
  readCallSpan,
} from '../kit/call-filter.ts';
import { type Dimensions, dimensionsOf, hourOf, LONGEST_LAG_MS, SUM_NAMES, sumsOf } from '../kit/call-rows.ts';
import { unreadable } from '../kit/failure.ts';
import { createReport, findSpan, type Report, type ReportSpan } from '../kit/report.ts';
import { type Connection, defineScript, ledgerSchemaKey, runScript } from './connection.ts';

/**
 * A call record is a field of `records:<hour>`. Its id is `<at, 16 digits>:<account and call, as JSON>`, its value
 * `<cost> <facts as JSON>`.
 *
 * Ids of an hour are in `calls:<hour>`. Ids of an account, a user, a key, a session or a request are in
 * `calls-by:<name>:<value>`. All are sorted.
 *
 * The sums of an hour are in `rollup:<hour>`. Each group of calls has its dimensions as JSON under a short digest of
 * them. Each of its sums is under that digest and the position of the sum. Hours are Unix milliseconds.
 */

/**
 * KEYS: a list of ids. ARGV: last and first id, maximum number, prefix. Returns alternating ids and records, newest
 * first.
 */
const READ_CALLS = defineScript(`
local ids, reply = redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3]), {}
for i, id in ipairs(ids) do
  local at = tonumber(string.sub(id, 1, 16))
  reply[i * 2 - 1] = id
  reply[i * 2] = redis.call('HGET', ARGV[4] .. ':records:' .. string.format('%.0f', at - at % 3600000), id) or ''
end
return reply
`);

/** Redis command as words. Numbers are texts, because Lua would convert them to doubles. */
export type Command = readonly string[];

export type Keys = ReturnType<typeof createKeys>;

/**
 * Returns the keys of the ledger. User input is after the hash tag, and is hashed first if it is long or ill-formed.
 */
export function createKeys(prefix: string) {
  const ledger = `${prefix}:{ledger}`;
  return {
    ledger,
    schema: ledgerSchemaKey(prefix),
    row: (id: string): string => `${ledger}:${id}`,
    entries: (account: string): string => `${ledger}:entries:${account}`,
    /** Held requests by expiry time. */
    due: `${ledger}:due`,
    /** Account names as JSON. */
    accounts: `${ledger}:accounts`,
    /** Hours with a rollup, and hours with records. */
    hours: `${ledger}:hours`,
    recordHours: `${ledger}:record-hours`,
    /** Start time of complete records: the score of its only member. */
    recordsFrom: `${ledger}:records-from`,
    /** Ends of calls that are in the rows already, but not yet in the entries, the records and the rollup. */
    journal: `${ledger}:journal`,
    /** Rows of the journal that could not be read. */
    damagedJournal: `${ledger}:damaged-journal`,
    /** Process whose turn it is to write; absent if any process may write. */
    turn: `${ledger}:turn`,
    rollup: (hour: number): string => `${ledger}:rollup:${hour}`,
    calls: (at: number): string => `${ledger}:calls:${hourOf(at)}`,
    records: (at: number): string => `${ledger}:records:${hourOf(at)}`,
    /** Ids of calls by this field. Values are texts of records, which are short. */
    callsBy: (name: string, value: string): string => `${ledger}:calls-by:${name}:${value}`,
  };
}

/** Beginning of a record id: its time, so that ids are sorted by time. */
export function placeOf(at: number): string {
  return String(Math.max(0, at)).padStart(16, '0');
}

/** Length of a group's digest within its hour. */
export const GROUP = 12;

/** Reads JSON written by this gateway. */
export function readJson<T>(text: string): T {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable('ledger record', cause);
  }
}

/** Number of hours read concurrently. */
const AT_ONCE = 16;
const SCAN_COUNT = 500;
/** Maximum number of records that one report reads, because this process filters them. */
const MOST_RECORDS = 500_000;

/** Sums calls for a report: whole hours from their rollups, parts of an hour and sessions from the records. */
export async function readReport(
  connection: Connection,
  keys: Keys,
  query: ReportQuery,
): Promise<readonly ReportRow[]> {
  const readFrom = async (): Promise<number> =>
    Number((await connection.read((client) => client.zScore(keys.recordsFrom, 'at'))) ?? 0);
  for (;;) {
    const from = await readFrom();
    const report = createReport(query, from);
    await readAll(connection, keys, report);
    // Records deleted meanwhile may be missing, so read again without them.
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
    const found = await scanHash(connection, keys.rollup(hour));
    for (const [group, text] of found) {
      if (group.length !== GROUP) continue;
      const dimensions = readJson<Dimensions>(text);
      const sums = SUM_NAMES.map((_, place) => Number(found.get(`${group}.${place}`) ?? 0));
      if (report.takes(dimensions)) report.add(span.interval, dimensions, undefined, sums);
    }
  };
  for (let place = 0; place < known.length; place += AT_ONCE)
    await Promise.all(known.slice(place, place + AT_ONCE).map((hour) => readHour(Number(hour))));
}

/** Reads all fields of a hash in pages: a single large read would block the server. */
export async function scanHash(connection: Connection, key: string): Promise<ReadonlyMap<string, string>> {
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
  const last = to + LONGEST_LAG_MS;
  for await (const batch of readRecords(connection, keys, { from, to: last, filter: report.filter })) {
    count += batch.length;
    if (count > most) throw tooManyRecords();
    for (const { call } of batch) {
      if (!call || call.countedAt < from || call.countedAt >= to || !matchesCall(report.filter, call)) continue;
      report.add(interval, dimensionsOf(call.account, call), call.session, sumsOf(call, call.cost));
    }
  }
  return count;
}

function tooManyRecords(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `This report would read more than ${MOST_RECORDS} records of calls. Use a shorter range, set an account, or remove the session and the outcome.`,
  );
}

/** Number of records that one script reads or deletes. */
const BATCH = 250;

/**
 * Records to read: settled from `from` to `to` (exclusive), and before `before` if given. Uses the filter's index, or
 * reads all.
 */
interface RecordSpan {
  readonly from: number;
  readonly to: number;
  readonly before?: { readonly at: number; readonly tie: string } | undefined;
  readonly filter: CallFilter;
}

/**
 * Found record with its position; a cursor with this position continues after it. The call is undefined if the record
 * was deleted.
 */
interface Found {
  readonly at: number;
  readonly tie: string;
  readonly call: CallRow | undefined;
}

export async function readPage(connection: Connection, keys: Keys, query: CallQuery): Promise<CallPage> {
  const { limit, ...span } = readCallSpan(query);
  const filter = cleanFilter(query);
  const test = createCallTest(query);
  const calls: CallRow[] = [];
  let last: Found | undefined;
  let count = 0;
  for await (const batch of readRecords(connection, keys, { ...span, filter })) {
    for (const found of batch) {
      const isWanted = found.call !== undefined && matchesCall(filter, found.call) && test?.(found.call) !== false;
      if (last && ((isWanted && calls.length === limit) || count >= MOST_LOOKED_AT))
        return { calls, next: callCursor(last) };
      if (isWanted) calls.push(found.call);
      last = found;
      count += 1;
    }
  }
  return { calls };
}

/** Reads records, newest first, in batches. */
async function* readRecords(
  connection: Connection,
  keys: Keys,
  { from, to, before, filter }: RecordSpan,
): AsyncGenerator<readonly Found[]> {
  const first = `[${placeOf(from)}`;
  let end = `(${placeOf(to)}`;
  if (before !== undefined && before.at < to) end = `(${placeOf(before.at)}:${before.tie}`;
  const index = chooseIndex(filter);
  if (index !== undefined) {
    const { name, value } = index;
    yield* readList(connection, keys, keys.callsBy(name, value), end, first);
    return;
  }
  const newest = hourOf(Math.min(to - 1, before?.at ?? to));
  const hours = await connection.read((client) => client.zRangeByScore(keys.recordHours, hourOf(from), newest));
  for (const hour of hours.reverse()) yield* readList(connection, keys, keys.calls(Number(hour)), end, first);
}

/** Reads the records of an id list, from `end` back to `first`. */
export async function* readList(
  connection: Connection,
  { ledger }: Keys,
  list: string,
  end: string,
  first: string,
): AsyncGenerator<readonly Found[]> {
  for (let last = end; ; ) {
    const args = [last, first, String(BATCH), ledger];
    const reply = await connection.read((client) => runScript(client, READ_CALLS, [list], args));
    if (!Array.isArray(reply)) throw unreadable('record of a call');
    const texts = reply.map(String);
    const found = texts.flatMap((id, place) => (place % 2 === 0 ? [readFound(id, texts[place + 1] ?? '')] : []));
    if (found.length > 0) yield found;
    if (found.length < BATCH) return;
    last = `(${texts.at(-2)}`;
  }
}

function readFound(id: string, record: string): Found {
  const at = Number(id.slice(0, 16));
  const tie = id.slice(17);
  if (record === '') return { at, tie, call: undefined };
  const blank = record.indexOf(' ');
  const facts = readJson<Omit<CallRow, 'cost' | 'at'>>(record.slice(blank + 1));
  return { at, tie, call: { ...facts, cost: Number(record.slice(0, blank)), at } };
}
