import type { Ledger, LedgerEntry } from '../../../contract/index.ts';
import { indexedBy } from '../kit/call-filter.ts';
import { hourOf } from '../kit/call-rows.ts';
import { entryId, pageLimit, readCursor, storeKey, whole } from '../kit/check.ts';
import { storeRefused } from '../kit/failure.ts';
import type { JournalMover } from '../kit/journal-mover.ts';
import { createBudgetShares, createLedgerChanges, type LedgerKeys, NEW_ACCOUNT } from '../kit/ledger.ts';
import {
  accountRowId,
  createVersionedLedger,
  type LedgerCommit,
  readAccountRow,
  readBudgets,
  requestKeysOf,
  type StoredRow,
  TURN_MS,
  type VersionedRows,
  type WrittenRow,
} from '../kit/versioned-ledger.ts';
import { type Command, createKeys, type Keys, placeOf, readJson, readList, readPage, readReport } from './calls.ts';
import {
  type Connection,
  defineScript,
  defineWrite,
  explainSchema,
  isReply,
  runScript,
  SCHEMA_VERSION,
} from './connection.ts';
import { packEnds } from './journal.ts';
import { createRedisRename } from './rename.ts';

/**
 * All keys of the ledger have the hash tag `{ledger}`. A transaction changes an account and budgets of many accounts,
 * so they must be on one node of a cluster. A row (`account:`, `budget:`, `request:`) is a text: its version, a space
 * and the row as JSON.
 */

/**
 * Compares row versions, and writes if all are as expected and no other process has the turn. KEYS: schema of the
 * ledger, its journal, its turn. ARGV: deadline, schema, changes, journal rows. The changes are one JSON text:
 * key and version of each row ('' if absent), commands as texts, and the process that requests its turn, if any. Returns
 * the current rows if nothing was written, else 0.
 */
const COMMIT = defineWrite(`
local schema = redis.call('GET', KEYS[1])
if schema and schema ~= ARGV[2] then return redis.error_reply('SCHEMA ' .. schema) end
local changes, rows, isStale = cjson.decode(ARGV[3]), {}, false
for i, row in ipairs(changes.rows) do
  rows[i] = redis.call('GET', row[1]) or ''
  if (string.match(rows[i], '^%S+') or '') ~= row[2] then isStale = true end
end
local turn = redis.call('GET', KEYS[3])
if isStale or (turn and turn ~= changes.turn and #rows > 0) then
  if changes.turn then redis.call('SET', KEYS[3], changes.turn, 'NX', 'PX', ${TURN_MS}) end
  return rows
end
if turn and turn == changes.turn then redis.call('DEL', KEYS[3]) end
-- Writes come last: if one fails, for example because the journal key has another type, balances are unchanged.
if #ARGV > 3 then redis.call('RPUSH', KEYS[2], unpack(ARGV, 4)) end
for _, command in ipairs(changes.commands) do redis.call(unpack(command)) end
return 0
`);

/** KEYS: any key, to choose the node of a cluster. Returns the server's time in Unix milliseconds. */
const CLOCK = defineScript(`
local clock = redis.call('TIME')
return string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
`);

const SWEEP_BATCH = 200;

interface LedgerOptions {
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly journal: JournalMover;
}

/** Ledger in Redis: `kit/ledger.ts` decides; one script compares row versions and writes. */
export function createRedisLedger(connection: Connection, ledgerRows: RedisLedgerRows): Ledger {
  const { keys } = ledgerRows;
  const transact = createVersionedLedger(ledgerRows);
  const reads: Pick<Ledger, 'calls' | 'report'> = {
    calls: async (query) => {
      await ledgerRows.journal.drain();
      return readPage(connection, keys, query);
    },
    report: async (query) => {
      await ledgerRows.journal.drain();
      return readReport(connection, keys, query);
    },
  };
  return {
    ...reads,
    rename: createRedisRename({ connection, ledgerRows, ...reads }),
    ...createLedgerChanges({ transact, findExpired: (now) => ledgerRows.findExpired(now) }),
    ...createBudgetShares({ transact }),
    clock: async () => Number(await connection.read((client) => runScript(client, CLOCK, [keys.due], []))),
    balance: async (account) => {
      const [row] = await ledgerRows.read([accountRowId(storeKey(account))]);
      const { balance, held, spent, credited, updatedAt } = row ? readAccountRow(row) : NEW_ACCOUNT;
      return { balance, held, spent, credited, updatedAt };
    },
    accounts: async ({ limit, after }) => {
      const from = after === undefined ? '-' : `(${JSON.stringify(after)}`;
      const page = { LIMIT: { offset: 0, count: pageLimit(limit) } };
      const names = await connection.read((client) => client.zRangeByLex(keys.accounts, from, '+', page));
      const rows = await ledgerRows.read(names.map((name) => accountRowId(storeKey(readJson<string>(name)))));
      return rows.map((row) => {
        const { name, lastEntry: _, ...balance } = readAccountRow(row);
        return { account: name, ...balance };
      });
    },
    budgets: (ids) => readBudgets((rows) => ledgerRows.read(rows), ids),
    entries: (account, page) => ledgerRows.entries(account, page),
    forgetCalls: (before) => ledgerRows.forget(hourOf(before)),
  };
}

/** Reads and writes the rows and entries of the ledger. */
export class RedisLedgerRows implements VersionedRows {
  readonly kind = 'redis';
  readonly timeoutMs: number;
  readonly keys: Keys;
  readonly journal: JournalMover;
  readonly #connection: Connection;

  constructor(connection: Connection, { prefix, timeoutMs, journal }: LedgerOptions) {
    this.#connection = connection;
    this.timeoutMs = timeoutMs;
    this.keys = createKeys(prefix);
    this.journal = journal;
  }

  now(): number {
    return this.#connection.now();
  }

  reconnected(error: unknown): Promise<boolean> {
    return this.#connection.reconnected(error);
  }

  async read(ids: readonly string[]): Promise<readonly StoredRow[]> {
    if (ids.length === 0) return [];
    return toRows(ids, await this.#connection.read((client) => client.mGet(ids.map(this.keys.row))));
  }

  async commit({ expected, version, rows, turn, ...ends }: LedgerCommit) {
    const { accounts } = this.keys;
    const commands = rows.flatMap((row) => this.#writeRow(row, version));
    for (const { n, name } of ends.entries) if (n === 1) commands.push(['ZADD', accounts, '0', JSON.stringify(name)]);
    const packed = packEnds(ends);
    const newer = await this.run(expected, commands, { ends: packed, turn });
    if (!newer && packed.length > 0) this.journal.moveLater();
    return newer;
  }

  /** Runs commands in one script if rows have the expected versions; otherwise returns the current rows. */
  async run(
    expected: ReadonlyMap<string, string>,
    commands: readonly Command[],
    { ends = [], turn }: { readonly ends?: readonly string[]; readonly turn?: string | undefined } = {},
  ) {
    const { keys } = this;
    const rows = [...expected].map(([id, version]) => [keys.row(id), version]);
    try {
      const reply = await this.#connection.write(
        COMMIT,
        [keys.schema, keys.journal, keys.turn],
        [SCHEMA_VERSION, JSON.stringify({ rows, commands, turn }), ...ends],
      );
      return Array.isArray(reply) ? toRows([...expected.keys()], reply) : undefined;
    } catch (error) {
      const { cause } = error as Error;
      if (!isReply(cause, 'SCHEMA')) throw error;
      throw storeRefused(explainSchema(Number(/\d+/.exec(String(cause))?.[0])) ?? '', cause);
    }
  }

  #writeRow({ id, text, until, due }: WrittenRow, version: string): readonly Command[] {
    const { keys } = this;
    const life = until === undefined ? [] : ['PX', String(Math.max(1, until - this.now()))];
    const set: Command = ['SET', keys.row(id), `${version} ${text}`, ...life];
    if (due !== undefined) return [set, ['ZADD', keys.due, String(due), id]];
    return id.startsWith('request:') && until !== undefined ? [set, ['ZREM', keys.due, id]] : [set];
  }

  /** Returns expired held requests. Drops ids whose request is missing (evicted, deleted by hand). */
  async findExpired(now: number): Promise<readonly LedgerKeys[]> {
    const { due } = this.keys;
    const page = { LIMIT: { offset: 0, count: SWEEP_BATCH } };
    for (;;) {
      const ids = await this.#connection.read((client) => client.zRangeByScore(due, '-inf', now - 1, page));
      const accounts = ids.map((id) => accountRowId(requestKeysOf(id, String).account));
      const found = new Map((await this.read([...ids, ...accounts])).map((row) => [row.id, row]));
      const gone = ids.filter((id) => !found.has(id));
      if (gone.length > 0) await this.run(new Map(gone.map((id) => [id, ''])), [['ZREM', due, ...gone]]);
      if (gone.length > 0 && gone.length === ids.length) continue;
      return ids.flatMap((id, place) => {
        const account = found.get(accounts[place] ?? '');
        return account && found.has(id) ? [requestKeysOf(id, () => readAccountRow(account).name)] : [];
      });
    }
  }

  /** Returns a page of ledger entries. The oldest stored entry includes all before it. */
  async entries(account: string, { limit, after }: { readonly limit: number; readonly after?: string }) {
    const before = readCursor(after);
    await this.journal.drain();
    const key = this.keys.entries(storeKey(account));
    const [first, newest] = await Promise.all(
      [0, -1].map((place) => this.#connection.read((client) => client.lIndex(key, place))),
    );
    if (first == null || newest == null) return [];
    const oldest = readLine(account, first).n;
    const last = readLine(account, newest).n;
    // The list has no gaps, so the position of an entry follows from its number.
    const skip = Math.max(0, last - before + 1);
    const lines = await this.#connection.read((client) => client.lRange(key, -(skip + pageLimit(limit)), -(skip + 1)));
    // Entries written between the reads shift the list; they are newer than this page.
    return lines
      .map((line) => readLine(account, line))
      .filter(({ n }) => n < before)
      .map(({ n, balance, entry }) => (n === oldest && n > 1 ? carryForward(entry, balance) : entry))
      .reverse();
  }

  async forget(before: number): Promise<number> {
    const { keys } = this;
    await this.journal.drain();
    const nothing = new Map<string, string>();
    await this.run(nothing, [['ZADD', keys.recordsFrom, 'GT', String(before), 'at']]);
    const hours = await this.#connection.read((client) => client.zRangeByScore(keys.recordHours, '-inf', before - 1));
    let total = 0;
    for (const hour of hours.map(Number)) {
      for await (const batch of readList(this.#connection, keys, keys.calls(hour), '+', '-')) {
        const ids = batch.map(({ at, tie }) => `${placeOf(at)}:${tie}`);
        const lists = batch.flatMap(({ call }, place) =>
          call
            ? indexedBy(call).map(([name, value]): Command => ['ZREM', keys.callsBy(name, value), ids[place] ?? ''])
            : [],
        );
        await this.run(nothing, [...lists, ['ZREM', keys.calls(hour), ...ids], ['HDEL', keys.records(hour), ...ids]]);
        total += ids.length;
      }
      await this.run(nothing, [['ZREM', keys.recordHours, String(hour)]]);
    }
    return total;
  }
}

function toRows(ids: readonly string[], texts: readonly unknown[]): readonly StoredRow[] {
  return ids.flatMap((id, place) => {
    const text = texts[place];
    if (typeof text !== 'string' || text === '') return [];
    const blank = text.indexOf(' ');
    return [{ id, version: text.slice(0, blank), text: text.slice(blank + 1) }];
  });
}

interface Line {
  readonly n: number;
  readonly balance: number;
  readonly entry: LedgerEntry;
}

export function readLine(account: string, line: string): Line {
  const [n, kind, amount, reason, ref, at, balance] = readJson<readonly unknown[]>(line);
  const reported = { kind: kind === 'credit' ? kind : 'charge', reason: String(reason), ref: String(ref) } as const;
  const entry = { id: entryId(whole(n)), account, ...reported, amount: whole(amount), at: whole(at) };
  return { n: whole(n), balance: whole(balance), entry };
}

/** Returns the entry that replaces an account's oldest entries, up to and including this one. */
export function carryForward(entry: LedgerEntry, balance: number): LedgerEntry {
  return { ...entry, kind: balance < 0 ? 'charge' : 'credit', amount: balance, reason: 'carried forward', ref: '' };
}
