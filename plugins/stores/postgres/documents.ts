import KeyvPostgres from '@keyv/postgres';
import type { KeyvStoreAdapter } from 'keyv';
import { digest, storeKey } from '../kit/check.ts';
import type { Connection, Value } from './connection.ts';

const PAGE = 100;
const HAS = 'SELECT 1 FROM tollgate.documents WHERE key = $1 AND (expires IS NULL OR expires > $2)';
/** `;` follows `:`: all keys that begin with `namespace:` are between the two. */
const LIST = `SELECT key, value FROM tollgate.documents WHERE key > $1 AND key < $2 AND (expires IS NULL OR expires > $3)
  ORDER BY key LIMIT ${PAGE}`;

/**
 * Makes Keyv adapters, one `@keyv/postgres` per namespace on the one guarded pool of the connection (by itself it shares
 * a pool with everybody in the process, and dies with it). It reads and clears; what changes a document goes through a
 * function with a deadline and keeps its expiry in a column, so that it can be purged.
 */
export function createPostgresDocuments(connection: Connection): (namespace: string) => KeyvStoreAdapter {
  class Reader extends KeyvPostgres {
    override async connect() {
      return async (sql: string, values: Value[] = []) => {
        // The table was made with the rest of the schema.
        if (sql.startsWith('CREATE')) return [];
        return [...(await connection.read(`keyv_${digest(sql).slice(0, 20)}`, sql, values))];
      };
    }
  }

  return (namespace) => {
    const inner = new Reader({ schema: 'tollgate', table: 'documents' });
    inner.on('error', () => undefined);
    const current = (): string => adapter.namespace ?? namespace;
    const keyOf = (key: string): string => `${current()}:${storeKey(key)}`;
    const has = async (key: string): Promise<boolean> =>
      (await connection.read('has_document', HAS, [keyOf(key), Date.now()])).length > 0;

    const adapter: KeyvStoreAdapter = {
      opts: { dialect: 'postgres', url: 'postgres:' },
      /** Keyv sets it too, to what it was opened with. */
      namespace,
      on: () => adapter,
      get: (key) => inner.get(keyOf(key)),
      getMany: (keys) => inner.getMany(keys.map(keyOf)),
      has,
      hasMany: (keys) => Promise.all(keys.map(has)),
      set: async (key, value: string, ttlMs) => {
        const expires = ttlMs === undefined ? null : Math.ceil(Date.now() + ttlMs);
        await connection.write('put_document', [keyOf(key), value, expires]);
      },
      delete: async (key) => (await connection.write('drop_document', [keyOf(key)]))['result'] === true,
      clear: () => {
        inner.namespace = current();
        return inner.clear();
      },
      async *iterator<Value>() {
        for (let after: string | undefined = `${current()}:`; after !== undefined; ) {
          const rows = await connection.read('list_documents', LIST, [after, `${current()};`, Date.now()]);
          for (const row of rows)
            yield [String(row['key']).slice(current().length + 1), row['value'] as Awaited<Value>];
          after = rows.length < PAGE ? undefined : String(rows.at(-1)?.['key']);
        }
      },
    };
    return adapter;
  };
}
