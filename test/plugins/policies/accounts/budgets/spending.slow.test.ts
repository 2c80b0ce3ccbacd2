import { describeWith, type TestServer } from '../../../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../../../support/stores/redis-server.ts';
import { openStore } from '../../../../support/stores/store-race.ts';
import { checkSpending } from './spending-property.ts';

const PLACES = [
  { kind: 'redis', needs: { 'redis-server': REDIS_SERVER }, open: () => startRedisServer() },
  { kind: 'postgres', needs: { postgres: POSTGRES, initdb: INITDB }, open: startPostgresServer },
] as const;

for (const { kind, needs, open } of PLACES)
  describeWith(`spending in calendar windows on ${kind}`, needs, () => {
    let server: TestServer;
    before(async () => {
      server = await open();
    });
    after(() => server?.close());

    it('never passes a budget, and never stops short of one, on two nodes over changes of clocks, ends of months and leap days', async function () {
      this.timeout(900_000);
      const address = { kind, url: server.url } as const;
      const [one, two] = [await openStore(address), await openStore(address)];
      await checkSpending([one, two], 100);
      await Promise.all([one.close(), two.close()]);
    });
  });
