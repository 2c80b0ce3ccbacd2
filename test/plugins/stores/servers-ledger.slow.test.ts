import { expect } from 'chai';
import pg from 'pg';
import type { BudgetHold, CallQuery, CallRow, Store } from '../../../contract/index.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { FACTS, NOW, reservation, settlement } from '../../conformance/store.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../../support/stores/redis-server.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Limit of a store operation: longer than any pause on a busy machine. No test here is about the limit. */
const TIMEOUT_MS = 30_000;
const floor = Number.NEGATIVE_INFINITY;

/** Concurrent calls of many accounts, each in five of ten budgets in its own order; every tenth budget is new. */
async function race(stores: readonly Store[]): Promise<void> {
  const budgetsOf = (n: number): readonly BudgetHold[] =>
    [0, 1, 2, 3, 4].map((k) => ({ id: `race-${(n * 7 + k * (1 + (n % 3))) % 10}-${Math.floor(n / 50)}`, limit: 200 }));
  const run = async (n: number): Promise<readonly BudgetHold[]> => {
    const ledger = (stores[n % stores.length] as Store).ledger;
    const budgets = [...new Map(budgetsOf(n).map((budget) => [budget.id, budget])).values()];
    const request = { account: `racer-${n % 20}`, requestId: `r${n}`, budgets, floor };
    if ((await ledger.reserve(reservation(request))).outcome !== 'held') return [];
    await ledger.settle(settlement({ account: request.account, requestId: request.requestId }));
    return budgets;
  };
  const held = (await Promise.all(Array.from({ length: 200 }, (_, n) => run(n)))).flat();
  const ids = [...new Set(held.map(({ id }) => id))];
  const states = await (stores[0] as Store).ledger.budgets(ids);
  expect(states).to.deep.equal(
    ids.map((id) => ({ spent: held.filter((budget) => budget.id === id).length * 10, held: 0 })),
  );
  expect(Math.max(...states.map(({ spent }) => spent))).to.be.at.most(200);
}

/** Reads all calls of a query page by page; returns them with the number of pages. */
async function readAll({ ledger }: Store, query: Omit<CallQuery, 'limit'>): Promise<[readonly CallRow[], number]> {
  const found: CallRow[] = [];
  let pages = 0;
  for (let after: string | undefined, more = true; more; pages++) {
    const page = await ledger.calls({ ...query, limit: 10, ...(after !== undefined && { after }) });
    found.push(...page.calls);
    after = page.next;
    more = after !== undefined;
  }
  return [found, pages];
}

/** Makes an old call of a separate account. */
async function callOnce({ ledger }: Store, account: string): Promise<void> {
  const now = NOW - 60 * DAY_MS;
  await ledger.reserve(reservation({ account, requestId: 'one', floor, now }));
  await ledger.settle(
    settlement({ account, requestId: 'one', facts: { ...FACTS, session: 's1', userId: 'zoe' }, now }),
  );
}

async function expectFound(store: Store): Promise<void> {
  for (const filter of [
    { userId: 'zoe' },
    { session: 's1' },
    { account: 'rare', tag: 'none=none' },
    { account: 'rare' },
  ]) {
    const [found] = await readAll(store, filter);
    expect(found.map(({ id }) => id)).to.deep.equal('tag' in filter ? [] : ['one']);
  }
  const [none] = await readAll(store, { userId: 'zoe', from: NOW - 59 * DAY_MS });
  expect(none).to.deep.equal([]);
  const rows = await store.ledger.report({ edges: [0, NOW + DAY_MS], by: ['session'], userId: 'zoe' });
  expect(rows.map(({ session, cost }) => [session, cost])).to.deep.equal([['s1', 10n]]);
  await store.health();
}

describeWith('the ledger in redis', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  let store: Store;
  before(async () => {
    server = await startRedisServer();
    store = await openRedis({ url: server.url, timeoutMs: TIMEOUT_MS });
  });
  after(async () => {
    await store?.close();
    await server?.close();
  });
  const evaluate = (script: string) => sendToRedis(server.port, 'EVAL', script, '0');

  it('counts budgets exactly over calls of many accounts', () => race([store]));

  it('waits while it is the turn of another process, and not longer than that', async () => {
    await evaluate("return redis.call('SET', 'tollgate:{ledger}:turn', 'another')");
    const credited = store.ledger.credit('waits', 'c', 5, 'top-up', NOW);
    // Requests sent until then are refused.
    await store.ledger.clock?.();
    expect((await store.ledger.balance('waits')).balance).to.equal(0);
    await evaluate("return redis.call('DEL', 'tollgate:{ledger}:turn')");
    expect(await credited).to.equal(true);
  });

  it('keeps a window of a budget a month longer than it is read, and a total forever', async () => {
    const budgets = [
      { id: 'week', limit: 100, until: Date.now() + 7 * DAY_MS },
      { id: 'all', limit: 100 },
    ];
    for (const requestId of ['r1', 'r2'])
      await store.ledger.reserve(reservation({ account: 'b', requestId, floor, budgets }));
    await store.ledger.settle(settlement({ account: 'b', requestId: 'r1' }));
    // Redis gets the rest of the time, and counts it from its arrival: some milliseconds more than was asked for.
    const left = `local all = {} for i, id in ipairs({ 'all', 'week' }) do
      all[i] = math.floor(redis.call('PTTL', 'tollgate:{ledger}:budget:' .. id) / 86400000 + 0.5) end return all`;
    expect(await evaluate(left)).to.equal('*2\r\n:0\r\n:37\r\n');
  });

  it('finds a call among many, page by page, and forgets all of them without a trace', async () => {
    await callOnce(store, 'rare');
    // Twelve thousand calls of another account, in twelve hours.
    await evaluate(`local facts = cjson.encode(${luaFacts()})
      for n = 0, 11999 do
        local at = ${NOW} - math.floor(n / 1000) * ${HOUR_MS} - n % 1000
        local hour, id = string.format('%.0f', at - at % ${HOUR_MS}), string.format('%016.0f', at) .. ':much:' .. n
        redis.call('ZADD', 'tollgate:{ledger}:calls:' .. hour, 0, id)
        redis.call('HSET', 'tollgate:{ledger}:records:' .. hour, id, '1 ' .. facts)
        redis.call('ZADD', 'tollgate:{ledger}:record-hours', hour, hour)
      end`);
    await expectFound(store);
    const [, pages] = await readAll(store, { model: 'none' });
    expect(pages).to.be.greaterThan(1);
    expect(await store.ledger.forgetCalls(NOW + DAY_MS)).to.be.greaterThan(12_000);
    const kept = await evaluate(`return redis.call('KEYS', 'tollgate:*')`);
    expect(kept).not.to.match(/\{ledger\}:(calls:|records:|calls-by:|record-hours)/);
    expect(await store.ledger.calls({ limit: 10 })).to.deep.equal({ calls: [] });
  });
});

function luaFacts(): string {
  const { userId, key, operation, provider, model } = FACTS;
  const fields = Object.entries({ id: 'x', account: 'much', userId, key, operation, provider, model, outcome: 'ok' });
  return `{ tags = cjson.empty_array, ${fields.map(([name, value]) => `${name} = '${value}'`).join(', ')} }`;
}

describeWith('the ledger in postgres', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  let store: Store;
  before(async () => {
    server = await startPostgresServer();
    store = await openPostgres({ url: server.url, timeoutMs: TIMEOUT_MS });
  });
  after(async () => {
    await store?.close();
    await server?.close();
  });
  const query = async (text: string) => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    try {
      return (await pool.query({ text })).rows;
    } finally {
      await pool.end();
    }
  };

  it('counts budgets exactly over calls of many accounts, from two processes that wait for each other', async () => {
    const other = await openPostgres({ url: server.url, timeoutMs: TIMEOUT_MS });
    const one = await openPostgres({ url: server.url, timeoutMs: TIMEOUT_MS });
    await race([one, other]);
    await Promise.all([one.close(), other.close()]);
  });

  it('waits while it is the turn of another process, and not longer than that', async () => {
    await query("INSERT INTO tollgate.turn (owner, until) VALUES ('another', 9e15)");
    const credited = store.ledger.credit('waits', 'c', 5, 'top-up', NOW);
    // Requests sent until then are refused.
    await store.ledger.clock?.();
    expect((await store.ledger.balance('waits')).balance).to.equal(0);
    await query('UPDATE tollgate.turn SET until = 0');
    expect(await credited).to.equal(true);
  });

  it('keeps a window of a budget a month longer than it is read, and a total forever', async () => {
    const budgets = [
      { id: 'week', limit: 100, until: NOW },
      { id: 'all', limit: 100 },
    ];
    await store.ledger.reserve(reservation({ account: 'b', requestId: 'r', floor, budgets }));
    const rows = await query("SELECT id, until FROM tollgate.budgets WHERE id IN ('week', 'all') ORDER BY id");
    expect(rows).to.deep.equal([
      { id: 'all', until: null },
      { id: 'week', until: String(NOW + 30 * DAY_MS) },
    ]);
  });

  it('charges a call whose names are as long as they may be, in any script', async () => {
    // Text that does not compress: an index entry is limited to 2,704 bytes.
    const word = (seed: number): string =>
      String.fromCodePoint(
        ...Array.from({ length: 199 }, (_, n) => 0x4e00 + (((n + 1) * (seed + 7919) * 31_337) % 20_000)),
      );
    const [account = '', userId = '', key = '', operation = '', provider = '', model = ''] = [1, 2, 3, 4, 5, 6].map(
      word,
    );
    const facts = { ...FACTS, userId, key, operation, provider, model };
    await store.ledger.reserve(
      reservation({ account, requestId: word(7), floor, budgets: [{ id: word(8), limit: 100 }] }),
    );
    expect(await store.ledger.settle(settlement({ account, requestId: word(7), facts }))).to.equal(true);
    const { calls } = await store.ledger.calls({ limit: 10, account });
    expect(calls.map((call) => [call.account, call.model, call.cost])).to.deep.equal([[account, model, 10]]);
  });

  it('finds a call among a hundred thousand, and forgets all of them', async () => {
    await callOnce(store, 'rare');
    await query(`INSERT INTO tollgate.calls (account, ref, at, counted_at, name, user_id, key, tags, operation, provider, model, request_id,
        outcome, sums, facts)
      SELECT 'much', n::text, ${NOW} - n * 70000::bigint, ${NOW} - n * 70000::bigint, 'much', 'ann', '-', '[]', 'chat', 'echo', 'echo-1', '-', 'ok',
        array_fill(1::bigint, ARRAY[11]), '{"tags":[],"units":{}}' FROM generate_series(1, 100000) AS n`);
    await expectFound(store);
    expect(await store.ledger.forgetCalls(NOW + DAY_MS)).to.be.greaterThan(100_000);
    expect(await store.ledger.calls({ limit: 10 })).to.deep.equal({ calls: [] });
  });
});
