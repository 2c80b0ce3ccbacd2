import { expect } from 'chai';
import type { Store } from '../../../contract/index.ts';
import { useTempFolder } from '../../support/folders.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/stores/redis-server.ts';
import {
  openStore,
  prepareRace,
  RACES,
  type Race,
  runRace,
  type StoreAddress,
} from '../../support/stores/store-race.ts';
import { startWorker, type Worker } from '../../support/stores/worker-process.ts';

const ROUNDS = 20;
const CALLERS = 50;

/** Fifty concurrent callers, of whom ten succeed: in this process, and divided between two others. */
function testRaces(address: () => StoreAddress, isShared: boolean): void {
  let store: Store;
  let workers: readonly Worker[] = [];
  before(async () => {
    store = await openStore(address());
    if (isShared) workers = await Promise.all([0, 1].map(() => startWorker('store-worker.ts', address())));
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await store?.close();
  });

  for (const race of Object.keys(RACES) as Race[]) {
    it(`lets ten of fifty ${race} pass, ${ROUNDS} times`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const name = `${race} ${round}`;
        await prepareRace(store, race, name);
        expect(await runRace(store, race, name, 'one', CALLERS), `round ${round}`).to.equal(10);
      }
    });

    if (!isShared) continue;
    it(`lets ten of fifty ${race} pass in two processes, ${ROUNDS} times`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const name = `${race} of two ${round}`;
        await prepareRace(store, race, name);
        const got = await Promise.all(
          workers.map((worker, n) => worker.send<{ got: number }>({ race, name, by: `w${n}`, count: CALLERS / 2 })),
        );
        expect(
          got.reduce((sum, response) => sum + response.got, 0),
          `round ${round}`,
        ).to.equal(10);
      }
    });
  }

  it('keeps the books in order over all of it', async () => {
    for (const race of ['reservations of one balance', 'settlements of ten requests'] as const) {
      const account = `${race} ${ROUNDS - 1}`;
      const { balance, held } = await store.ledger.balance(account);
      const entries = await store.ledger.entries(account, { limit: 100 });
      expect(entries.reduce((sum, entry) => sum + entry.amount, 0)).to.equal(balance);
      expect(new Set(entries.map((entry) => entry.ref)).size).to.equal(entries.length);
      expect(balance - held).to.equal(0);
    }
  });
}

describe('races on the memory store', () => testRaces(() => ({ kind: 'memory' }), false));

describe('races on the sqlite store', () => {
  const folder = useTempFolder('races');
  testRaces(() => ({ kind: 'sqlite', folder }), true);
});

describeWith('races on the redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());
  testRaces(() => ({ kind: 'redis', url: server.url }), true);
});

describeWith('races on the postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());
  testRaces(() => ({ kind: 'postgres', url: server.url }), true);
});
