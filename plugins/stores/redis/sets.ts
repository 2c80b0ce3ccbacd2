import type { Sets } from '../../../core/index.ts';
import { checkMember, pageLimit } from '../kit/check.ts';
import { unreadable } from '../kit/failure.ts';
import { type Connection, defineWrite } from './client.ts';
import type { Keys } from './keys.ts';

/** KEYS: set. ARGV: deadline, member, max or ''. All scores are 0: the set is sorted by the bytes of its members. */
const ADD = defineWrite(`
if redis.call('ZSCORE', KEYS[1], ARGV[2]) then return 'present' end
if ARGV[3] ~= '' and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 'full' end
redis.call('ZADD', KEYS[1], 0, ARGV[2])
return 'added'
`);

/** KEYS: set. ARGV: deadline, member. */
const REMOVE = defineWrite(`return redis.call('ZREM', KEYS[1], ARGV[2])`);

/** Sets in Redis: sorted sets, for their order. */
export function createRedisSets(connection: Connection, keys: Keys): Sets {
  return {
    add: async (set, member, max) => {
      checkMember(member);
      const outcome = await connection.write(ADD, [keys.set(set)], [member, max ?? '']);
      if (outcome !== 'added' && outcome !== 'present' && outcome !== 'full') throw unreadable('set');
      return outcome;
    },
    remove: async (set, member) => (await connection.write(REMOVE, [keys.set(set)], [member])) === 1,
    has: async (set, member) => (await connection.read((client) => client.zScore(keys.set(set), member))) !== null,
    list: (set, { limit, after }) => {
      const from = after === undefined ? '-' : `(${after}`;
      const page = { LIMIT: { offset: 0, count: pageLimit(limit) } };
      return connection.read((client) => client.zRangeByLex(keys.set(set), from, '+', page));
    },
    size: (set) => connection.read((client) => client.zCard(keys.set(set))),
  };
}
