import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Store } from '../../../contract/index.ts';
import { NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import {
  BUDGETS,
  createClock,
  createModel,
  GROUPINGS,
  perform,
  STEPS,
  type Step,
} from '../../support/stores/ledger-model.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/stores/redis-server.ts';
import { openStore, type StoreAddress } from '../../support/stores/store-race.ts';

/** Compares a store's ledger with the model step by step, and with its own entries after concurrent steps. */
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
      this.timeout(900_000);
      await fc.assert(
        fc.asyncProperty(STEPS, (steps) => takeSteps(steps, looks)),
        { numRuns },
      );
    };

  it('returns and stores the same as the model, whatever happens', testSteps(true));
  // A store may defer work that no request needs; the result must be the same.
  it('has the same result without reads in between', testSteps(false));

  const takeSteps = async (steps: readonly Step[], looks: boolean): Promise<void> => {
    const account = randomUUID();
    const model = createModel();
    const clock = createClock();
    for (const step of steps) {
      clock.advance(step);
      if (step.do === 'reopen') await reopen();
      expect(await perform(store, account, step, clock.now()), step.do).to.deep.equal(model.apply(step, clock.now()));
      if (!looks && step !== steps.at(-1)) continue;
      const { updatedAt: _, ...balances } = await store.ledger.balance(account);
      expect(balances).to.deep.equal(model.balances());
    }
    const budgets = await store.ledger.budgets(BUDGETS.map((id) => `${account}-${id}`));
    expect(budgets).to.deep.equal(BUDGETS.map(model.budget));
    const entries = await store.ledger.entries(account, { limit: 100 });
    expect(entries.map(({ kind, ref }) => `${kind} ${ref}`)).to.have.members(model.refs());
    expect(entries.reduce((sum, entry) => sum + entry.amount, 0)).to.equal(model.balances().balance);
    const { calls } = await store.ledger.calls({ account, limit: 100 });
    const known = calls.map(({ id, userId, key, provider, session, tags, outcome, cost, at }) => ({
      ...{ id, userId, key, provider, session, tags, outcome, cost, at },
    }));
    expect(known).to.have.deep.members(model.calls().map((call) => ({ ...call, tags: [...call.tags].sort() })));
    await checkReports(account, model.balances().spent, calls.length);
  };

  /**
   * Checks that every grouping, over intervals that divide hours, adds up to the spent amount and the number of calls.
   */
  const checkReports = async (account: string, spent: number, requests: number): Promise<void> => {
    const edges = [NOW - 1, NOW + 600_000, NOW + 1_800_000, NOW + 9_000_000, NOW + 900_000_000];
    for (const by of GROUPINGS) {
      const rows = await store.ledger.report({ edges, by, account });
      expect(
        rows.reduce((sum, row) => sum + row.cost, 0n),
        `cost by ${by}`,
      ).to.equal(BigInt(spent));
      expect(
        rows.reduce((sum, row) => sum + row.requests, 0),
        `requests by ${by}`,
      ).to.equal(requests);
    }
  };

  it('keeps its books in order when steps run together, and holds nothing after the sweep', async function () {
    this.timeout(900_000);
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
        const { calls } = await store.ledger.calls({ account, limit: 100 });
        expect(new Set(calls.map(({ id }) => id)).size, 'no record twice').to.equal(calls.length);
        expect(
          calls.reduce((sum, { cost }) => sum + cost, 0),
          'cost of the records',
        ).to.equal(spent);
        await checkReports(account, spent, calls.length);
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
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());
  testAgainstModel(() => ({ kind: 'postgres', url: server.url }), 30);
});
