import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import pg from 'pg';
import type { ReportDimension, Store } from '../../../core/index.ts';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { FACTS, reservation } from '../../conformance/store.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { askRedis, REDIS_SERVER, startRedisCluster, startRedisServer } from '../../support/stores/redis-server.ts';

// What version 2 wrote on 2026-11-20: an account `team` whose key k1 and whose user u1 have budgets, with a call that was
// settled at 25, one that was swept at 20, one that runs and holds 30, one that was released; and a day later 7 of `alone`.
const fixture = (name: string) => readFileSync(new URL(`../../fixtures/stores/${name}`, import.meta.url), 'utf8');
const NOW = Date.parse('2026-11-20T10:30:00Z');
const DAY_MS = 86_400_000;
const BUDGETS = ['key:k1', 'user:u1'].map((id) => ({ id, limit: 500 }));
const UNKNOWN = /^~[\w-]{43}$/;

const money = async ({ ledger }: Store) => {
  const { balance, held, spent, credited } = await ledger.balance('team');
  return { balance, held, spent, credited };
};
const report = ({ ledger }: Store, by: readonly ReportDimension[], edges = [0, NOW + 10 * DAY_MS]) =>
  ledger.report({ edges, by });
const costs = async (store: Store) =>
  Object.fromEntries((await report(store, ['account'])).map((row) => [row.account, row.cost]));
const total = async (store: Store): Promise<number> =>
  (await report(store, [])).reduce((sum, { cost }) => sum + cost, 0);
const spent = async ({ ledger }: Store): Promise<number> =>
  (await ledger.accounts({ limit: 100 })).reduce((sum, account) => sum + account.spent, 0);

/** What is the same in both: money, what is running, usage, entries, documents, members. */
async function expectTaken(store: Store): Promise<void> {
  const { ledger } = store;
  expect(await money(store)).to.deep.equal({ balance: 955, held: 30, spent: 45, credited: 1000 });
  expect(await ledger.budgets(['key:k1'])).to.deep.equal([{ spent: 45, held: 30 }]);
  expect((await ledger.entries('team', { limit: 10 })).map(({ ref, amount }) => [ref, amount])).to.deep.equal([
    ['swept', -20],
    ['settled', -25],
    ['first', 1000],
  ]);
  expect(await ledger.credit('team', 'first', 1000, 'top-up', NOW)).to.equal(false);
  for (const requestId of ['settled', 'swept', 'running', 'released'])
    expect((await ledger.reserve(reservation({ account: 'team', requestId }))).outcome).to.equal('duplicate');
  expect(await store.keyv('keys').get('k1')).to.equal('document');
  expect(await store.sets.has('keys-of-team', 'k1')).to.equal(true);
  const days = [0, 1, 2].map((day) => Date.parse('2026-11-20T00:00:00Z') + day * DAY_MS);
  const [second] = (await report(store, ['operation', 'provider', 'model', 'key', 'tags'], days)).filter(
    ({ interval }) => interval === 1,
  );
  expect(second).to.deep.include({
    operation: 'speech',
    provider: 'elevenlabs',
    model: 'v3',
    key: '-',
    tags: '[]',
    cost: 7,
  });
  expect(second?.units.characters).to.equal(11);
  // An hour of which no records are known is whole where it begins: zones of a half hour sum up too. In Redis, what counted for
  // the user is still an account of its own: twice 45.
  const odd = days.map((day) => day - 5.5 * 3_600_000);
  expect((await report(store, [], odd)).map(({ interval, cost }) => [interval, cost % 45])).to.deep.equal([
    [0, 0],
    [1, 7],
  ]);
}

/** Ends what was running and what was swept, with budgets, and the sums stay those of the accounts. */
async function expectSettled(store: Store): Promise<void> {
  const { ledger } = store;
  const facts = { ...FACTS, key: 'k1', tags: ['team=search'] };
  const settle = (requestId: string, amount: number) =>
    ledger.settle({ account: 'team', requestId, amount, facts, now: NOW });
  expect(await settle('new', 3)).to.equal(true);
  expect(await settle('running', 10)).to.equal(true);
  expect(await settle('swept', 5)).to.equal(true);
  expect(await settle('swept', 5)).to.equal(false);
  expect(await money(store)).to.deep.equal({ balance: 957, held: 0, spent: 43, credited: 1000 });
  expect(await ledger.budgets(['key:k1'])).to.deep.equal([{ spent: 43, held: 0 }]);
  expect((await report(store, ['tags'])).map(({ tags, requests, cost }) => [tags, requests, cost])).to.deep.equal([
    ['["team=search"]', 3, 18],
    ['[]', 2, 32],
  ]);
  expect((await ledger.calls({ limit: 10 })).calls.map(({ id, cost }) => [id, cost])).to.have.deep.members([
    ['new', 3],
    ['running', 10],
  ]);
  expect(await total(store)).to.equal(50);
}

describeWith('a postgres store of version 2', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async function () {
    this.timeout(60_000);
    server = await startPostgresServer();
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    await pool.query({ text: fixture('postgres-2.sql') });
    await pool.end();
  });
  after(() => server?.close());

  it('is taken over once by gateways that start at the same time, with all that it holds', async function () {
    this.timeout(30_000);
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openPostgres({ url: server.url, connections: 2 })),
    );
    const [store] = stores;
    if (!store) throw new Error('no store');
    await expectTaken(store);
    expect(await store.ledger.budgets(['user:u1'])).to.deep.equal([{ spent: 45, held: 30 }]);
    expect((await store.ledger.accounts({ limit: 10 })).map(({ account }) => account)).to.deep.equal(['alone', 'team']);
    expect(await costs(store)).to.deep.equal({ alone: 7, team: 45 });
    expect(await total(store)).to.equal(await spent(store));
    const ask = reservation({ account: 'team', requestId: 'new', amount: 4, budgets: BUDGETS });
    expect(await store.ledger.reserve(ask)).to.deep.equal({ outcome: 'held', used: [79, 79] });
    await expectSettled(store);
    expect(await store.ledger.budgets(['user:u1'])).to.deep.equal([{ spent: 43, held: 0 }]);
    expect(await total(store)).to.equal(await spent(store));
    await Promise.all(stores.map((each) => each.close()));
  });
});

function testRedis(start: () => Promise<readonly TestServer[]>, cluster: boolean): void {
  let nodes: readonly TestServer[] = [];
  before(async function () {
    this.timeout(40_000);
    nodes = await start();
    for (const command of JSON.parse(fixture('redis-2.json')) as readonly (readonly string[])[])
      expect(await askAny(...command)).to.match(/^[+:]/);
  });
  after(() => Promise.all(nodes.map((node) => node.close())));

  /** Sends a command to the node that has its key: the others say that it moved. */
  const askAny = async (...command: readonly string[]): Promise<string> => {
    const replies = await Promise.all(nodes.map(({ port }) => askRedis(port, ...command)));
    return replies.find((reply) => !reply.startsWith('-MOVED')) ?? '';
  };
  const open = () => openRedis({ url: nodes[0]?.url ?? '', cluster, timeoutMs: 5000 });

  const openAll = () => Promise.all(Array.from({ length: 4 }, open));

  it('is taken over once by gateways that start at the same time, and changes nothing when it is done again', async function () {
    this.timeout(30_000);
    // As a gateway leaves a key that is stopped between its copy and its end.
    const [, account = ''] = /(1gP[\w-]{40})/.exec(fixture('redis-2.json')) ?? [];
    if (!cluster)
      expect(await askAny('COPY', `tollgate:{13}:account:${account}`, `tollgate:{ledger}:account:${account}`)).to.equal(
        ':1\r\n',
      );
    for (let start = 0; start < 2; start++) {
      const stores = await openAll();
      for (const store of stores) expect(await money(store)).to.include({ spent: 45, held: 30 });
      const [store] = stores;
      if (!store) throw new Error('no store');
      await expectTaken(store);
      // What an account is called was written nowhere.
      const accounts = await store.ledger.accounts({ limit: 10 });
      expect(accounts.map(({ account }) => UNKNOWN.test(account))).to.deep.equal([true, true, true]);
      expect(await total(store)).to.equal(await spent(store));
      await Promise.all(stores.map((each) => each.close()));
      // As a gateway leaves it that is stopped before it is done.
      await askAny('SET', 'tollgate:schema', '2');
    }
  });

  it('learns the names of accounts, and which of them was the budget of a user, when they are used', async () => {
    const store = await open();
    const { ledger } = store;
    const ask = { account: 'team', requestId: 'new', amount: 4, budgets: BUDGETS };
    // What the user held before counts as spent: nobody but the sweeper would have ended it.
    expect(await ledger.reserve(reservation(ask))).to.deep.equal({ outcome: 'held', used: [79, 79] });
    await ledger.credit('alone', 'first', 100, 'top-up', NOW);
    expect((await ledger.accounts({ limit: 10 })).map(({ account }) => account)).to.deep.equal(['alone', 'team']);
    expect((await ledger.accounts({ limit: 10, after: 'alone' })).map(({ account }) => account)).to.deep.equal([
      'team',
    ]);
    expect(await costs(store)).to.deep.equal({ alone: 7, team: 45 });
    const [row] = await ledger.report({ edges: [0, NOW + DAY_MS], by: ['user'], account: 'team' });
    expect(row).to.include({ user: 'team', cost: 45 });
    expect(await total(store)).to.equal(await spent(store));
    await expectSettled(store);
    expect(await ledger.budgets(['user:u1'])).to.deep.equal([{ spent: 78, held: 0 }]);
    // What the user's account still holds belongs to nobody.
    await ledger.sweep(NOW + DAY_MS);
    expect((await ledger.accounts({ limit: 10 })).map(({ account }) => account)).to.deep.equal(['alone', 'team']);
    expect(await total(store)).to.equal(await spent(store));
    await store.close();
  });
}

describeWith('a redis store of version 2', { 'redis-server': REDIS_SERVER }, () =>
  testRedis(async () => [await startRedisServer()], false),
);

describeWith('a redis store of version 2 on a cluster', { 'redis-server': REDIS_SERVER }, () =>
  testRedis(startRedisCluster, true),
);
