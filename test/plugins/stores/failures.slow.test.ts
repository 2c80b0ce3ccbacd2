import { expect } from 'chai';
import type { Store } from '../../../contract/index.ts';
import { NOW, outcomeOf, rejectsUnavailable, reservation, settlement } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER } from '../../support/stores/redis-server.ts';
import { startTcpProxy, type TcpProxy } from '../../support/stores/tcp-proxy.ts';
import { eventually } from '../../support/wait.ts';
import { FAILING_POSTGRES, FAILING_REDIS, type FailingServer } from './failing-servers.ts';

/** Every kind of operation once, as functions that have not started. */
function everyOperation(store: Store, name: string): readonly (() => Promise<unknown>)[] {
  const window = { key: name, limit: 10, windowMs: 60_000, amount: 1 };
  return [
    () => store.keyv('failures').get(name),
    () => store.keyv('failures').set(name, { v: 2 }),
    () => store.keyv('failures').delete(name),
    () => store.keyv('failures').has(name),
    () => store.ledger.reserve(reservation({ account: name, requestId: 'failure' })),
    () => store.ledger.settle(settlement({ account: name, requestId: 'before' })),
    () => store.ledger.release(name, 'before'),
    () => store.ledger.credit(name, 'failure', 5, 'x', NOW),
    () => store.ledger.balance(name),
    () => store.ledger.budgets([name]),
    () => store.ledger.entries(name, { limit: 5 }),
    () => store.ledger.report({ edges: [NOW, NOW + 5_400_000], by: ['user'], account: name }),
    () => store.ledger.calls({ account: name, limit: 5 }),
    () => store.ledger.accounts({ limit: 5 }),
    () => store.ledger.forgetCalls(0),
    () => store.ledger.sweep(NOW - 1_000_000),
    () => store.sets.add(name, 'failure'),
    () => store.sets.remove(name, 'before'),
    () => store.sets.has(name, 'before'),
    () => store.sets.list(name, { limit: 5 }),
    () => store.sets.size(name),
    () => store.counters.take([window], NOW),
    () => store.counters.adjust(name, 60_000, 3, NOW),
    () => store.counters.lease(name, 'failure', 5, 60_000, NOW),
    () => store.counters.release(name, 'before'),
    () => store.counters.next(name),
    () => store.health(),
  ];
}

/** Writes data in every part of the store that {@link readState} reads. */
async function prepare(store: Store, name: string): Promise<void> {
  await store.keyv('failures').set(name, { v: 1 });
  await store.ledger.credit(name, 'first', 100, 'top-up', NOW);
  await store.ledger.reserve(reservation({ account: name, requestId: 'before' }));
  await store.sets.add(name, 'before');
  await store.counters.next(name);
}

async function readState(store: Store, name: string): Promise<unknown> {
  const { ledger, sets, counters } = store;
  return {
    document: await store.keyv('failures').get(name),
    balance: await ledger.balance(name),
    entries: (await ledger.entries(name, { limit: 10 })).length,
    members: await sets.list(name, { limit: 10 }),
    number: await counters.next(name, 0),
  };
}

async function allUnavailable(operations: readonly (() => Promise<unknown>)[]): Promise<void> {
  await Promise.all(operations.map((operation) => rejectsUnavailable(operation())));
}

function testFailures(subject: FailingServer): void {
  let server: TestServer;
  let store: Store | undefined;
  let proxy: TcpProxy | undefined;
  const throughProxy = (port: number): string => server.url.replace(`:${server.port}`, `:${port}`);

  beforeEach(async () => {
    server = await subject.start();
  });
  afterEach(async () => {
    server.thaw();
    await store?.close();
    await proxy?.close();
    await server.close();
    store = undefined;
    proxy = undefined;
  });

  it('S01: opens while the server is down, refuses everything, and recovers by itself', async () => {
    await server.kill();
    const log = createSilentLog();
    store = await subject.open(server.url, log);
    await allUnavailable(everyOperation(store, 'a'));
    expect(
      log.lines.some(({ level, message }) => level === 'warn' && message.includes('does not respond yet')),
    ).to.equal(true);
    await server.start();
    await eventually(async () => store?.health());
    await prepare(store, 'a');
    expect((await store.ledger.balance('a')).held).to.equal(10);
  });

  it('S02: survives the server’s death in the middle of its work, refuses, and recovers with all that was acknowledged', async () => {
    const opened = await subject.open(server.url);
    store = opened;
    await opened.ledger.credit('a', 'first', 1_000_000, 'top-up', NOW);
    const acknowledged: string[] = [];
    const refused: unknown[] = [];
    let isOver = false;
    const work = Array.from({ length: 8 }, async (_, worker) => {
      for (let n = 0; !isOver; n++) {
        const requestId = `${worker}-${n}`;
        await opened.ledger.reserve(reservation({ account: 'a', requestId, amount: 1 })).then(
          () => acknowledged.push(requestId),
          (error) => refused.push(error.code),
        );
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    await eventually(async () => expect(acknowledged.length).to.be.greaterThan(50));
    await server.kill();
    await eventually(async () => expect(refused.length).to.be.greaterThan(20));
    await allUnavailable(everyOperation(opened, 'a'));
    isOver = true;
    await Promise.all(work);
    expect(new Set(refused)).to.deep.equal(new Set(['store_unavailable']));
    await server.start();
    await eventually(() => opened.health());
    for (const requestId of acknowledged) {
      expect(await outcomeOf(opened.ledger.reserve(reservation({ account: 'a', requestId, amount: 1 })))).to.equal(
        'duplicate',
      );
    }
  });

  it('S03: refuses within its bound while the server is stopped, and nothing of it happens later', async () => {
    store = await subject.open(server.url);
    await prepare(store, 'a');
    const before = await readState(store, 'a');
    server.freeze();
    // Three rounds: the first reaches the stopped server, the others the open breaker.
    for (let round = 0; round < 3; round++) await allUnavailable(everyOperation(store, 'a'));
    server.thaw();
    await eventually(async () => store?.health());
    expect(await readState(store, 'a')).to.deep.equal(before);
    expect(await store.ledger.settle(settlement({ account: 'a', requestId: 'before' }))).to.equal(true);
  });

  it('S04: reports lost data, and treats no account as funded', async () => {
    const log = createSilentLog();
    store = await subject.open(server.url, log);
    await prepare(store, 'a');
    await subject.empty(server);
    await rejectsUnavailable(store.health());
    const outcome = await store.ledger.reserve(reservation({ account: 'a', requestId: 'r' })).then(
      (result) => result.outcome,
      (error) => error.code,
    );
    expect(outcome).to.be.oneOf(['insufficient', 'store_unavailable']);
    await store.close();
    store = await subject.open(server.url);
    await store.health();
    expect((await store.ledger.balance('a')).balance).to.equal(0);
    expect(await store.keyv('failures').get('a')).to.equal(undefined);
  });

  it('S05: refuses changes while the server is read-only, and continues afterwards', async () => {
    store = await subject.open(server.url);
    await prepare(store, 'a');
    await subject.setReadOnly(server, true);
    await eventually(() => rejectsUnavailable((store as Store).counters.next('n')));
    await rejectsUnavailable(store.ledger.credit('a', 'c', 5, 'x', NOW));
    await subject.setReadOnly(server, false);
    await eventually(async () => (store as Store).ledger.credit('a', 'd', 5, 'x', NOW));
    const entries = await store.ledger.entries('a', { limit: 10 });
    expect(entries.map(({ ref }) => ref)).to.deep.equal(['d', 'first']);
  });

  it('S06: refuses an unreadable record, and continues with the others', async () => {
    store = await subject.open(server.url);
    await prepare(store, 'a');
    await subject.spoil(server);
    await rejectsUnavailable(store.keyv('failures').get('a'));
    await rejectsUnavailable(store.ledger.balance('a'));
    await prepare(store, 'b');
    expect(await store.keyv('failures').get('b')).to.deep.equal({ v: 1 });
    expect((await store.ledger.balance('b')).held).to.equal(10);
    await store.health();
  });

  it('S07: a change whose answer was lost happened once, and saying it again changes nothing', async () => {
    const wire = await startTcpProxy(server.port);
    proxy = wire;
    store = await subject.open(throughProxy(wire.port));
    await prepare(store, 'a');
    wire.dropReplies();
    await rejectsUnavailable(store.ledger.credit('a', 'lost', 50, 'x', NOW));
    wire.heal();
    await eventually(async () => store?.health());
    expect(await store.ledger.credit('a', 'lost', 50, 'x', NOW)).to.equal(false);
    expect((await store.ledger.balance('a')).balance).to.equal(150);
    wire.dropReplies();
    await rejectsUnavailable(store.ledger.reserve(reservation({ account: 'a', requestId: 'lost' })));
    wire.heal();
    await eventually(async () => store?.health());
    expect(await outcomeOf(store.ledger.reserve(reservation({ account: 'a', requestId: 'lost' })))).to.equal(
      'duplicate',
    );
    expect((await store.ledger.balance('a')).held).to.equal(20);
  });

  it('S08: a broken connection is replaced, and the change in progress is made once, even if its response was lost', async () => {
    const wire = await startTcpProxy(server.port);
    proxy = wire;
    store = await subject.open(throughProxy(wire.port), undefined, 5000);
    const near = await subject.open(server.url, undefined, 5000);
    await prepare(store, 'a');
    for (let round = 1; round <= 5; round++) {
      wire.dropReplies();
      const held = store.ledger.reserve(reservation({ account: 'a', requestId: `r${round}`, amount: 1 }));
      await eventually(async () => expect((await near.ledger.balance('a')).held).to.equal(10 + round));
      wire.heal();
      expect(await outcomeOf(held)).to.equal('held');
      // Reads on a broken connection are repeated; later reads wait until then.
      wire.dropReplies();
      const [balance, again] = [store.ledger.balance('a'), store.ledger.entries('a', { limit: 5 })];
      await new Promise((resolve) => setImmediate(resolve));
      wire.heal();
      expect((await balance).held).to.equal(10 + round);
      expect(await again).to.have.length(1);
      expect(await store.counters.next('n', 0)).to.equal(0);
    }
    await near.close();
  });

  it('is closed in time also while the server is stopped', async () => {
    store = await subject.open(server.url);
    server.freeze();
    await store.close();
    await rejectsUnavailable(store.ledger.balance('a'));
  });
}

describeWith('failures of a redis server', { 'redis-server': REDIS_SERVER }, () => testFailures(FAILING_REDIS));
describeWith('failures of a postgres server', { postgres: POSTGRES, initdb: INITDB }, () =>
  testFailures(FAILING_POSTGRES),
);
