import type { Counters, Window, WindowState } from '../../../core/index.ts';
import { finite, storeKey } from '../kit/check.ts';
import type { Connection } from './connection.ts';

const NUMBER = 'SELECT value FROM tollgate.numbers WHERE key = $1';

/** Windows, leases and numbers in Postgres. */
export function createPostgresCounters(connection: Connection): Counters {
  const take = async (windows: readonly Window[], now: number) => {
    if (windows.length === 0) return { refused: undefined, states: [] };
    const { refused, used_, ends } = await connection.write('take', [
      now,
      windows.map(({ key }) => storeKey(key)),
      windows.map(({ limit }) => finite(limit)),
      windows.map(({ windowMs }) => windowMs),
      windows.map(({ amount }) => amount),
    ]);
    const states = windows.map(({ limit }, index): WindowState => {
      const used = Number((used_ as readonly string[])[index]);
      return { remaining: Math.max(0, limit - used), resetMs: Number((ends as readonly string[])[index]) - now };
    });
    return { refused: refused === 0 ? undefined : Number(refused) - 1, states };
  };

  return {
    take,
    adjust: async (key, _windowMs, delta, now) => {
      await connection.write('adjust', [now, storeKey(key), delta]);
    },
    lease: async (key, id, limit, ttlMs, now) =>
      (await connection.write('lease', [now, storeKey(key), storeKey(id), finite(limit), ttlMs]))['result'] === true,
    release: async (key, id) => {
      await connection.write('end_lease', [storeKey(key), storeKey(id)]);
    },
    next: async (key, by = 1) => {
      if (by !== 0) return Number((await connection.write('next', [storeKey(key), by]))['result']);
      return Number((await connection.read('number', NUMBER, [storeKey(key)]))[0]?.['value'] ?? 0);
    },
  };
}
