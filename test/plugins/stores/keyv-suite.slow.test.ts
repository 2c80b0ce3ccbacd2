import { connect as connectPostgres } from '../../../plugins/stores/postgres/connection.ts';
import { createPostgresDocuments } from '../../../plugins/stores/postgres/index.ts';
import { connect as connectRedis } from '../../../plugins/stores/redis/connection.ts';
import { createKeys, createRedisDocuments } from '../../../plugins/stores/redis/index.ts';
import { createDocumentAdapters } from '../../../plugins/stores/sqlite/documents.ts';
import { openDatabase } from '../../../plugins/stores/sqlite/index.ts';
import { Writer } from '../../../plugins/stores/sqlite/writer.ts';
import { useTempFolder } from '../../support/folders.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../support/stores/redis-server.ts';
import { testWithKeyvSuite } from './keyv-suite.ts';

type OpenAdapter = ReturnType<typeof createDocumentAdapters>;

describe('documents in sqlite', () => {
  const folder = useTempFolder('keyv-suite');
  let open: OpenAdapter;
  let close: () => Promise<void>;
  before(async () => {
    const database = await openDatabase({ folder });
    const writer = new Writer(database, 'tollgate.db');
    open = createDocumentAdapters(database, writer);
    close = () => writer.close().then(() => database.close());
  });
  after(() => close());
  testWithKeyvSuite('sqlite', () => open('keyv'));
});

describeWith('documents in redis', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  let connection: Awaited<ReturnType<typeof connectRedis>>;
  before(async () => {
    server = await startRedisServer();
    connection = await connectRedis({ url: server.url, prefix: 'suite', timeoutMs: 10_000 });
  });
  after(async () => {
    await connection?.close();
    await server?.close();
  });
  testWithKeyvSuite('redis', () => createRedisDocuments(connection, createKeys('suite'))('keyv'));
});

describeWith('documents in postgres', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  let connection: Awaited<ReturnType<typeof connectPostgres>>;
  before(async () => {
    server = await startPostgresServer();
    connection = await connectPostgres({ url: server.url, connections: 4, timeoutMs: 10_000 });
  });
  after(async () => {
    await connection?.close();
    await server?.close();
  });
  testWithKeyvSuite('postgres', () => createPostgresDocuments(connection)('keyv'));
});
