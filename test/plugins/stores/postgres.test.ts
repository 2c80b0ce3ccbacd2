import { expect } from 'chai';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { testStore } from '../../conformance/store.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';

describeWith('postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async function () {
    this.timeout(60_000);
    server = await startPostgresServer();
  });
  after(() => server?.close());

  it('is made once when several gateways start at the same time', async () => {
    const stores = await Promise.all(
      Array.from({ length: 5 }, () => openPostgres({ url: server.url, connections: 2 })),
    );
    for (const store of stores) await store.health();
    await Promise.all(stores.map((store) => store.counters.next('starters')));
    expect(await stores[0]?.counters.next('starters', 0)).to.equal(5);
    await Promise.all(stores.map((store) => store.close()));
  });

  for (const [title, change] of [
    ['database', (url: string) => url.replace('/postgres?', '/').replace(/\/postgres$/, '/nobody-made-it')],
    ['user', (url: string) => url.replace('tollgate@', 'nobody@')],
  ] as const) {
    it(`refuses to open with a ${title} that does not exist, and does not tell the address`, async () => {
      const error = await openPostgres({ url: change(server.url) }).catch((reason) => reason);
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(/refuses the user, password or database/);
      expect(error.message).not.to.match(/127\.0\.0\.1|nobody/);
    });
  }

  testStore('postgres', () => openPostgres({ url: server.url, timeoutMs: 10_000 }));
});
