import { expect } from 'chai';
import pg from 'pg';
import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { NOW, reservation, testStore } from '../../conformance/store.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';

describeWith('postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
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
    ['database', (url: string) => url.replace('/postgres?', '/').replace(/\/postgres$/, '/missing-made-it')],
    ['user', (url: string) => url.replace('tollgate@', 'missing@')],
  ] as const) {
    it(`refuses to open with a ${title} that does not exist, without revealing the URL`, async () => {
      const error = await openPostgres({ url: change(server.url) }).catch((reason) => reason);
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(/rejects the user, password or database/);
      expect(error.message).not.to.match(/127\.0\.0\.1|missing/);
    });
  }

  it('shows the sums of accounts and budgets in views, also of accounts whose names are no text of Postgres', async () => {
    const store = await openPostgres({ url: server.url });
    for (const account of ['plain', 'with\0nul']) await store.ledger.credit(account, 'c', 70, 'top-up', NOW);
    const budgets = [{ id: 'views', limit: 50 }];
    await store.ledger.reserve(reservation({ account: 'plain', requestId: 'r', budgets }));
    await store.close();
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const read = async (text: string) => (await pool.query({ text })).rows;
    expect(await read("SELECT balance, held FROM tollgate.accounts WHERE id = 'plain'")).to.deep.equal([
      { balance: '70', held: '10' },
    ]);
    expect(await read('SELECT name FROM tollgate.accounts WHERE name IS NOT NULL')).to.deep.equal([
      { name: JSON.stringify('with\0nul') },
    ]);
    expect(await read("SELECT spent, held FROM tollgate.budgets WHERE id = 'views'")).to.deep.equal([
      { spent: '0', held: '10' },
    ]);
    await pool.end();
  });

  testStore({
    ...{ name: 'postgres', keeps: true, shared: true },
    open: () => openPostgres({ url: server.url, timeoutMs: 10_000 }),
    module: () =>
      new URL(`../../fixtures/stores/open-postgres.ts?url=${encodeURIComponent(server.url)}`, import.meta.url),
  });
});
