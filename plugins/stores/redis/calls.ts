import type { CallFilter, CallPage, CallQuery, CallRow, Ledger } from '../../../core/index.ts';
import { callCursor, chooseIndex, cleanFilter, MOST_LOOKED_AT, matchesCall, readCallSpan } from '../kit/call-filter.ts';
import { hourOf } from '../kit/call-rows.ts';
import { unreadable } from '../kit/failure.ts';
import { type Connection, runScript } from './client.ts';
import { digestOfName, type Keys } from './keys.ts';
import { readJson } from './ledger-reads.ts';
import { FORGET, READ_CALLS } from './record-scripts.ts';

/** How many records one script reads or forgets. */
const BATCH = 250;

/** Which records to read: settled from `from` to `to` (exclusive), and before that one when it is told; those of the filter's index, or all. */
export interface RecordSpan {
  readonly from: number;
  readonly to: number;
  readonly before?: { readonly at: number; readonly tie: string } | undefined;
  readonly filter: CallFilter;
}

/** A record that was found, and where: a cursor with it goes on behind it. Without a call when it is gone. */
export interface Found {
  readonly at: number;
  readonly tie: string;
  readonly call: CallRow | undefined;
}

/** The records of calls: pages of them, and forgetting. */
export function createCallReads(connection: Connection, keys: Keys): Pick<Ledger, 'calls' | 'forgetCalls'> {
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
export async function* readRecords(
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
