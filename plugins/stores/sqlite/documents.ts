import type { KeyvStoreAdapter } from 'keyv';
import type { Sets } from '../../../contract/index.ts';
import { checkMember, pageLimit, storeKey } from '../kit/check.ts';
import type { Database } from './driver.ts';
import type { Writer } from './writer.ts';

/** Number of rows that an iterator reads per page. */
const PAGE = 100;

/**
 * Creates Keyv adapters over the `documents` table, one per namespace. The namespace is a column, so it matches
 * exactly.
 */
export function createDocumentAdapters(database: Database, writer: Writer): (namespace: string) => KeyvStoreAdapter {
  const get = database.prepare(
    'SELECT value FROM documents WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)',
  );
  const set = database.prepare(`INSERT INTO documents (namespace, key, value, expires) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value, expires = excluded.expires`);
  const remove = database.prepare('DELETE FROM documents WHERE namespace = ? AND key = ?');
  const clear = database.prepare('DELETE FROM documents WHERE namespace = ?');
  const page = database.prepare(`SELECT key, value FROM documents WHERE namespace = ? AND key > ?
    AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?`);
  const expiry = (ttlMs: number | undefined): number | null =>
    ttlMs === undefined ? null : Math.ceil(Date.now() + ttlMs);
  const find = (namespace: string, key: string): string | undefined => {
    const value = get.get(namespace, storeKey(key), Date.now())?.['value'];
    return value == null ? undefined : String(value);
  };

  return (namespace) => {
    const adapter = {
      opts: { dialect: 'sqlite', url: 'sqlite:' },
      /** Keyv also sets it to its own namespace. */
      namespace,
      on: () => adapter,
      get: (key: string) => writer.read('documents.get', () => find(adapter.namespace, key)),
      getMany: (keys: string[]) =>
        writer.read('documents.getMany', () => keys.map((key) => find(adapter.namespace, key))),
      has: (key: string) => writer.read('documents.has', () => find(adapter.namespace, key) !== undefined),
      hasMany: (keys: string[]) =>
        writer.read('documents.hasMany', () => keys.map((key) => find(adapter.namespace, key) !== undefined)),
      set: async (key: string, value: string, ttlMs?: number) => {
        await writer.write('documents.set', () => set.run(adapter.namespace, storeKey(key), value, expiry(ttlMs)));
      },
      delete: (key: string) =>
        writer.write('documents.delete', () => Boolean(remove.run(adapter.namespace, storeKey(key)).changes)),
      deleteMany: (keys: string[]) =>
        writer.write(
          'documents.deleteMany',
          () => keys.filter((key) => remove.run(adapter.namespace, storeKey(key)).changes).length > 0,
        ),
      clear: async () => {
        await writer.write('documents.clear', () => clear.run(adapter.namespace));
      },
      async *iterator() {
        for (let after: string | undefined = ''; after !== undefined; ) {
          const from: string = after;
          const rows = await writer.read('documents.iterator', () =>
            page.all(adapter.namespace, from, Date.now(), PAGE),
          );
          for (const row of rows) yield [String(row['key']), String(row['value'])];
          after = rows.length < PAGE ? undefined : String(rows.at(-1)?.['key']);
        }
      },
    };
    return adapter as KeyvStoreAdapter;
  };
}

/** Sets in SQLite: one row per member. */
export function createSqliteSets(database: Database, writer: Writer): Sets {
  const insert = database.prepare('INSERT INTO members (name, member) VALUES (?, ?) ON CONFLICT DO NOTHING');
  const remove = database.prepare('DELETE FROM members WHERE name = ? AND member = ?');
  const find = database.prepare('SELECT 1 AS known FROM members WHERE name = ? AND member = ?');
  const count = database.prepare('SELECT count(*) AS size FROM members WHERE name = ?');
  const page = database.prepare('SELECT member FROM members WHERE name = ? AND member > ? ORDER BY member LIMIT ?');
  const sizeOf = (set: string): number => Number(count.get(set)?.['size'] ?? 0);

  const add = (set: string, member: string, max: number | undefined): 'added' | 'present' | 'full' => {
    if (max !== undefined) {
      if (find.get(set, member)) return 'present';
      if (sizeOf(set) >= max) return 'full';
    }
    return insert.run(set, member).changes ? 'added' : 'present';
  };

  return {
    add: async (set, member, max) => {
      checkMember(member);
      return writer.write('sets.add', () => add(storeKey(set), member, max));
    },
    remove: (set, member) => writer.write('sets.remove', () => Boolean(remove.run(storeKey(set), member).changes)),
    has: (set, member) => writer.read('sets.has', () => find.get(storeKey(set), member) !== undefined),
    list: (set, { limit, after = '' }) =>
      writer.read('sets.list', () =>
        page.all(storeKey(set), after, pageLimit(limit)).map((row) => String(row['member'])),
      ),
    size: (set) => writer.read('sets.size', () => sizeOf(storeKey(set))),
  };
}
