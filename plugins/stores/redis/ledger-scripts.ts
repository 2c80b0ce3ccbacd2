import { defineScript, defineWrite } from './client.ts';
import { RECORDS } from './record-scripts.ts';

/*
 * Numbers go in and out as text: Lua would write a large one as 1e+15. An account is a hash with the fields name, balance,
 * held, spent, credited, updated_at and last_entry; a budget one with spent and held. A request is a hash that holds `state`
 * (held, swept or done), and while it is held amount, expires_at, budgets (digests with blanks between) and facts; one
 * that was swept amount, budgets, at, the field and sums of its rollup, and the rest of the entry that would correct it.
 */

/**
 * KEYS: account, request, due. ARGV: deadline, prefix, amount, floor, expiresAt, facts, member, name, and for each budget its
 * digest, limit, and time to live or ''.
 */
export const RESERVE = defineWrite(`${RECORDS}
if redis.call('EXISTS', KEYS[2]) == 1 then return { 'duplicate' } end
local amount = tonumber(ARGV[3])
local account = redis.call('HMGET', KEYS[1], 'balance', 'held', 'name')
if number(account[1]) - number(account[2]) - amount < tonumber(ARGV[4]) then return { 'insufficient' } end
local reply, digests, lives = { 'held' }, {}, {}
for i = 1, (#ARGV - 8) / 3 do
  local id, limit, live = unpack(ARGV, 6 + i * 3, 8 + i * 3)
  local budget = redis.call('HMGET', prefix .. ':budget:' .. id, 'spent', 'held')
  local used = number(budget[1]) + number(budget[2])
  if used + amount > tonumber(limit) then return { 'over_budget', text(i), text(used) } end
  digests[i], reply[i + 1] = id, text(used + amount)
  lives[i] = budget[2] and '' or live
end
for i, id in ipairs(digests) do
  redis.call('HINCRBY', prefix .. ':budget:' .. id, 'held', ARGV[3])
  if lives[i] ~= '' then redis.call('PEXPIRE', prefix .. ':budget:' .. id, lives[i]) end
end
if not account[3] then redis.call('HSET', KEYS[1], 'name', ARGV[8]) end
redis.call('HINCRBY', KEYS[1], 'held', ARGV[3])
redis.call('HSET', KEYS[2], 'state', 'held', 'amount', ARGV[3], 'expires_at', ARGV[5], 'budgets', table.concat(digests, ' '), 'facts', ARGV[6])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[7])
return reply
`);

/** Turns a held request into a finished one; the books stay short: their two oldest lines become one. */
const FINISH = `
-- \`uncharged\` has a blank before and behind each digest.
local function charge_budgets(list, released, charged, uncharged)
  for id in string.gmatch(list or '', '%S+') do
    local key = prefix .. ':budget:' .. id
    if redis.call('EXISTS', key) == 1 then
      if released ~= 0 then redis.call('HINCRBY', key, 'held', text(-released)) end
      if charged ~= 0 and not string.find(uncharged, ' ' .. id .. ' ', 1, true) then
        redis.call('HINCRBY', key, 'spent', text(charged))
      end
    end
  end
end

local function unhold(member, remember)
  local hold = redis.call('HMGET', KEYS[2], 'state', 'amount', 'budgets')
  if hold[1] ~= 'held' then return nil end
  redis.call('HINCRBY', KEYS[1], 'held', text(-tonumber(hold[2])))
  redis.call('ZREM', KEYS[3], member)
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[2], 'state', 'done')
  redis.call('PEXPIRE', KEYS[2], remember)
  return hold
end

local function append(entries, amount, rest, keep)
  local n = redis.call('HINCRBY', KEYS[1], 'last_entry', 1)
  if n == 1 then redis.call('ZADD', prefix .. ':accounts', 0, redis.call('HGET', KEYS[1], 'name')) end
  redis.call('RPUSH', entries, text(n) .. ' ' .. text(amount) .. ' ' .. rest)
  if redis.call('LLEN', entries) > keep then
    local first, second = redis.call('LPOP', entries), redis.call('LPOP', entries)
    local _, one = string.match(first, '^(%d+) (-?%d+) ')
    local id, two, tail = string.match(second, '^(%d+) (-?%d+) (.*)$')
    local sum = tonumber(one) + tonumber(two)
    local line = cjson.decode(tail)
    line.reason, line.ref, line.kind = 'carried forward', '', sum < 0 and 'charge' or 'credit'
    redis.call('LPUSH', entries, id .. ' ' .. text(sum) .. ' ' .. cjson.encode(line))
  end
end
`;

/** Replaces what the sweeper charged by what the request came to; with a field of '' nothing else is known of that. */
const CORRECT = `
local function correct(member, amount, at, keep, uncharged, field, sums, facts)
  local swept = redis.call('HMGET', KEYS[2], 'state', 'amount', 'budgets', 'at', 'field', 'sums', 'rest')
  if swept[1] ~= 'swept' then return 0 end
  local back = tonumber(swept[2]) - tonumber(amount)
  redis.call('HINCRBY', KEYS[1], 'balance', text(back))
  redis.call('HINCRBY', KEYS[1], 'spent', text(-back))
  redis.call('HSET', KEYS[1], 'updated_at', at)
  charge_budgets(swept[3], 0, -tonumber(swept[2]), '')
  charge_budgets(swept[3], 0, tonumber(amount), uncharged)
  local line = cjson.decode(swept[7])
  line.at = tonumber(at)
  append(KEYS[4], back, cjson.encode(line), tonumber(keep))
  if field == '' then count(swept[4], swept[5], '0 0 0 0 0 0 0 0 0 ' .. text(back) .. ' 0', -1)
  else
    count(swept[4], field, sums, 1)
    count(swept[4], swept[5], swept[6], -1)
  end
  replace_record(swept[4], member, text(tonumber(amount)), facts)
  redis.call('HSET', KEYS[2], 'state', 'done')
  redis.call('HDEL', KEYS[2], 'amount', 'budgets', 'at', 'field', 'sums', 'rest')
  return 1
end
`;

/**
 * KEYS: account, request, due, entries. ARGV: deadline, prefix, member, remember, amount or '' for what was held, at, the rest
 * of the entry, keep, budgets not charged, field and sums of the rollup (of the sweeper with $ for the cost), facts, and of the
 * sweeper the rest of the entry that would correct it, else ''.
 */
export const SETTLE = defineWrite(`${RECORDS}${FINISH}${CORRECT}
local member, amount, at, field, sums, facts = ARGV[3], ARGV[5], ARGV[6], ARGV[10], ARGV[11], ARGV[12]
local hold = unhold(member, ARGV[4])
if not hold and amount == '' then return 0 end
if not hold then return correct(member, amount, at, ARGV[8], ARGV[9], field, sums, facts) end
if amount == '' then amount = hold[2] end
sums = string.gsub(sums, '%$', amount)
redis.call('HINCRBY', KEYS[1], 'balance', text(-tonumber(amount)))
redis.call('HINCRBY', KEYS[1], 'spent', amount)
redis.call('HSET', KEYS[1], 'updated_at', at)
charge_budgets(hold[3], tonumber(hold[2]), tonumber(amount), ARGV[9])
append(KEYS[4], 0 - tonumber(amount), ARGV[7], tonumber(ARGV[8]))
count(at, field, sums, 1)
record(at, member, amount .. ' ' .. facts)
if ARGV[13] ~= '' then
  redis.call('HSET', KEYS[2], 'state', 'swept', 'amount', amount, 'budgets', hold[3] or '', 'at', at, 'field', field, 'sums', sums,
    'rest', ARGV[13])
end
return 1
`);

/** KEYS: account, request, due, entries. ARGV: deadline, prefix, member, remember, at, keep, field or '', sums, facts. */
export const RELEASE = defineWrite(`${RECORDS}${FINISH}${CORRECT}
local member, at, field, sums, facts = ARGV[3], ARGV[5], ARGV[7], ARGV[8], ARGV[9]
local hold = unhold(member, ARGV[4])
if not hold then return correct(member, 0, at, ARGV[6], '', field, sums, facts) end
charge_budgets(hold[3], tonumber(hold[2]), 0, '')
if field ~= '' then
  count(at, field, sums, 1)
  record(at, member, '0 ' .. facts)
end
return 1
`);

/** KEYS: account, credits, entries. ARGV: deadline, prefix, member, name, id, amount, at, the rest of the entry, keep. */
export const CREDIT = defineWrite(`${RECORDS}${FINISH}
if redis.call('SADD', KEYS[2], ARGV[5]) == 0 then return 0 end
redis.call('HSETNX', KEYS[1], 'name', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'balance', ARGV[6])
redis.call('HINCRBY', KEYS[1], 'credited', ARGV[6])
redis.call('HSET', KEYS[1], 'updated_at', ARGV[7])
append(KEYS[3], tonumber(ARGV[6]), ARGV[8], tonumber(ARGV[9]))
return 1
`);

/** KEYS: request, due. ARGV: deadline, member. Forgets a member of `due` whose request is not there (evicted, deleted by hand). */
export const DISCARD = defineWrite(`
if redis.call('HGET', KEYS[1], 'state') == 'held' then return 0 end
return redis.call('ZREM', KEYS[2], ARGV[2])
`);

/** KEYS: any, which chooses the node of a cluster. The server's time in Unix milliseconds. */
export const CLOCK = defineScript(`
local clock = redis.call('TIME')
return string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
`);
