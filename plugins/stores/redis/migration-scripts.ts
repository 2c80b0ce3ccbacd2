import { defineScript } from './client.ts';
import { RECORDS } from './record-scripts.ts';

/** KEYS: account, accounts. ARGV: prefix, digest of the account, and for each budget its name there and its digest now. */
export const MOVE_BUDGETS = defineScript(`
for i = 3, #ARGV, 2 do
  local key = ARGV[1] .. ':budget:' .. ARGV[i + 1]
  for _, name in ipairs({ 'spent', 'held' }) do
    local field = name .. ':+' .. ARGV[i]
    local value = redis.call('HGET', KEYS[1], field)
    if value then
      redis.call('HINCRBY', key, name, value)
      redis.call('HDEL', KEYS[1], field)
    end
  end
end
local account = redis.call('HMGET', KEYS[1], 'last_entry', 'name')
if account[1] and not account[2] then redis.call('ZADD', KEYS[2], 0, '~' .. ARGV[2]) end
return 1
`);

/** KEYS: the usage of an account's day. ARGV: '', prefix, hour, and for each row its field there and its group now. */
export const ADD_USAGE = defineScript(`${RECORDS}
local from = tonumber(ARGV[3]) + 3600000
-- Of the hours before, only these rows are known.
if number(redis.call('GET', prefix .. ':records-from')) < from then redis.call('SET', prefix .. ':records-from', text(from)) end
for i = 4, #ARGV, 2 do
  local row = redis.call('HGET', KEYS[1], ARGV[i])
  if row then
    local requests, prompt, completion, characters, cost = string.match(row, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    if requests then
      count(ARGV[3], ARGV[i + 1], table.concat({ requests, 0, 0, 0, prompt, completion, 0, 0, characters, cost, 0 }, ' '), 1)
    end
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
return 1
`);

/** KEYS: request. ARGV: the digest of its budget or '', and of a swept one when, field and sums of its rollup. */
export const MOVE_REQUEST = defineScript(`
local was = redis.call('HMGET', KEYS[1], 'purse', 'state')
if not was[1] then return 0 end
redis.call('HSET', KEYS[1], 'budgets', ARGV[1])
if was[2] == 'swept' then redis.call('HSET', KEYS[1], 'at', ARGV[2], 'field', ARGV[3], 'sums', ARGV[4]) end
redis.call('HDEL', KEYS[1], 'purse', 'usage')
return 1
`);
