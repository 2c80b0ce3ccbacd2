import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Store } from '../../../contract/index.ts';
import { SCHEMA_VERSION } from '../../../plugins/stores/redis/connection.ts';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { NOW } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, type TestServer } from '../../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis, startRedisCluster, startRedisServer } from '../../support/stores/redis-server.ts';
import { eventually } from '../../support/wait.ts';
import { expectEarlierRows } from './earlier-rows.ts';

/** Commands that write the data of a gateway with schema 6. */
const SCHEMA_6: readonly (readonly string[])[] = JSON.parse(
  readFileSync(new URL('../../fixtures/stores/redis-schema-6.json', import.meta.url), 'utf8'),
);

const EARLIER =
  /^The redis store was made by an earlier version of Tollgate \(schema [12345]\).*set prefix to a new one\. Nothing in it was changed\.$/;
const openErrorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error) => error);
/** Keys and values, sorted by key. */
const READ_ALL = `local all = redis.call('KEYS', 'tollgate*') table.sort(all)
  for i, key in ipairs(all) do all[i] = key .. '=' .. redis.call('DUMP', key) end return all`;

describeWith('the schema of the redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  beforeEach(() => sendToRedis(server.port, 'FLUSHALL'));
  after(() => server?.close());

  const open = (prefix = 'tollgate') => openRedis({ url: server.url, prefix });
  const versionOf = (prefix: string) => sendToRedis(server.port, 'GET', `${prefix}:schema`);
  const marked = `$1\r\n${SCHEMA_VERSION}\r\n`;
  const readAll = () => sendToRedis(server.port, 'EVAL', READ_ALL, '0');

  it('is written on an empty prefix, whatever keys other prefixes have', async () => {
    await sendToRedis(server.port, 'SET', 'tollgate-2:doc:keys:a', '{}');
    await (await open()).close();
    expect(await versionOf('tollgate')).to.equal(marked);
    expect(await versionOf('tollgate-2')).to.equal('$-1\r\n');
  });

  it('is found again at the next start, with the data', async () => {
    const first = await open();
    await first.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await first.close();
    const second = await open();
    expect((await second.ledger.balance('a')).balance).to.equal(5);
    await second.close();
  });

  it('is written once when several gateways start at the same time and write at once', async () => {
    const stores = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const store = await open();
        await store.counters.next('starters');
        return store;
      }),
    );
    expect(await stores[0]?.counters.next('starters', 0)).to.equal(8);
    expect(await versionOf('tollgate')).to.equal(marked);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('of the first version, which wrote none, is refused with the remedy, and is not modified', async () => {
    for (let n = 0; n < 3000; n++) await sendToRedis(server.port, 'SET', `other:${n}`, '');
    await sendToRedis(server.port, 'SET', 'tollgate:doc:api-key:keys:a', '{"value":1}');
    const before = await readAll();
    const error = await openErrorOf(open());
    expect(error.code).to.equal('store_unavailable');
    expect(error.message).to.match(EARLIER);
    expect(await readAll()).to.equal(before);
  });

  for (const version of [2, 3, 4, 5])
    it(`of version ${version}, which was not released, is refused with the remedy, and is not modified`, async () => {
      await sendToRedis(server.port, 'SET', 'tollgate:schema', String(version));
      await sendToRedis(server.port, 'SET', 'tollgate:{1}:account:a', '');
      const before = await readAll();
      const error = await openErrorOf(open());
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(EARLIER);
      expect(await readAll()).to.equal(before);
    });

  it('of version 6 is migrated with its rows by gateways that start at the same time', async () => {
    for (const command of SCHEMA_6) await sendToRedis(server.port, ...command);
    const stores = await Promise.all([open(), open(), open()]);
    expect(await versionOf('tollgate')).to.equal(marked);
    await expectEarlierRows(stores[0] as Store);
    await Promise.all(stores.map((store) => store.close()));
    const next = await open();
    expect((await next.ledger.calls({ limit: 10 })).calls).to.have.length(4);
    await next.close();
  });

  it('of version 6 refuses changes by gateways of that version after its migration', async () => {
    for (const command of SCHEMA_6) await sendToRedis(server.port, ...command);
    await (await open()).close();
    // Scripts of version 6 compare this key with 6, and report the version found.
    expect(await sendToRedis(server.port, 'GET', 'tollgate:{ledger}:schema')).to.equal(marked);
  });

  it('of a newer version is refused with the remedy, and is not modified', async () => {
    await sendToRedis(server.port, 'SET', 'tollgate:schema', '99');
    const before = await readAll();
    const error = await openErrorOf(open());
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect(await readAll()).to.equal(before);
  });

  it('of a newer version created by another gateway in the meantime is not modified by running ones', async () => {
    const store = await open();
    await store.ledger.credit('a', 'first', 5, 'top-up', NOW);
    await sendToRedis(server.port, 'SET', 'tollgate:{ledger}:schema', '99');
    const before = await readAll();
    const error = await openErrorOf(store.ledger.credit('a', 'second', 5, 'top-up', NOW));
    expect(error.message).to.match(/written by a newer version of Tollgate \(schema 99, this version knows \d+\)/);
    expect(await readAll()).to.equal(before);
    await store.close();
  });

  it('is checked when a server responds that was unavailable at the start, and reported to the operator and callers', async () => {
    await sendToRedis(server.port, 'SET', 'tollgate:doc:api-key:keys:a', '{"value":1}');
    await server.kill();
    const log = createSilentLog();
    const store = await openRedis({ url: server.url, log });
    await server.start();
    const before = await readAll();
    await eventually(async () => {
      const error = await openErrorOf(store.keyv('documents').get('a'));
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(EARLIER);
    });
    expect(await readAll()).to.equal(before);
    const reported = () => log.lines.filter(({ message }) => message === 'the store rejects this gateway');
    expect(reported().map(({ level }) => level)).to.deep.equal(['error']);
    // After its removal the data no longer causes a refusal.
    await sendToRedis(server.port, 'FLUSHALL');
    await eventually(() => store.health());
    expect(reported()).to.have.length(1);
    expect(await versionOf('tollgate')).to.equal(marked);
    await store.close();
  });

  it('is written again when the data was lost while the gateway ran, so that the next start is not refused', async () => {
    const first = await open();
    await sendToRedis(server.port, 'FLUSHALL');
    expect((await openErrorOf(first.health())).message).to.match(/lost its data/);
    await first.counters.next('n');
    await first.close();
    const second = await open();
    expect(await second.counters.next('n', 0)).to.equal(1);
    await second.close();
  });
});

describeWith('the schema of the redis store on a cluster', { 'redis-server': REDIS_SERVER }, () => {
  let nodes: readonly TestServer[] = [];
  before(async () => {
    nodes = await startRedisCluster();
  });
  after(() => Promise.all(nodes.map((node) => node.close())));

  const open = (prefix: string) => openRedis({ url: nodes[0]?.url ?? '', cluster: true, prefix });

  it('is not read from one node only: the start is refused with the remedy', async () => {
    const error = await openErrorOf(openRedis({ url: nodes[0]?.url ?? '' }));
    expect(error.code).to.equal('store_unavailable');
    expect(error.message).to.match(/is a cluster node.*Set "cluster" of the store to true/);
  });

  it('is written on an empty prefix by gateways that start at the same time, and found again', async () => {
    for (let start = 0; start < 2; start++) {
      const stores = await Promise.all(Array.from({ length: 3 }, () => open('new')));
      await Promise.all(stores.map((store) => store.counters.next('starters')));
      await Promise.all(stores.map((store) => store.close()));
    }
    const store = await open('new');
    expect(await store.counters.next('starters', 0)).to.equal(6);
    await store.close();
  });

  it('of the first version is refused on any node with its keys', async () => {
    for (const [index, node] of nodes.entries()) {
      const prefix = `first-${index}`;
      let n = 0;
      // A node rejects keys in slots of other nodes.
      while (!(await sendToRedis(node.port, 'SET', `${prefix}:doc:keys:${n}`, '{}')).startsWith('+OK')) n += 1;
      expect((await openErrorOf(open(prefix))).message).to.match(EARLIER);
    }
  });
});
