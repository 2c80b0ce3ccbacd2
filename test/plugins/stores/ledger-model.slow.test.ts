import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Store } from '../../../core/index.ts';
import { day } from '../../conformance/store.ts';
import { createClock, createModel, perform, STEPS, type Step } from '../../support/ledger-model.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/redis-server.ts';
import { describeWith, type TestServer } from '../../support/server-process.ts';
import { openStore, type StoreAddress } from '../../support/store-race.ts';
import { useTempFolder } from '../../support/temp-folder.ts';

/** The ledger of a store against the model, step by step, and against its own books after steps that run together. */
function testAgainstModel(address: () => StoreAddress, numRuns: number): void {
  let store: Store;
  before(async () => {
    store = await openStore(address());
  });
  after(() => store?.close());

  const reopen = async (): Promise<void> => {
    if (address().kind === 'memory') return;
    await store.close();
    store = await openStore(address());
  };

  const testSteps = (looks: boolean) =>
    async function (this: Mocha.Context): Promise<void> {
      this.timeout(120_000);
      await fc.assert(
        fc.asyncProperty(STEPS, (steps) => takeSteps(steps, looks)),
        { numRuns },
      );
    };

  it('answers and holds what the model does, whatever happens', testSteps(true));
  // A store may put off what nobody asks for: then it must come to the same.
  it('comes to the same when nobody looks in between', testSteps(false));

  const takeSteps = async (steps: readonly Step[], looks: boolean): Promise<void> => {
    const account = randomUUID();
    const model = createModel();
    const clock = createClock();
    for (const step of steps) {
      clock.advance(step);
      if (step.do === 'reopen') await reopen();
      expect(await perform(store, account, step, clock.now()), step.do).to.equal(model.apply(step, clock.now()));
      if (!looks && step !== steps.at(-1)) continue;
      const { updatedAt: _, ...balances } = await store.ledger.balance(account);
      expect(balances).to.deep.equal(model.balances());
    }
    for (const budget of ['k1', 'k2'])
      expect(await store.ledger.budget(account, budget)).to.deep.equal(model.budget(budget));
    const entries = await store.ledger.entries(account, { limit: 100 });
    expect(entries.map(({ kind, ref }) => `${kind} ${ref}`)).to.have.members(model.refs());
    expect(entries.reduce((sum, entry) => sum + entry.amount, 0)).to.equal(model.balances().balance);
  };

  it('keeps its books in order when steps run together, and holds nothing after the sweep', async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        const account = randomUUID();
        const clock = createClock();
        await Promise.all(steps.map((step: Step) => perform(store, account, step, clock.now())));
        await store.ledger.sweep(clock.now() + 10_000);
        const { balance, held, spent, credited } = await store.ledger.balance(account);
        const entries = await store.ledger.entries(account, { limit: 100 });
        expect(held, 'held').to.equal(0);
        expect(balance, 'credited less spent').to.equal(credited - spent);
        expect(
          entries.reduce((sum, entry) => sum + entry.amount, 0),
          'sum of entries',
        ).to.equal(balance);
        expect(
          new Set(entries.map(({ kind, ref, reason }) => `${kind} ${ref} ${reason}`)).size,
          'no entry twice',
        ).to.equal(entries.length);
        const usage = await store.ledger.usage(account, day(-300), day(3));
        expect(
          usage.reduce((sum, row) => sum + row.cost, 0),
          'cost in the usage report',
        ).to.equal(spent);
      }),
      { numRuns },
    );
  });
}

describe('the ledger of the memory store', () => testAgainstModel(() => ({ kind: 'memory' }), 300));

describe('the ledger of the sqlite store', () => {
  const folder = useTempFolder('model');
  testAgainstModel(() => ({ kind: 'sqlite', folder }), 100);
});

describeWith('the ledger of the redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());
  testAgainstModel(() => ({ kind: 'redis', url: server.url }), 30);
});

describeWith('the ledger of the postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async function () {
    this.timeout(60_000);
    server = await startPostgresServer();
  });
  after(() => server?.close());
  testAgainstModel(() => ({ kind: 'postgres', url: server.url }), 30);
});
