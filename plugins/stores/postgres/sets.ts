import type { Sets } from '../../../core/index.ts';
import { checkMember, pageLimit, storeKey } from '../kit/check.ts';
import type { Connection } from './connection.ts';

const HAS = 'SELECT 1 FROM tollgate.members WHERE name = $1 AND member = $2';
const LIST = 'SELECT member FROM tollgate.members WHERE name = $1 AND member > $2 ORDER BY member LIMIT $3';
const SIZE = 'SELECT count(*) AS size FROM tollgate.members WHERE name = $1';

/** Sets in Postgres: a row per member, sorted by bytes (collation "C"). */
export function createPostgresSets(connection: Connection): Sets {
  return {
    add: async (set, member, max) => {
      checkMember(member);
      const { result } = await connection.write('add_member', [storeKey(set), member, max ?? null]);
      return result as 'added' | 'present' | 'full';
    },
    remove: async (set, member) => {
      if (member.includes('\0')) return false;
      return (await connection.write('drop_member', [storeKey(set), member]))['result'] === true;
    },
    has: async (set, member) => {
      if (member.includes('\0')) return false;
      return (await connection.read('has_member', HAS, [storeKey(set), member])).length > 0;
    },
    list: async (set, { limit, after = '' }) => {
      const rows = await connection.read('list_members', LIST, [
        storeKey(set),
        after.replaceAll('\0', ''),
        pageLimit(limit),
      ]);
      return rows.map((row) => String(row['member']));
    },
    size: async (set) => Number((await connection.read('count_members', SIZE, [storeKey(set)]))[0]?.['size'] ?? 0),
  };
}
