import KeyvRedis, { type RedisClientType } from '@keyv/redis';
import type { KeyvStoreAdapter } from 'keyv';
import { storeKey } from '../kit/key.ts';
import type { RedisClient } from './client.ts';
import { type Connection, defineWrite } from './connection.ts';
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
    const use = (client: RedisClient): KeyvRedis<string> => {
      inner.namespace = keys.documents(adapter.namespace);
      const current = client as unknown as RedisClientType;
      if (inner.client !== current) inner.client = current;
      return inner;
    };
    const read = <T>(command: (adapter: KeyvRedis<string>) => Promise<T>) =>
      connection.read((client) => command(use(client)));
    const keyOf = (key: string): string => inner.createKeyPrefix(storeKey(key), keys.documents(adapter.namespace));

    const adapter = {
      opts: { dialect: 'redis', url: 'redis:' },
      /** Keyv sets it too, to what it was opened with. */
      namespace,
      on: () => adapter,
      get: (key: string) => read((of) => of.get(storeKey(key))),
      getMany: (list: string[]) => read((of) => of.getMany(list.map(storeKey))),
      has: (key: string) => read((of) => of.has(storeKey(key))),
      hasMany: (list: string[]) => read((of) => of.hasMany(list.map(storeKey))),
      set: async (key: string, value: string, ttlMs?: number) => {
        await connection.write(SET, [keyOf(key)], [value, ttlMs === undefined ? '' : Math.ceil(ttlMs)]);
      },
      delete: async (key: string) => (await connection.write(DELETE, [keyOf(key)], [])) === 1,
      clear: () => read((of) => of.clear()),
      async *iterator() {
        const rows = await read(async (of) => of.iterator(inner.namespace));
        for (let row = await read(() => rows.next()); !row.done; row = await read(() => rows.next())) yield row.value;
      },
    };
    return adapter as unknown as KeyvStoreAdapter;
  };
}
