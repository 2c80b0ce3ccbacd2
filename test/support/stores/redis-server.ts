import {
  ask,
  findProgram,
  freePort,
  makeDataFolder,
  startServer,
  type TestServer,
} from '../processes/server-process.ts';

/** Where `redis-server` is, or undefined when it is not installed. */
export const REDIS_SERVER = findProgram('redis-server', ['/usr/local/bin', '/usr/bin', '/opt/homebrew/bin']);

/** A Redis of the test's own, with an append-only file: what it acknowledged outlives a SIGKILL. */
export async function startRedisServer(options: { readonly cluster?: boolean } = {}): Promise<TestServer> {
  const port = await freePort();
  const data = makeDataFolder('redis');
  const cluster = options.cluster ? ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'] : [];
  const command = () => ({
    program: REDIS_SERVER ?? 'redis-server',
    args: [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      data.folder,
      '--save',
      '',
      '--appendonly',
      'yes',
      // What it was told is with the kernel when it answers: that a busy disk keeps nobody waiting.
      '--appendfsync',
      'no',
      ...cluster,
    ],
    isReady: async () => (await askRedis(port, 'PING')).startsWith('+PONG'),
  });
  return startServer(`redis://127.0.0.1:${port}`, port, command, data.remove);
}

/** A cluster of three masters, which is the least that has keys on different nodes. Answers its nodes. */
export async function startRedisCluster(): Promise<readonly TestServer[]> {
  const nodes = await Promise.all([0, 1, 2].map(() => startRedisServer({ cluster: true })));
  const borders = [0, 5461, 10923, 16384];
  for (const [index, node] of nodes.entries()) {
    await askRedis(
      node.port,
      'CLUSTER',
      'ADDSLOTSRANGE',
      String(borders[index]),
      String((borders[index + 1] ?? 0) - 1),
    );
    // Epochs must differ, or the nodes argue for a while.
    await askRedis(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    if (index > 0) await askRedis(node.port, 'CLUSTER', 'MEET', '127.0.0.1', String(nodes[0]?.port));
  }
  const deadline = Date.now() + 60_000;
  for (const node of nodes) {
    while (!(await isClusterComplete(node.port))) {
      if (Date.now() > deadline) throw new Error('the cluster did not come together');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return nodes;
}

async function isClusterComplete(port: number): Promise<boolean> {
  const info = await askRedis(port, 'CLUSTER', 'INFO');
  return (
    info.includes('cluster_state:ok') &&
    info.includes('cluster_known_nodes:3') &&
    info.includes('cluster_slots_ok:16384')
  );
}

/** Sends one command and answers the raw reply: for what the store itself must not do, such as FLUSHALL. */
export function askRedis(port: number, ...words: readonly string[]): Promise<string> {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return ask(port, `*${words.length}\r\n${parts.join('')}`);
}
