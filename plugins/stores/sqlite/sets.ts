import type { Sets } from '../../../core/index.ts';
import { checkMember, pageLimit, storeKey } from '../kit/check.ts';
import type { Database } from './driver.ts';
import type { Writer } from './writer.ts';

/** Sets in SQLite: a row per member. */
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
