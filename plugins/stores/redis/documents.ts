import KeyvRedis from '@keyv/redis';
import type { KeyvStoreAdapter } from 'keyv';
import { storeKey } from '../kit/check.ts';
import { type Connection, defineWrite } from './client.ts';
import type { Keys } from './keys.ts';

/** KEYS: document. ARGV: deadline, value, time to live or ''. */
const SET = defineWrite(`
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
`);

/** KEYS: document. ARGV: deadline. */
const DELETE = defineWrite(`return redis.call('UNLINK', KEYS[1])`);

/**
 * Makes Keyv adapters, one `@keyv/redis` per namespace on the one client of the connection. It reads; what changes a
 * document goes through a script with a deadline, because a plain SET that timed out may still happen much later.
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
      /** Keyv sets it too, to what it was opened with. */
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
