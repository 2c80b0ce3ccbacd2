import { defineScript, defineWrite } from './client.ts';

/*
 * The record of a call is a field of `records:<hour>`: `<cost> <facts as JSON>`, under its id `<at, 16 digits>:<member>`. The
 * ids of an hour are in `calls:<hour>`, those of an account in `calls-of:<digest>`, and those of a user, a key, a session and a
 * request in `calls-by:<name>:<SHA-1 of it>`, all in order. What an hour came to
 * is in `rollup:<hour>`: by the dimensions of calls as JSON, their sums with blanks between. Hours are Unix milliseconds.
 */

/** Longer than records are kept: should nobody forget them, they go by themselves. */
const LONGEST_MS = 800 * 86_400_000;

/** Calls `each` with each list, but those of hour and account, that the call of a record is in. */
const LISTS = `
local function lists_of(facts, each)
  local call = cjson.decode(facts)
  for _, name in ipairs({'requestId', 'session', 'key', 'userId'}) do
    if call[name] then each(prefix .. ':calls-by:' .. name .. ':' .. redis.sha1hex(call[name])) end
  end
end
`;

/** Lua functions that write records and the rollup; `prefix` is what all keys of the ledger begin with. */
export const RECORDS = `
local function text(n) if n == 0 then return '0' end return string.format('%.0f', n) end
local function number(value) return tonumber(value or '0') end
local prefix = ARGV[2]

local function hour_of(at) return text(tonumber(at) - tonumber(at) % 3600000) end

local function count(at, field, sums, sign)
  local key = prefix .. ':rollup:' .. hour_of(at)
  local was, list = redis.call('HGET', key, field), {}
  local before = string.gmatch(was or '', '%S+')
  for n in string.gmatch(sums, '%S+') do list[#list + 1] = text(number(before()) + sign * tonumber(n)) end
  if list[1] == '0' then redis.call('HDEL', key, field) return end
  redis.call('HSET', key, field, table.concat(list, ' '))
  if not was then redis.call('ZADD', prefix .. ':hours', hour_of(at), hour_of(at)) end
end

${LISTS}
local function record_id(at, member) return string.format('%016.0f', tonumber(at)) .. ':' .. member end

local function record(at, member, value)
  local hour, id = hour_of(at), record_id(at, member)
  local calls, records = prefix .. ':calls:' .. hour, prefix .. ':records:' .. hour
  redis.call('ZADD', calls, 0, id)
  redis.call('HSET', records, id, value)
  if redis.call('ZCARD', calls) == 1 then
    redis.call('PEXPIRE', calls, ${LONGEST_MS})
    redis.call('PEXPIRE', records, ${LONGEST_MS})
    redis.call('ZADD', prefix .. ':record-hours', hour, hour)
  end
  local function list(key)
    redis.call('ZADD', key, 0, id)
    redis.call('PEXPIRE', key, ${LONGEST_MS})
  end
  list(prefix .. ':calls-of:' .. string.match(member, '^[^:]+'))
  lists_of(string.match(value, '^%S+ (.*)$'), list)
end

-- Another cost for a record that is kept, and other facts unless they are ''.
local function replace_record(at, member, cost, facts)
  local records, id = prefix .. ':records:' .. hour_of(at), record_id(at, member)
  local kept = redis.call('HGET', records, id)
  if not kept then return end
  local before = string.match(kept, '^%S+ (.*)$')
  if facts ~= '' then
    lists_of(before, function(key) redis.call('ZREM', key, id) end)
    lists_of(facts, function(key)
      redis.call('ZADD', key, 0, id)
      redis.call('PEXPIRE', key, ${LONGEST_MS})
    end)
  end
  redis.call('HSET', records, id, cost .. ' ' .. (facts ~= '' and facts or before))
end
`;

/** KEYS: the ids of an hour or of an account. ARGV: last and first id, how many, prefix. Ids and records in turn, newest first. */
export const READ_CALLS = defineScript(`
local ids, reply = redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3]), {}
for i, id in ipairs(ids) do
  local at = tonumber(string.sub(id, 1, 16))
  reply[i * 2 - 1] = id
  reply[i * 2] = redis.call('HGET', ARGV[4] .. ':records:' .. string.format('%.0f', at - at % 3600000), id) or ''
end
return reply
`);

/** KEYS: any of the ledger. ARGV: deadline, prefix, from when on records stay, an hour before that or '', how many. How many records of the hour it forgot. */
export const FORGET = defineWrite(`
local prefix, hour = ARGV[2], ARGV[4]
if tonumber(redis.call('GET', prefix .. ':records-from') or '0') < tonumber(ARGV[3]) then
  redis.call('SET', prefix .. ':records-from', ARGV[3])
end
if hour == '' then return 0 end
local calls, records = prefix .. ':calls:' .. hour, prefix .. ':records:' .. hour
${LISTS}
local ids = redis.call('ZRANGE', calls, 0, tonumber(ARGV[5]) - 1)
for _, id in ipairs(ids) do
  redis.call('ZREM', prefix .. ':calls-of:' .. string.match(id, '^%d+:([^:]+)'), id)
  local record = redis.call('HGET', records, id)
  if record then lists_of(string.match(record, '^%S+ (.*)$'), function(key) redis.call('ZREM', key, id) end) end
end
if #ids > 0 then
  redis.call('ZREM', calls, unpack(ids))
  redis.call('HDEL', records, unpack(ids))
end
if redis.call('EXISTS', calls) == 0 then
  redis.call('ZREM', prefix .. ':record-hours', hour)
  redis.call('UNLINK', records)
end
return #ids
`);
