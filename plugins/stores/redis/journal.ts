import { createHash } from 'node:crypto';
import type { CallFacts } from '../../../contract/index.ts';
import { indexedBy } from '../kit/call-filter.ts';
import { hourOf } from '../kit/call-rows.ts';
import { digest } from '../kit/check.ts';
import { factText } from '../kit/facts.ts';
import { unreadable } from '../kit/failure.ts';
import type { JournalMove, JournalRows } from '../kit/journal-mover.ts';
import type { LedgerCommit, RollupChange, WrittenEntry, WrittenRecord } from '../kit/versioned-ledger.ts';
import { GROUP, type Keys, placeOf } from './calls.ts';
import { type Connection, defineWrite } from './connection.ts';

/**
 * The journal is a list with rows of `<SHA-1> <JSON>`. After the JSON, each record has a line, which the script stores
 * unchanged. A script moves rows to the entries, the records and the rollup, and deletes them. Amounts are texts in the
 * JSON, because Lua would convert numbers to doubles.
 */

/** Items of one row: a script moves them in about one millisecond. */
const ITEMS_AT_ONCE = 50;

/** Lifetime of records, longer than their retention: they expire even if no gateway deletes them. */
const LONGEST_MS = 800 * 86_400_000;

/** Ledger entry: [account, line]. */
type EntryItem = readonly [account: string, line: string];

/**
 * Record, and the id lists that contain it. `before` are the lists that no longer contain it; null for a new record.
 */
type RecordItem = readonly [hour: string, id: string, lists: readonly string[], before: readonly string[] | null];

/** Sums of a group of an hour: alternating [position of the sum, sum]. */
type SumsItem = readonly [hour: string, group: string, dimensions: string, sums: readonly string[]];

/**
 * Moves rows, oldest first, up to a maximum number of items. KEYS: journal, damaged rows. ARGV: deadline, prefix of the
 * ledger, maximum items, entries kept per account, lifetime of records. Returns the number of remaining rows, and the
 * number of unreadable rows that were set aside.
 */
const MOVE = defineWrite(`
if redis.call('EXISTS', KEYS[1]) == 0 then return { 0, 0 } end
-- A read-only server rejects this first write. Later commands cannot fail for that reason, so a row is moved completely.
redis.call('SET', ARGV[2] .. ':journal-moved', string.format('%.0f', now_ms))
local most, keep, life = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local function key(...) return ARGV[2] .. ':' .. table.concat({...}, ':') end

local function move_record(record, text, touched)
  local hour, id, lists, before = unpack(record)
  local records, calls = key('records', hour), key('calls', hour)
  if before ~= cjson.null then
    -- Do not restore a deleted record.
    if redis.call('HEXISTS', records, id) == 0 then return end
    for _, list in ipairs(before) do redis.call('ZREM', key('calls-by', list), id) end
  end
  redis.call('ZADD', calls, 0, id)
  for _, list in ipairs(lists) do
    redis.call('ZADD', key('calls-by', list), 0, id)
    touched[key('calls-by', list)] = true
  end
  redis.call('HSET', records, id, text)
  redis.call('ZADD', key('record-hours'), hour, hour)
  touched[records], touched[calls] = true, true
end

local function move(row)
  local checksum, data = string.match(row, '^(%x+) (.*)$')
  if redis.sha1hex(data) ~= checksum then error('damaged') end
  local line = string.gmatch(data, '[^\\n]+')
  local items, touched = cjson.decode(line()), {}
  for _, entry in ipairs(items.entries) do
    local book = key('entries', entry[1])
    if redis.call('RPUSH', book, entry[2]) > keep then redis.call('LTRIM', book, -keep, -1) end
  end
  for _, record in ipairs(items.records) do move_record(record, line(), touched) end
  for _, group in ipairs(items.rollup) do
    local hour, name, dimensions, sums = unpack(group)
    redis.call('ZADD', key('hours'), hour, hour)
    redis.call('HSET', key('rollup', hour), name, dimensions)
    for i = 1, #sums, 2 do redis.call('HINCRBY', key('rollup', hour), name .. '.' .. sums[i], sums[i + 1]) end
  end
  for name in pairs(touched) do redis.call('PEXPIRE', name, life) end
  return #items.entries + #items.records
end

local moved, damaged = 0, 0
while moved < most do
  local row = redis.call('LINDEX', KEYS[1], 0)
  if not row then break end
  local is_moved, items = pcall(move, row)
  if is_moved then moved = moved + items
  else
    redis.call('RPUSH', KEYS[2], row)
    damaged = damaged + 1
  end
  redis.call('LPOP', KEYS[1])
end
return { redis.call('LLEN', KEYS[1]), damaged }
`);

/** Journal in Redis. */
export function createJournal(connection: Connection, keys: Keys, keepEntries: number): JournalRows {
  const { journal, damagedJournal, ledger } = keys;
  return {
    kind: 'redis',
    damagedName: damagedJournal,
    isEmpty: async () => (await connection.read((client) => client.lLen(journal))) === 0,
    move: async (): Promise<JournalMove> => {
      const args = [ledger, ITEMS_AT_ONCE, keepEntries, LONGEST_MS];
      const reply = await connection.write(MOVE, [journal, damagedJournal], args);
      if (!Array.isArray(reply)) throw unreadable('journal');
      const [left, damaged] = reply.map(Number);
      return { state: left === 0 ? 'done' : 'more', damaged: damaged ?? 0 };
    },
    countDamaged: async () => Number(await connection.read((client) => client.lLen(damagedJournal))),
  };
}

/** Packs the ends of calls of one commit into journal rows. */
export function packEnds({ entries, records, rollup }: Pick<LedgerCommit, 'entries' | 'records' | 'rollup'>) {
  const rows: string[] = [];
  const length = Math.max(entries.length, records.length, Math.min(rollup.length, 1));
  for (let at = 0; at < length; at += ITEMS_AT_ONCE) {
    const end = at + ITEMS_AT_ONCE;
    const some = records.slice(at, end);
    const items = JSON.stringify({
      entries: entries.slice(at, end).map(packEntry),
      records: some.map(packRecord),
      rollup: at === 0 ? rollup.map(packSums) : [],
    });
    const data = [items, ...some.map(textOf)].join('\n');
    rows.push(`${createHash('sha1').update(data).digest('hex')} ${data}`);
  }
  return rows;
}

function packEntry({ account, n, kind, amount, reason, ref, at, balance }: WrittenEntry): EntryItem {
  return [account, JSON.stringify([n, kind, amount, reason, ref, at, balance])];
}

function packRecord(record: WrittenRecord): RecordItem {
  const { facts, before } = record;
  const former = before ? listsOf(record, before.facts) : null;
  return [String(hourOf(record.at)), idOf(record), listsOf(record, facts), former];
}

/** A record as the hash of its hour has it. JSON has no line breaks. */
function textOf({ facts, ref, name, cost, countedAt }: WrittenRecord): string {
  return `${cost} ${JSON.stringify({ ...facts, id: ref, account: factText(name), countedAt })}`;
}

function listsOf({ name, ref, cost, at, countedAt }: WrittenRecord, facts: CallFacts): readonly string[] {
  const call = { ...facts, id: ref, account: factText(name), cost, at, countedAt };
  return indexedBy(call).map(([index, value]) => `${index}:${value}`);
}

function idOf({ at, account, ref }: WrittenRecord): string {
  return `${placeOf(at)}:${JSON.stringify([account, ref])}`;
}

function packSums({ hour, dimensions, sums }: RollupChange): SumsItem {
  const text = JSON.stringify(dimensions);
  const changed = sums.flatMap((sum, place) => (sum === 0 ? [] : [String(place), String(sum)]));
  return [String(hour), digest(text).slice(0, GROUP), text, changed];
}
