import type { Counters, Window, WindowState } from '../../../core/index.ts';
import { finite, storeKey } from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import { type Connection, defineWrite } from './client.ts';
import type { Keys } from './keys.ts';

/**
 * KEYS: windows. ARGV: deadline, now, and for each window limit, length, amount. Returns the first window that had not
 * enough (counted from 1, 0 for none), then used and end of each.
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

/** KEYS: number. ARGV: deadline, by. */
const NEXT = defineWrite(`return redis.call('INCRBY', KEYS[1], ARGV[2])`);

/**
 * Windows, leases and numbers in Redis. On a cluster the windows of one call live in different slots, where no script
 * reaches: there they are counted one after the other, and counted back when a later one refuses. That admits exactly as
 * many; only a call in between may see a little less.
 */
export function createRedisCounters(connection: Connection, keys: Keys, isCluster: boolean): Counters {
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
      if (by !== 0) return Number(await connection.write(NEXT, [keys.number(key)], [by]));
      return Number((await connection.read((client) => client.get(keys.number(key)))) ?? 0);
    },
  };
}
