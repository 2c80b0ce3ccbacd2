import path from 'node:path';
import KeyvRedis from '@keyv/redis';
import pg from 'pg';
import { importDriver } from '../../plugins/stores/sqlite/driver.ts';
import { useTempFolder } from '../support/folders.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { expectErased } from './erased-person.ts';

describe('a person whose id is an e-mail address, in SQLite', () => {
  const folder = useTempFolder('erase');

  it('is in no row after an erasure, and the sums stay under an id (G49)', async () => {
    await expectErased({ store: `sqlite:${folder}`, dump: () => dumpSqlite(path.join(folder, 'tollgate.db')) });
  });
});

/** Returns all rows of an SQLite file. */
async function dumpSqlite(file: string): Promise<string> {
  const { DatabaseSync } = await importDriver();
  const database = new DatabaseSync(file, { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  const rows = tables.flatMap(({ name }) =>
    database
      .prepare(`SELECT * FROM ${name}`)
      .all()
      .map((row) => `${name} ${Object.values(row).join(' ')}`),
  );
  database.close();
  return rows.join('\n');
}

describeWith('a person whose id is an e-mail address, in Postgres', { postgres: POSTGRES, initdb: INITDB }, () => {
  let server: TestServer;
  before(async () => {
    server = await startPostgresServer();
  });
  after(() => server?.close());

  it('is in no row after an erasure, and the sums stay under an id (G49)', async () => {
    await expectErased({ store: server.url, dump: () => dumpPostgres(server.url) });
  });
});

/** Returns all rows of the schema. */
async function dumpPostgres(connectionString: string): Promise<string> {
  const client = new pg.Pool({ connectionString, max: 1 });
  const read = async (text: string) => (await client.query({ text })).rows;
  const tables = await read("SELECT relname AS name FROM pg_stat_user_tables WHERE schemaname = 'tollgate'");
  const rows: string[] = [];
  for (const { name } of tables)
    for (const { row } of await read(`SELECT row_to_json(t)::text AS row FROM tollgate.${name} AS t`))
      rows.push(`${name} ${row}`);
  await client.end();
  return rows.join('\n');
}

describeWith('a person whose id is an e-mail address, in Redis', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());

  it('is in no key and no value after an erasure, and the sums stay under an id (G49)', async () => {
    await expectErased({ store: server.url, dump: () => dumpRedis(server.url) });
  });
});

/** Returns all keys with their values. */
async function dumpRedis(url: string): Promise<string> {
  const { client } = new KeyvRedis(url);
  if (!('keys' in client && 'quit' in client)) throw new Error('this is no single server');
  if (!client.isOpen) await client.connect();
  const readers = {
    string: (key: string) => client.get(key),
    hash: (key: string) => client.hGetAll(key),
    zset: (key: string) => client.zRangeWithScores(key, 0, -1),
    list: (key: string) => client.lRange(key, 0, -1),
    set: (key: string) => client.sMembers(key),
  };
  const rows: string[] = [];
  for (const key of await client.keys('*')) {
    const kind = (await client.type(key)) as keyof typeof readers;
    rows.push(`${key} ${JSON.stringify(await readers[kind](key))}`);
  }
  await client.quit();
  return rows.join('\n');
}
