import { expect } from 'chai';
import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { NOW, reservation, testStore } from '../../conformance/store.ts';
import { createSilentLog } from '../../support/log.ts';
import { describeWith, send, type TestServer } from '../../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis, startRedisCluster, startRedisServer } from '../../support/stores/redis-server.ts';

describeWith('redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());

  it('refuses to open with a wrong password, without revealing the URL', async () => {
    await sendToRedis(server.port, 'CONFIG', 'SET', 'requirepass', 'right');
    const url = (password: string) => `redis://:${password}@127.0.0.1:${server.port}`;
    for (const wrong of [url('wrong'), server.url]) {
      const error = await openRedis({ url: wrong }).catch((reason) => reason);
      expect(error.code).to.equal('store_unavailable');
      expect(error.message).to.match(/rejects the user, password or database/);
      expect(error.message).not.to.match(/127\.0\.0\.1|wrong/);
    }
    const store = await openRedis({ url: url('right') });
    await store.health();
    await store.close();
    await send(server.port, 'AUTH right\r\nCONFIG SET requirepass ""\r\n');
  });

  it('warns of settings that lose money', async () => {
    await sendToRedis(server.port, 'CONFIG', 'SET', 'appendonly', 'no');
    const log = createSilentLog();
    await (await openRedis({ url: server.url, log })).close();
    await sendToRedis(server.port, 'CONFIG', 'SET', 'appendonly', 'yes');
    expect(log.lines.map(({ message }) => message).join()).to.match(/appendonly is off/);
  });

  it('sweeps past manually deleted reservations', async () => {
    const store = await openRedis({ url: server.url, prefix: 'deleted' });
    const floor = Number.NEGATIVE_INFINITY;
    for (let n = 0; n < 120; n++) {
      await store.ledger.reserve(reservation({ account: 'a', requestId: `r${n}`, floor, expiresAt: NOW }));
    }
    await sendToRedis(
      server.port,
      'EVAL',
      "for _, k in ipairs(redis.call('KEYS', 'deleted:*:request:*')) do redis.call('DEL', k) end",
      '0',
    );
    await store.ledger.reserve(reservation({ account: 'a', requestId: 'kept', floor, expiresAt: NOW + 1 }));
    expect(await store.ledger.sweep(NOW + 2)).to.equal(1);
    expect((await store.ledger.balance('a')).spent).to.equal(10);
    await store.close();
  });

  it('merges the oldest entries of an account into one when it keeps no more', async () => {
    const store = await openRedis({ url: server.url, prefix: 'short', keepEntries: 5 });
    for (let n = 0; n < 12; n++) await store.ledger.credit('a', `c${n}`, n, 'top-up', n);
    const entries = await store.ledger.entries('a', { limit: 100 });
    expect(entries.map(({ ref, amount }) => [ref, amount])).to.deep.equal([
      ['c11', 11],
      ['c10', 10],
      ['c9', 9],
      ['c8', 8],
      ['', 28],
    ]);
    expect(entries.at(-1)?.reason).to.equal('carried forward');
    expect(
      (await store.ledger.entries('a', { limit: 2, after: entries[1]?.id ?? '' })).map(({ ref }) => ref),
    ).to.deep.equal(['c9', 'c8']);
    expect((await store.ledger.balance('a')).balance).to.equal(66);
    await store.close();
  });

  testStore({
    ...{ name: 'redis', keeps: true, shared: true },
    open: () => openRedis({ url: server.url, timeoutMs: 10_000 }),
    module: () => new URL(`../../fixtures/stores/open-redis.ts?url=${encodeURIComponent(server.url)}`, import.meta.url),
  });
});

describeWith('redis store on a cluster of three nodes', { 'redis-server': REDIS_SERVER }, () => {
  let nodes: readonly TestServer[] = [];
  before(async () => {
    nodes = await startRedisCluster();
  });
  after(() => Promise.all(nodes.map((node) => node.close())));

  testStore({
    ...{ name: 'redis cluster', keeps: true, shared: true },
    open: () => openRedis({ url: nodes[0]?.url ?? '', cluster: true, timeoutMs: 10_000 }),
  });
});
