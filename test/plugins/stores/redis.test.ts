import { openRedis } from '../../../plugins/stores/redis/index.ts';
import { testStore } from '../../conformance/store.ts';
import { REDIS_SERVER, startRedisCluster, startRedisServer } from '../../support/redis-server.ts';
import { describeWith, type TestServer } from '../../support/server-process.ts';

describeWith('redis store', { 'redis-server': REDIS_SERVER }, () => {
  let server: TestServer;
  before(async () => {
    server = await startRedisServer();
  });
  after(() => server?.close());

  testStore('redis', () => openRedis({ url: server.url, timeoutMs: 1000 }));
});

describeWith('redis store on a cluster of three nodes', { 'redis-server': REDIS_SERVER }, () => {
  let nodes: readonly TestServer[] = [];
  before(async function () {
    this.timeout(40_000);
    nodes = await startRedisCluster();
  });
  after(() => Promise.all(nodes.map((node) => node.close())));

  testStore('redis cluster', () => openRedis({ url: nodes[0]?.url ?? '', cluster: true, timeoutMs: 1000 }));
});
