import {
  type BudgetHold,
  type CallFacts,
  type CallFilter,
  type CallPage,
  type CallQuery,
  type CallRow,
  GatewayError,
  type Ledger,
  type ReportQuery,
  type ReportRow,
  type Reservation,
  type ReserveResult,
} from '../../../core/index.ts';
import { callCursor, chooseIndex, cleanFilter, MOST_LOOKED_AT, matchesCall, readCallSpan } from '../kit/call-filter.ts';
import { type Dimensions, dimensionsOf, hourOf, SUM_NAMES, sumsOf } from '../kit/call-rows.ts';
import {
  CORRECTABLE_MS,
  checkAmount,
  checkCredit,
  checkReservation,
  digest,
  finite,
  REMEMBER_MS,
  storeKey,
} from '../kit/check.ts';
import { chargeReason, cleanFacts, correctionReason, expiredFacts, factText, readFacts } from '../kit/facts.ts';
import { unreadable } from '../kit/failure.ts';
import { createReport, findSpan, type Report, type ReportSpan } from '../kit/report.ts';
import { type Connection, runScript } from './client.ts';
import { digestOfName, type Keys } from './keys.ts';
import { createReads, nameOfAccount, readJson } from './ledger-reads.ts';
import { CLOCK, CREDIT, DISCARD, RELEASE, RESERVE, SETTLE } from './ledger-scripts.ts';
import { FORGET, READ_CALLS } from './record-scripts.ts';

const SWEEP_BATCH = 200;
const COST = SUM_NAMES.indexOf('cost');

/** What the changes of the ledger work with. */
interface Books {
  readonly connection: Connection;
  readonly keys: Keys;
  readonly keepEntries: number;
}

/** Money in Redis: one script per change. `keepEntries` bounds the books of an account. */
export function createRedisLedger(connection: Connection, keys: Keys, keepEntries: number): Ledger {
  const books: Books = { connection, keys, keepEntries };
  return {
    reserve: (reservation) => reserve(books, reservation),
    settle: async ({ account, requestId, amount, facts, uncharged = [], now }) => {
      checkAmount(amount);
      const member = keys.ofAccount(account).member(requestId);
      return settle(books, { member, account, requestId, amount, facts, uncharged, now });
    },
    release: async (account, requestId, facts, now = Date.now()) => {
      const of = keys.ofAccount(account);
      const member = of.member(requestId);
      const about = facts ? callTexts({ account, requestId, facts, amount: 0 }) : ['', '', ''];
      const args = [keys.ledger, member, REMEMBER_MS, now, keepEntries, ...about];
      return (await connection.write(RELEASE, [of.account, of.request(member), keys.due, of.entries], args)) === 1;
    },
    credit: async (account, id, amount, reason, now) => {
      checkCredit(amount);
      const of = keys.ofAccount(account);
      const ref = storeKey(id);
      const rest = JSON.stringify({ kind: 'credit', reason, ref, at: now });
      const args = [keys.ledger, of.member(''), JSON.stringify(account), ref, amount, now, rest, keepEntries];
      return (await connection.write(CREDIT, [of.account, of.credits, of.entries], args)) === 1;
    },
    sweep: (now) => sweep(books, now),
    clock: async () => Number(await connection.read((client) => runScript(client, CLOCK, [keys.due], []))),
    report: (query) => readReport(connection, keys, query),
    ...createReads(connection, keys),
    ...createCallReads(connection, keys),
  };
}

async function reserve({ connection, keys }: Books, reservation: Reservation): Promise<ReserveResult> {
  checkReservation(reservation);
  const { account, amount, floor, expiresAt, budgets = [], facts, requestId, now } = reservation;
  const of = keys.ofAccount(account);
  const member = of.member(requestId);
  const head = [keys.ledger, amount, finite(floor), expiresAt, JSON.stringify(facts), member, JSON.stringify(account)];
  const limits = budgets.flatMap(({ id, limit, until }) => [
    digest(id),
    finite(limit),
    until === undefined ? '' : timeToLive(until, now),
  ]);
  const reply = await connection.write(RESERVE, [of.account, of.request(member), keys.due], [...head, ...limits]);
  return readReply(Array.isArray(reply) ? reply : [], budgets);
}

/** How long a budget stays: until nobody asks for it, and a late correction has not found it. */
function timeToLive(until: number, now: number): number {
  return Math.max(1, Math.ceil(until - now)) + CORRECTABLE_MS;
}

function readReply([outcome, ...rest]: readonly unknown[], budgets: readonly BudgetHold[]): ReserveResult {
  if (outcome === 'insufficient' || outcome === 'duplicate') return { outcome };
  const numbers = rest.map(Number);
  if (outcome === 'held' && numbers.length === budgets.length) return { outcome, used: numbers };
  const [place = 0, used = 0] = numbers;
  if (outcome !== 'over_budget') throw unreadable('reservation');
  return { outcome, budget: place - 1, used };
}

interface Ended {
  readonly account: string;
  readonly requestId: string;
  readonly facts: CallFacts;
  /** What the call cost; undefined for what was reserved. */
  readonly amount: number | undefined;
}

/** What a script writes into the rollup and the record of a call: the group, its sums, and the record. */
function callTexts({ account, requestId, facts, amount }: Ended): readonly [string, string, string] {
  const clean = cleanFacts(facts);
  const name = factText(account);
  const sums = sumsOf(clean, amount ?? 0).map((sum, place) => (place === COST && amount === undefined ? '$' : sum));
  const record = JSON.stringify({ ...clean, id: factText(requestId), account: name });
  return [JSON.stringify(dimensionsOf(name, clean)), sums.join(' '), record];
}

interface Charge extends Ended {
  readonly member: string;
  readonly uncharged: readonly string[];
  readonly now: number;
}

async function settle({ connection, keys, keepEntries }: Books, charge: Charge): Promise<boolean> {
  const { member, requestId, amount, facts, uncharged, now } = charge;
  const of = keys.ofMember(member);
  const ref = storeKey(requestId);
  const rest = (reason: string): string => JSON.stringify({ kind: 'charge', reason, ref, at: now });
  const settled = await connection.write(
    SETTLE,
    [of.account, of.request(member), keys.due, of.entries],
    [
      ...[keys.ledger, member, amount === undefined ? CORRECTABLE_MS : REMEMBER_MS, amount ?? '', now],
      ...[rest(chargeReason(facts)), keepEntries, ` ${uncharged.map(digest).join(' ')} `],
      ...callTexts(charge),
      amount === undefined ? rest(correctionReason(facts)) : '',
    ],
  );
  return settled === 1;
}

/** Settles the expired reservations, and returns how many. */
async function sweep(books: Books, now: number): Promise<number> {
  const { connection, keys } = books;
  const limit = { LIMIT: { offset: 0, count: SWEEP_BATCH } };
  for (let total = 0; ; ) {
    const members = await connection.read((client) => client.zRangeByScore(keys.due, '-inf', now - 1, limit));
    const settled = await Promise.all(members.map((member) => sweepOne(books, member, now)));
    total += settled.filter(Boolean).length;
    if (members.length < SWEEP_BATCH) return total;
  }
}

async function sweepOne(books: Books, member: string, now: number): Promise<boolean> {
  const { connection, keys } = books;
  const of = keys.ofMember(member);
  const [[text], account] = await Promise.all([
    connection.read((client) => client.hmGet(of.request(member), ['facts'])),
    nameOfAccount(connection, of),
  ]);
  if (text == null) {
    // Settled by another gateway in between, or deleted by hand.
    await connection.write(DISCARD, [of.request(member), keys.due], [member]);
    return false;
  }
  const requestId = member.slice(member.indexOf(':') + 1);
  const facts = expiredFacts(readFacts(text));
  return settle(books, { member, account, requestId, amount: undefined, facts, uncharged: [], now });
}

/** How many hours are read at once. */
const AT_ONCE = 16;
const SCAN_COUNT = 500;
/** How many records one report reads: it is this process that filters them. */
const MOST_RECORDS = 500_000;

/** Sums what calls did: whole hours out of their rollups, parts of an hour and sessions out of the records. */
async function readReport(connection: Connection, keys: Keys, query: ReportQuery): Promise<readonly ReportRow[]> {
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

/** How many records one script reads or forgets. */
const BATCH = 250;

/** Which records to read: settled from `from` to `to` (exclusive), and before that one when it is told; those of the filter's index, or all. */
interface RecordSpan {
  readonly from: number;
  readonly to: number;
  readonly before?: { readonly at: number; readonly tie: string } | undefined;
  readonly filter: CallFilter;
}

/** A record that was found, and where: a cursor with it goes on behind it. Without a call when it is gone. */
interface Found {
  readonly at: number;
  readonly tie: string;
  readonly call: CallRow | undefined;
}

/** The records of calls: pages of them, and forgetting. */
function createCallReads(connection: Connection, keys: Keys): Pick<Ledger, 'calls' | 'forgetCalls'> {
  return {
    calls: (query) => readPage(connection, keys, query),
    forgetCalls: async (before) => {
      const whole = hourOf(before);
      await connection.write(FORGET, [keys.due], [keys.ledger, whole, '', 0]);
      const hours = await connection.read((client) => client.zRangeByScore(keys.recordHours, '-inf', whole - 1));
      let total = 0;
      for (const hour of hours) {
        for (let forgotten = BATCH; forgotten === BATCH; total += forgotten)
          forgotten = Number(await connection.write(FORGET, [keys.due], [keys.ledger, whole, hour, BATCH]));
      }
      return total;
    },
  };
}

async function readPage(connection: Connection, keys: Keys, query: CallQuery): Promise<CallPage> {
  const { limit, ...span } = readCallSpan(query);
  const filter = cleanFilter(query);
  const calls: CallRow[] = [];
  let last: Found | undefined;
  let count = 0;
  for await (const batch of readRecords(connection, keys, { ...span, filter })) {
    for (const found of batch) {
      const isWanted = found.call !== undefined && matchesCall(filter, found.call);
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
    const list = name === 'account' ? keys.callsOf(digestOfName(value)) : keys.callsBy(name, value);
    yield* readList(connection, keys, list, end, first);
    return;
  }
  const newest = hourOf(Math.min(to - 1, before?.at ?? to));
  const hours = await connection.read((client) => client.zRangeByScore(keys.recordHours, hourOf(from), newest));
  for (const hour of hours.reverse()) yield* readList(connection, keys, keys.calls(Number(hour)), end, first);
}

/** Reads what a list of ids names, from `end` back to `first`. */
async function* readList(
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

/** How an id begins: with its time, so that ids are in order. */
function placeOf(at: number): string {
  return String(Math.max(0, at)).padStart(16, '0');
}

function readFound(id: string, record: string): Found {
  const at = Number(id.slice(0, 16));
  const tie = id.slice(17);
  if (record === '') return { at, tie, call: undefined };
  const blank = record.indexOf(' ');
  const facts = readJson<Omit<CallRow, 'cost' | 'at'>>(record.slice(blank + 1));
  return { at, tie, call: { ...facts, cost: Number(record.slice(0, blank)), at } };
}
