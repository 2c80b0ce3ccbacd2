import { openPostgres } from '../../../plugins/stores/postgres/index.ts';
import { testStore } from '../../conformance/store.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/postgres-server.ts';
import { describeWith, type TestServer } from '../../support/server-process.ts';

describeWith('postgres store', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async function () {
    this.timeout(60_000);
    server = await startPostgresServer();
  });
  after(() => server?.close());

  testStore('postgres', () => openPostgres({ url: server.url, timeoutMs: 1000 }));
});
