import KeyvRedis from '@keyv/redis';
import type { KeyvStoreAdapter } from 'keyv';
import {
  type Counters,
  definePlugin,
  type Log,
  type Sets,
  type Store,
  type StoreWatcher,
  type Window,
  type WindowState,
} from '../../../contract/index.ts';
import { checkMember, digest, finite, pageLimit, storeKey } from '../kit/check.ts';
import { createDocuments } from '../kit/documents.ts';
import { storeUnavailable, unreadable } from '../kit/failure.ts';
import { within } from '../kit/guard.ts';
import { JournalMover } from '../kit/journal-mover.ts';
import { KEPT_OPTION, withStored } from '../kit/kept.ts';
import { readTimeout, TIMEOUT_OPTION } from '../kit/server-connection.ts';
import { timeOperations } from '../kit/timed.ts';
import { watchWrites } from '../kit/write-watch.ts';
import { createKeys as createLedgerKeys } from './calls.ts';
import {
  type ClientOptions,
  type Connection,
  connect,
  defineWrite,
  destroyClient,
  explainSchema,
  findRefusal,
  isMigrated,
  makeClient,
  readSchemaVersion,
  SCHEMA_VERSION,
} from './connection.ts';
import { createJournal } from './journal.ts';
import { createRedisLedger, RedisLedgerRows } from './ledger.ts';
import { createRedisTransfer } from './transfer.ts';

/**
 * Returns the keys of documents, sets and counters under a prefix. User input is hashed before it becomes part of a
 * key.
 */
export function createKeys(prefix: string) {
  return {
    set: (name: string): string => `${prefix}:set:${digest(name)}`,
    /** Key of the name of a set or number, on the same node of a cluster. */
    name: (key: string): string => `${prefix}:name:{${key}}`,
    window: (key: string): string => `${prefix}:window:${digest(key)}`,
    lease: (key: string): string => `${prefix}:lease:${digest(key)}`,
    number: (key: string): string => `${prefix}:number:${digest(key)}`,
    documents: (namespace: string): string => `${prefix}:doc:${namespace}`,
  };
}

type Keys = ReturnType<typeof createKeys>;

/**
 * KEYS: windows. ARGV: deadline, now, and for each window limit, length, amount. Returns the first insufficient window
 * (counted from 1, 0 for none), then used amount and end of each.
 */
const TAKE = defineWrite(`
local now, refused, reply = tonumber(ARGV[2]), 0, { 0 }
local used, ends = {}, {}
for i, key in ipairs(KEYS) do
  local found = redis.call('HMGET', key, 'used', 'resets_at')
  used[key], ends[key] = tonumber(found[1] or '0'), tonumber(found[2] or '0')
  if ends[key] <= now then used[key], ends[key] = 0, now + tonumber(ARGV[i * 3 + 1]) end
end
local before = {}
for key, value in pairs(used) do before[key] = value end
for i, key in ipairs(KEYS) do
  local amount = tonumber(ARGV[i * 3 + 2])
  if used[key] + amount > tonumber(ARGV[i * 3]) then refused = i break end
  used[key] = used[key] + amount
end
if refused > 0 then used = before end
for i, key in ipairs(KEYS) do
  if refused == 0 then
    redis.call('HSET', key, 'used', string.format('%.0f', used[key]), 'resets_at', string.format('%.0f', ends[key]))
    redis.call('PEXPIRE', key, math.max(1000, ends[key] - now + 60000))
  end
  reply[i * 2] = string.format('%.0f', used[key])
  reply[i * 2 + 1] = string.format('%.0f', ends[key])
end
reply[1] = string.format('%.0f', refused)
return reply
`);

/** KEYS: window. ARGV: deadline, now, delta. */
const ADJUST = defineWrite(`
local found = redis.call('HMGET', KEYS[1], 'used', 'resets_at')
if not found[1] or tonumber(found[2]) <= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'used', string.format('%.0f', math.max(0, tonumber(found[1]) + tonumber(ARGV[3]))))
return 1
`);

/** KEYS: lease. ARGV: deadline, now, id, limit, time to live. */
const LEASE = defineWrite(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])
if not redis.call('ZSCORE', KEYS[1], ARGV[3]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', tonumber(ARGV[2]) + tonumber(ARGV[5])), ARGV[3])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[5]) + 60000 then redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[5]) + 120000) end
return 1
`);

/** KEYS: lease. ARGV: deadline, id. */
const RELEASE = defineWrite(`return redis.call('ZREM', KEYS[1], ARGV[2])`);

/** KEYS: number, its name. ARGV: deadline, increment, name. */
const NEXT = defineWrite(`
local value = redis.call('INCRBY', KEYS[1], ARGV[2])
if value == tonumber(ARGV[2]) then redis.call('SET', KEYS[2], ARGV[3]) end
return value
`);

/**
 * Windows, leases and numbers in Redis. In a cluster, the windows of one call are in different slots, which no script
 * can combine. There they are counted one after the other, and reverted if a later window rejects the call. The number
 * of admitted calls is the same; only a concurrent call may see a slightly lower rest.
 */
function createRedisCounters(connection: Connection, keys: Keys, isCluster: boolean): Counters {
  const takeAll = async (windows: readonly Window[], now: number) => {
    if (windows.length === 0) return { refused: undefined, states: [] };
    const args = windows.flatMap(({ limit, windowMs, amount }) => [finite(limit), windowMs, amount]);
    const reply = await connection.write(
      TAKE,
      windows.map(({ key }) => keys.window(key)),
      [now, ...args],
    );
    if (!Array.isArray(reply)) throw unreadable('window');
    const [first = 0, ...numbers] = reply.map(Number);
    const states = windows.map(({ limit }, index): WindowState => {
      const [used = 0, ends = now] = numbers.slice(index * 2, index * 2 + 2);
      return { remaining: Math.max(0, limit - used), resetMs: ends - now };
    });
    return { refused: first === 0 ? undefined : first - 1, states };
  };

  const adjust = async (key: string, delta: number, now: number): Promise<void> => {
    await connection.write(ADJUST, [keys.window(key)], [now, delta]);
  };

  const takeInTurn = async (windows: readonly Window[], now: number) => {
    const states: WindowState[] = [];
    for (const [index, window] of windows.entries()) {
      const { refused, states: own } = await takeAll([window], now);
      states.push(...own);
      if (refused === undefined) continue;
      const taken = windows.slice(0, index);
      await Promise.all(taken.map(({ key, amount }) => adjust(key, -amount, now)));
      const all = await Promise.all(windows.map((w) => takeAll([{ ...w, amount: 0 }], now)));
      return { refused: index, states: all.flatMap((one) => one.states) };
    }
    return { refused: undefined, states };
  };

  return {
    take: isCluster ? takeInTurn : takeAll,
    adjust: (key, _windowMs, delta, now) => adjust(key, delta, now),
    lease: async (key, id, limit, ttlMs, now) =>
      (await connection.write(LEASE, [keys.lease(key)], [now, storeKey(id), finite(limit), ttlMs])) === 1,
    release: async (key, id) => {
      await connection.write(RELEASE, [keys.lease(key)], [storeKey(id)]);
    },
    next: async (key, by = 1) => {
      const number = keys.number(key);
      if (by !== 0) return Number(await connection.write(NEXT, [number, keys.name(number)], [by, storeKey(key)]));
      return Number((await connection.read((client) => client.get(number))) ?? 0);
    },
  };
}

/** KEYS: document. ARGV: deadline, value, time to live or ''. */
const SET = defineWrite(`
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
`);

/** KEYS: document. ARGV: deadline. */
const DELETE = defineWrite(`return redis.call('UNLINK', KEYS[1])`);

/**
 * Creates Keyv adapters: one `@keyv/redis` per namespace, all on the client of the connection. They only read. Scripts
 * with a deadline change documents, because a plain SET that timed out may still run much later.
 */
export function createRedisDocuments(connection: Connection, keys: Keys): (namespace: string) => KeyvStoreAdapter {
  return (namespace) => {
    const inner = new KeyvRedis<string>(undefined, { throwOnErrors: true });
    const prefix = (): string => keys.documents(adapter.namespace ?? namespace);
    const read = <T>(command: (reader: KeyvRedis<string>) => Promise<T>): Promise<T> =>
      connection.read((client) => {
        inner.namespace = prefix();
        if (inner.client !== client) inner.client = client;
        return command(inner);
      });
    const keyOf = (key: string): string => inner.createKeyPrefix(storeKey(key), prefix());

    const adapter: KeyvStoreAdapter = {
      opts: { dialect: 'redis', url: 'redis:' },
      /** Keyv also sets it to its own namespace. */
      namespace,
      on: () => adapter,
      get: <Value>(key: string) => read((reader) => reader.get<Value>(storeKey(key))),
      getMany: <Value>(list: string[]) => read((reader) => reader.getMany<Value>(list.map(storeKey))),
      has: (key) => read((reader) => reader.has(storeKey(key))),
      hasMany: (list) => read((reader) => reader.hasMany(list.map(storeKey))),
      set: async (key, value: string, ttlMs) => {
        await connection.write(SET, [keyOf(key)], [value, ttlMs === undefined ? '' : Math.ceil(ttlMs)]);
      },
      delete: async (key) => (await connection.write(DELETE, [keyOf(key)], [])) === 1,
      clear: () => read((reader) => reader.clear()),
      async *iterator<Value>() {
        const rows = await read(async (reader) => reader.iterator<Awaited<Value>>(inner.namespace));
        for (let row = await read(() => rows.next()); !row.done; row = await read(() => rows.next())) yield row.value;
      },
    };
    return adapter;
  };
}

/**
 * KEYS: set, its name. ARGV: deadline, member, max or '', name. All scores are 0, so the set is sorted by the bytes of
 * its members.
 */
const ADD = defineWrite(`
if redis.call('ZSCORE', KEYS[1], ARGV[2]) then return 'present' end
if ARGV[3] ~= '' and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 'full' end
if redis.call('ZADD', KEYS[1], 0, ARGV[2]) == 1 and redis.call('ZCARD', KEYS[1]) == 1 then redis.call('SET', KEYS[2], ARGV[4]) end
return 'added'
`);

/** KEYS: set, its name. ARGV: deadline, member. */
const REMOVE = defineWrite(`
local removed = redis.call('ZREM', KEYS[1], ARGV[2])
if removed == 1 and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('UNLINK', KEYS[2]) end
return removed
`);

/** Sets in Redis: sorted sets, for their order. */
function createRedisSets(connection: Connection, keys: Keys): Sets {
  return {
    add: async (set, member, max) => {
      checkMember(member);
      const key = keys.set(set);
      const outcome = await connection.write(ADD, [key, keys.name(key)], [member, max ?? '', storeKey(set)]);
      if (outcome !== 'added' && outcome !== 'present' && outcome !== 'full') throw unreadable('set');
      return outcome;
    },
    remove: async (set, member) => {
      const key = keys.set(set);
      return (await connection.write(REMOVE, [key, keys.name(key)], [member])) === 1;
    },
    has: async (set, member) => (await connection.read((client) => client.zScore(keys.set(set), member))) !== null,
    list: (set, { limit, after }) => {
      const from = after === undefined ? '-' : `(${after}`;
      const page = { LIMIT: { offset: 0, count: pageLimit(limit) } };
      return connection.read((client) => client.zRangeByLex(keys.set(set), from, '+', page));
    },
    size: (set) => connection.read((client) => client.zCard(keys.set(set))),
  };
}

/** Scripts that add documents, members and numbers from another store. */
const SCRIPTS = Object.freeze({ put: SET, add: ADD, count: NEXT });

/** Share of Redis's memory for documents of accounts. The rest is for the ledger and counters. */
const KEPT_SHARE = 0.75;
/**
 * Share of the machine's memory that counts as Redis's memory if `maxmemory` is not set, because other programs use the
 * machine too.
 */
const MACHINE_SHARE = 0.5;

/**
 * Creates a function that returns the memory left for documents of accounts. Undefined if the server is a cluster or
 * forbids INFO. Warns when the memory is exhausted.
 */
function createRoomFinder(connection: Connection, log: Log | undefined): () => Promise<number | undefined> {
  let isFull = false;
  return async () => {
    const room = roomOf(await connection.read(async (client) => ('info' in client ? client.info('memory') : '')));
    if (!isFull && room !== undefined && room <= 0)
      log?.warn(
        { store: 'redis' },
        'Redis uses three quarters of its maxmemory (or of half of its machine), so accounts can store almost no new data; set or raise maxmemory, or lower keepPerAccount',
      );
    isFull = room !== undefined && room <= 0;
    return room;
  };
}

/** Reads the bytes left for documents of accounts from `INFO memory`. */
export function roomOf(info: string): number | undefined {
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const most = read('maxmemory') || read('total_system_memory') * MACHINE_SHARE;
  return most === 0 ? undefined : most * KEPT_SHARE - read('used_memory');
}

const PROBE_MS = 5_000;

/** Checks that the server accepts the user and password and has readable keys. Writes nothing. */
async function probeRedis({ prefix, ...options }: ClientOptions & { readonly prefix: string }): Promise<string> {
  const client = makeClient(options);
  // `connect` rejects with the same error.
  client.on('error', () => undefined);
  try {
    await within(PROBE_MS, Promise.resolve(client.connect()));
    const version = await within(PROBE_MS, readSchemaVersion(client, prefix));
    if (version === undefined) return 'no keys of a gateway yet';
    if (isMigrated(version)) return `schema ${version}, which a start takes to ${SCHEMA_VERSION}`;
    const refusal = explainSchema(version);
    if (refusal !== undefined) throw storeUnavailable(refusal);
    return `schema ${version}`;
  } catch (cause) {
    throw storeUnavailable(findRefusal(cause) ?? 'The redis store does not respond.', cause);
  } finally {
    destroyClient(client);
  }
}

interface RedisOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` for TLS. */
  readonly url: string;
  /** Uses the cluster protocol; `url` is then one of its nodes. */
  readonly cluster?: boolean;
  /** Prefix of all keys; `tollgate` by default. Different prefixes allow gateways to share a server. */
  readonly prefix?: string;
  /** Maximum duration of an operation; 500 by default. */
  readonly timeoutMs?: number;
  /** Number of entries kept per account; older ones are merged into one. 100,000 by default. */
  readonly keepEntries?: number;
  readonly keepPerAccount?: string | number;
  readonly log?: Log;
}

/**
 * Opens a store on a Redis server or cluster, version 6.2 or later. Also resolves while the server is unavailable;
 * operations are then rejected until it responds. Rejects if the server rejects the password or database of the URL.
 */
export async function openRedis(options: RedisOptions, observe?: StoreWatcher): Promise<Store> {
  const { url, cluster = false, prefix = 'tollgate', timeoutMs = 500, keepEntries = 100_000, log } = options;
  const { keepPerAccount } = options;
  const connection = await connect({ url, cluster, prefix, timeoutMs, log });
  const keys = createKeys(prefix);
  const writes = watchWrites(log);
  const { onFailure } = writes;
  const journal = new JournalMover(createJournal(connection, createLedgerKeys(prefix), keepEntries), log);
  const ledgerRows = new RedisLedgerRows(connection, { prefix, timeoutMs, journal });
  const ledger = createRedisLedger(connection, ledgerRows);
  return writes.over({
    kind: 'redis',
    ...withStored(
      {
        keyv: createDocuments(createRedisDocuments(connection, keys), observe, onFailure),
        sets: timeOperations(createRedisSets(connection, keys), 'sets', observe, onFailure),
      },
      keepPerAccount,
      createRoomFinder(connection, log),
    ),
    ledger: timeOperations(ledger, 'ledger', observe, onFailure),
    transfer: () => createRedisTransfer({ connection, prefix, keys, ledgerRows, ledger, scripts: SCRIPTS }),
    counters: timeOperations(createRedisCounters(connection, keys, cluster), 'counters', observe, onFailure),
    health: async () => {
      await connection.health();
      await journal.check();
    },
    close: async () => {
      await journal.close();
      await connection.close();
    },
  });
}

export default definePlugin({
  name: 'redis',
  kind: 'store',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    examples: ['redis://host:6379'],
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        pattern: '^rediss?://',
        secret: true,
        description: 'redis://user:password@host:port/database, or rediss:// for TLS.',
      },
      cluster: { type: 'boolean', description: 'Uses the cluster protocol; the URL is then one of the nodes.' },
      prefix: { type: 'string', pattern: '^[a-z0-9-]{1,40}$', description: 'Prefix of all keys.' },
      timeout: TIMEOUT_OPTION,
      keepPerAccount: KEPT_OPTION,
      keepEntries: {
        type: 'integer',
        minimum: 100,
        description: 'Maximum number of stored ledger entries per account.',
      },
    },
  },
  setup(api, { timeout, ...rest }) {
    const options = rest as RedisOptions;
    api.store(
      (observe) => openRedis({ ...options, ...readTimeout(timeout), log: api.log }, observe),
      () => probeRedis({ prefix: 'tollgate', ...options }),
    );
  },
});
