import { describeWith, type TestServer } from '../../../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../../../support/stores/redis-server.ts';
import { openStore } from '../../../../support/stores/store-race.ts';
import { checkOpenings } from './opening-property.ts';

/** `TOLLGATE_PROPERTY_CASES=100000` for many. */
const CASES = Number(process.env['TOLLGATE_PROPERTY_CASES'] ?? 20);

const PLACES = [
  { kind: 'redis', needs: { 'redis-server': REDIS_SERVER }, open: () => startRedisServer() },
  { kind: 'postgres', needs: { postgres: POSTGRES, initdb: INITDB }, open: startPostgresServer },
] as const;

for (const { kind, needs, open } of PLACES)
  describeWith(`a budget created inside its window on ${kind}`, needs, () => {
    let server: TestServer;
    before(async () => {
      server = await open();
    });
    after(() => server?.close());

    it('counts what its window has spent, once, on two nodes, with calls that run meanwhile, in zones of half and quarter hours', async function () {
      this.timeout(900_000);
      const address = { kind, url: server.url } as const;
      const [one, two] = [await openStore(address), await openStore(address)];
      await checkOpenings([one, two], CASES);
      await Promise.all([one.close(), two.close()]);
    });
  });
