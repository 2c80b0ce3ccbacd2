import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { describeWith, findProgram, freePort, type TestServer } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { REDIS_SERVER, sendToRedis, startRedisServer } from '../support/stores/redis-server.ts';
import { eventually } from '../support/wait.ts';

// Runs the commands of docs/how-to/back-up-and-restore.md on test stores. Every acknowledged write before the backup
// exists after the restore.

const run = promisify(execFile);
const PEPPER = randomBytes(32).toString('hex');
const GOOD = { model: 'echo/echo', messages: [{ role: 'user', content: 'hello there' }] };

/**
 * Starts a gateway on a store. Keys are hashed with the test's pepper by default, otherwise with the one in the
 * gateway's folder.
 */
const open = (store: unknown, ownPepper = true): Promise<TestGateway> =>
  startGateway({ store, auth: { 'api-key': { bootstrap: true, ...(ownPepper && { pepper: PEPPER }) } } });

const callWith = async (gateway: TestGateway, key: string): Promise<number> =>
  (await gateway.post('/v1/chat/completions', GOOD, { authorization: `Bearer ${key}` })).status;

/** Creates a user with a key, money and calls; returns the key. */
async function fill(gateway: TestGateway): Promise<string> {
  const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ada');
  await gateway.command('accounts', 'credit', 'ada', '25.00', '--reason', 'invoice 7');
  for (let n = 0; n < 3; n += 1) expect(await callWith(gateway, key)).to.equal(200);
  return key;
}

const books = (gateway: TestGateway): Promise<unknown> => gateway.command('accounts', 'show', 'ada');

/** Fills a store, backs it up, damages it, restores it and checks its content. */
async function backUpAndRestore(
  store: unknown,
  copy: () => Promise<void>,
  restore: () => Promise<unknown>,
  ownPepper = true,
): Promise<void> {
  const gateway = await open(store, ownPepper);
  let key = '';
  let before: unknown;
  try {
    key = await fill(gateway);
    before = await books(gateway);
    await copy();
    await gateway.command('accounts', 'credit', 'ada', '1.00', '--reason', 'after the copy');
    expect(await books(gateway)).to.not.deep.equal(before);
  } finally {
    await gateway.stop();
  }
  const restored = await open(await restore(), ownPepper);
  try {
    expect(await books(restored)).to.deep.equal(before);
    expect(await callWith(restored, key)).to.equal(200);
    await restored.command('accounts', 'credit', 'ada', '2.00', '--reason', 'goes on');
  } finally {
    await restored.stop();
  }
}

const SQLITE3 = findProgram('sqlite3', ['/usr/bin']);
(SQLITE3 === undefined ? describe.skip : describe)('a backup of the embedded store', () => {
  const folder = useTempFolder('backup');

  it('is one command while the gateway runs, and works together with the pepper', async () => {
    const [data, copy] = [path.join(folder, 'data'), path.join(folder, 'copy')];
    await mkdir(copy, { recursive: true });
    await backUpAndRestore(
      `sqlite:${data}`,
      async () => {
        await run(SQLITE3 ?? '', [path.join(data, 'tollgate.db'), `.backup ${path.join(copy, 'tollgate.db')}`]);
        await cp(path.join(data, 'pepper'), path.join(copy, 'pepper'));
      },
      async () => {
        await rm(data, { recursive: true });
        await rename(copy, data);
        return `sqlite:${data}`;
      },
      false,
    );
  });
});

describeWith('a backup of a Redis store', { 'redis-server': REDIS_SERVER }, () => {
  let servers: TestServer[] = [];
  const start = async (): Promise<TestServer> => {
    const server = await startRedisServer();
    servers.push(server);
    return server;
  };
  const folderOf = async ({ port }: TestServer): Promise<string> =>
    (await sendToRedis(port, 'CONFIG', 'GET', 'dir')).trim().split('\r\n').at(-1) ?? '';
  const isTrue = async ({ port }: Pick<TestServer, 'port'>, field: string): Promise<void> => {
    await eventually(async () => expect(await sendToRedis(port, 'INFO', 'persistence')).to.include(field));
  };
  const folder = useTempFolder('redis-copy');
  afterEach(async () => {
    for (const server of servers) await server.close();
    servers = [];
  });

  it('is a copy of its append-only files outside a rewrite', async () => {
    const [old, fresh] = [await start(), await start()];
    const copied = path.join(folder, 'appendonlydir');
    await backUpAndRestore(
      old.url,
      async () => {
        await sendToRedis(old.port, 'CONFIG', 'SET', 'auto-aof-rewrite-percentage', '0');
        await isTrue(old, 'aof_rewrite_in_progress:0');
        await cp(path.join(await folderOf(old), 'appendonlydir'), copied, { recursive: true });
        await sendToRedis(old.port, 'CONFIG', 'SET', 'auto-aof-rewrite-percentage', '100');
      },
      async () => {
        const place = path.join(await folderOf(fresh), 'appendonlydir');
        await fresh.kill();
        await rm(place, { recursive: true });
        await cp(copied, place, { recursive: true });
        await fresh.start();
        return fresh.url;
      },
    );
  });

  it('is a snapshot, from which a Redis without append-only files starts and then writes them', async () => {
    const [old, fresh] = [await start(), await start()];
    const copied = path.join(folder, 'dump.rdb');
    await backUpAndRestore(
      old.url,
      async () => {
        await sendToRedis(old.port, 'BGSAVE');
        await isTrue(old, 'rdb_bgsave_in_progress:0');
        expect(await readdir(await folderOf(old))).to.include('dump.rdb');
        await cp(path.join(await folderOf(old), 'dump.rdb'), copied);
      },
      async () => {
        const place = await folderOf(fresh);
        await fresh.kill();
        await rm(path.join(place, 'appendonlydir'), { recursive: true });
        await cp(copied, path.join(place, 'dump.rdb'));
        const port = await freePort();
        const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', place, '--appendonly', 'no'];
        const reading = spawn(REDIS_SERVER ?? '', args, { stdio: 'ignore' });
        const ended = once(reading, 'exit');
        await isTrue({ port }, 'loading:0');
        await sendToRedis(port, 'CONFIG', 'SET', 'appendonly', 'yes');
        await isTrue({ port }, 'aof_rewrite_in_progress:0');
        await isTrue({ port }, 'aof_last_bgrewrite_status:ok');
        await sendToRedis(port, 'SHUTDOWN');
        await ended;
        await fresh.start();
        return fresh.url;
      },
    );
  });
});

const [PG_DUMP, PG_RESTORE] = [findProgram('pg_dump', ['/usr/bin']), findProgram('pg_restore', ['/usr/bin'])];
describeWith(
  'a backup of a Postgres store',
  { postgres: POSTGRES, initdb: INITDB, pg_dump: PG_DUMP, pg_restore: PG_RESTORE },
  () => {
    const folder = useTempFolder('postgres-copy');

    it('is pg_dump of the schema tollgate, which pg_restore restores into an empty database', async () => {
      const [old, fresh] = [await startPostgresServer(), await startPostgresServer()];
      const file = path.join(folder, 'tollgate.dump');
      try {
        await backUpAndRestore(
          old.url,
          async () => {
            await run(PG_DUMP ?? '', ['--format=custom', '--schema=tollgate', `--file=${file}`, old.url]);
          },
          async () => {
            await run(PG_RESTORE ?? '', ['--exit-on-error', '--no-owner', `--dbname=${fresh.url}`, file]);
            return fresh.url;
          },
        );
      } finally {
        await old.close();
        await fresh.close();
      }
    });
  },
);
