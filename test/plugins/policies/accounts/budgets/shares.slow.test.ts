import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import type { Store } from '../../../../../contract/index.ts';
import { describeWith, type TestServer } from '../../../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../../../support/stores/redis-server.ts';
import { openStore } from '../../../../support/stores/store-race.ts';
import { eventually } from '../../../../support/wait.ts';
import type { ShareOrder, ShareReport } from './share-worker.ts';

const PLACES = [
  { kind: 'redis', needs: { 'redis-server': REDIS_SERVER }, open: () => startRedisServer() },
  { kind: 'postgres', needs: { postgres: POSTGRES, initdb: INITDB }, open: startPostgresServer },
] as const;

const LIMIT = 9000;
const WORKER = new URL('share-worker.ts', import.meta.url);

function start(order: ShareOrder) {
  return fork(WORKER, [JSON.stringify(order)], { execArgv: ['--import', 'tsx'] });
}

/** Spent amount of all calls of this budget. */
async function sumSpent(store: Store, name: string): Promise<number> {
  const rows = await store.ledger.report({ edges: [0, Date.now() + 1], by: ['account'] });
  return Number(rows.reduce((sum, { account = '', cost }) => (account.startsWith(`${name}-`) ? sum + cost : sum), 0n));
}

for (const { kind, needs, open } of PLACES)
  describeWith(`a budget that processes share on ${kind}`, needs, () => {
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await open();
      store = await openStore({ kind, url: server.url });
    });
    after(async () => {
      await store?.close();
      await server?.close();
    });

    for (const processes of [2, 4])
      it(`is used up exactly by ${processes} processes, one of which is killed with a share`, async function () {
        this.timeout(180_000);
        const name = `company-${processes}`;
        const id = `shared:${name}:total`;
        const order = {
          address: { kind, url: server.url },
          name,
          limit: LIMIT,
          isExact: false,
          concurrency: 6,
        } as const;
        const killed = start({ ...order, stopsAfter: 150 });
        const others = Array.from({ length: processes - 1 }, () => start(order));
        await once(killed, 'message');
        killed.kill('SIGKILL');
        const reports = await Promise.all(others.map(async (each) => (await once(each, 'message'))[0] as ShareReport));
        expect(reports.map(({ failed }) => failed)).to.deep.equal(others.map(() => 0));
        // The sweeper charges what the killed process left behind; then its lease has expired.
        await eventually(async () => {
          await store.ledger.sweep(Date.now() + 86_400_000);
          const { expired = [] } =
            (await store.ledger.shareBudget?.({ id, shareId: `${id}#test`, limit: LIMIT, amount: 0, ttlMs: 1000 })) ??
            {};
          for (const shareId of expired)
            await store.ledger.shareBudget?.({ id, shareId, limit: LIMIT, amount: 0, ttlMs: 1000, ifExpired: true });
          expect(await store.ledger.budgets([id])).to.deep.equal([{ spent: await sumSpent(store, name), held: 0 }]);
        }, 30_000);
        const [state] = await store.ledger.budgets([id]);
        // A call costs up to 7.
        expect(state?.spent).to.be.within(LIMIT - 7, LIMIT);
      });
  });
