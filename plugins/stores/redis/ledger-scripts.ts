import { defineScript, defineWrite } from './client.ts';

/*
 * Numbers go in and out as text: Lua would write a large one as 1e+15. An account is a hash with the fields balance,
 * held, spent, credited, updated_at, last_entry, and `spent:+<purse>`, `held:+<purse>`. A request is a hash that holds
 * `state` (held or done) and, while it is held, amount, expires_at, purse and facts;
 * one that was swept also the key and the field of its usage row.
 */

const NUMBERS = `
local function text(n) if n == 0 then return '0' end return string.format('%.0f', n) end
local function number(value) return tonumber(value or '0') end
`;

/** KEYS: account, request, due. ARGV: deadline, amount, floor, expiresAt, +purse or '', purse limit, facts, member. */
export const RESERVE = defineWrite(`${NUMBERS}
if redis.call('EXISTS', KEYS[2]) == 1 then return 'duplicate' end
local amount, purse = tonumber(ARGV[2]), ARGV[5]
local account = redis.call('HMGET', KEYS[1], 'balance', 'held', 'spent:' .. purse, 'held:' .. purse)
if number(account[1]) - number(account[2]) - amount < tonumber(ARGV[3]) then return 'insufficient' end
if purse ~= '' then
  if number(account[3]) + number(account[4]) + amount > tonumber(ARGV[6]) then return 'over_budget' end
  redis.call('HINCRBY', KEYS[1], 'held:' .. purse, ARGV[2])
end
redis.call('HINCRBY', KEYS[1], 'held', ARGV[2])
redis.call('HSET', KEYS[2], 'state', 'held', 'amount', ARGV[2], 'expires_at', ARGV[4], 'purse', purse, 'facts', ARGV[7])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[8])
return 'held'
`);

/** Turns a held request into a finished one; the books stay short: their two oldest lines become one. */
const FINISH = `
local function count(usage, field, requests, prompt, completion, characters, cost)
  local row = redis.call('HGET', usage, field) or '0 0 0 0 0'
  local was = { string.match(row, '^(%d+) (%d+) (%d+) (%d+) (%d+)$') }
  redis.call('HSET', usage, field, table.concat({ text(was[1] + requests), text(was[2] + prompt),
    text(was[3] + completion), text(was[4] + characters), text(was[5] + cost) }, ' '))
end

local function unhold(member, remember)
  local hold = redis.call('HMGET', KEYS[2], 'state', 'amount', 'purse')
  if hold[1] ~= 'held' then return nil end
  redis.call('HINCRBY', KEYS[1], 'held', text(-tonumber(hold[2])))
  if hold[3] ~= '' then redis.call('HINCRBY', KEYS[1], 'held:' .. hold[3], text(-tonumber(hold[2]))) end
  redis.call('ZREM', KEYS[3], member)
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[2], 'state', 'done')
  redis.call('PEXPIRE', KEYS[2], remember)
  return hold
end

local function append(entries, amount, rest, keep)
  local n = redis.call('HINCRBY', KEYS[1], 'last_entry', 1)
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

/** Replaces what the sweeper charged by what the request came to. The usage row is in the slot of the account. */
const CORRECT = `
local function correct(entries, amount, at, keep, prompt, completion, characters)
  local swept = redis.call('HMGET', KEYS[2], 'state', 'amount', 'purse', 'usage', 'field', 'rest')
  if swept[1] ~= 'swept' then return 0 end
  local back = tonumber(swept[2]) - tonumber(amount)
  redis.call('HINCRBY', KEYS[1], 'balance', text(back))
  redis.call('HINCRBY', KEYS[1], 'spent', text(-back))
  redis.call('HSET', KEYS[1], 'updated_at', at)
  if swept[3] ~= '' then redis.call('HINCRBY', KEYS[1], 'spent:' .. swept[3], text(-back)) end
  local line = cjson.decode(swept[6])
  line.at = tonumber(at)
  append(entries, back, cjson.encode(line), tonumber(keep))
  if redis.call('HEXISTS', swept[4], swept[5]) == 1 then
    count(swept[4], swept[5], 0, prompt, completion, characters, -back)
  end
  redis.call('HSET', KEYS[2], 'state', 'done')
  redis.call('HDEL', KEYS[2], 'amount', 'purse', 'usage', 'field', 'rest')
  return 1
end
`;

/**
 * KEYS: account, request, due, entries, usage. ARGV: deadline, member, remember, amount or '' for what was held, at,
 * the rest of the entry, keep, the usage row's dimensions, prompt tokens, completion tokens, characters, usage lifetime,
 * and of the sweeper the rest of the entry that would correct it, else ''.
 */
export const SETTLE = defineWrite(`${NUMBERS}${FINISH}${CORRECT}
local hold = unhold(ARGV[2], ARGV[3])
if not hold and ARGV[4] == '' then return 0 end
if not hold then return correct(KEYS[4], ARGV[4], ARGV[5], ARGV[7], ARGV[9], ARGV[10], ARGV[11]) end
local amount = ARGV[4] == '' and hold[2] or ARGV[4]
redis.call('HINCRBY', KEYS[1], 'balance', text(-tonumber(amount)))
redis.call('HINCRBY', KEYS[1], 'spent', amount)
redis.call('HSET', KEYS[1], 'updated_at', ARGV[5])
if hold[3] ~= '' then redis.call('HINCRBY', KEYS[1], 'spent:' .. hold[3], amount) end
append(KEYS[4], 0 - tonumber(amount), ARGV[6], tonumber(ARGV[7]))
count(KEYS[5], ARGV[8], 1, ARGV[9], ARGV[10], ARGV[11], amount)
redis.call('PEXPIRE', KEYS[5], ARGV[12])
if ARGV[13] ~= '' then
  redis.call('HSET', KEYS[2], 'state', 'swept', 'amount', amount, 'purse', hold[3], 'usage', KEYS[5], 'field', ARGV[8],
    'rest', ARGV[13])
end
return 1
`);

/** KEYS: account, request, due, entries. ARGV: deadline, member, remember, at, keep. */
export const RELEASE = defineWrite(`${NUMBERS}${FINISH}${CORRECT}
if unhold(ARGV[2], ARGV[3]) then return 1 end
return correct(KEYS[4], 0, ARGV[4], ARGV[5], 0, 0, 0)
`);

/** KEYS: account, credits, entries. ARGV: deadline, id, amount, at, the rest of the entry, keep. */
export const CREDIT = defineWrite(`${NUMBERS}${FINISH}
if redis.call('SADD', KEYS[2], ARGV[2]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'balance', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'credited', ARGV[3])
redis.call('HSET', KEYS[1], 'updated_at', ARGV[4])
append(KEYS[3], tonumber(ARGV[3]), ARGV[5], tonumber(ARGV[6]))
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
