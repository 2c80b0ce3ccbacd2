import {
  findProgram,
  freePort,
  makeDataFolder,
  send,
  startServer,
  type TestServer,
} from '../processes/server-process.ts';

/** Path of `redis-server`, or undefined if it is not installed. */
export const REDIS_SERVER = findProgram('redis-server', ['/usr/local/bin', '/usr/bin', '/opt/homebrew/bin']);

/** Private Redis with an append-only file: acknowledged writes survive a SIGKILL. */
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
      // An acknowledged write is in the kernel, and no fsync delays it on a busy disk.
      '--appendfsync',
      'no',
      ...cluster,
    ],
    isReady: async () => (await sendToRedis(port, 'PING')).startsWith('+PONG'),
  });
  return startServer(`redis://127.0.0.1:${port}`, port, command, data.remove);
}

/** Cluster of three masters, the minimum for keys on different nodes. Returns its nodes. */
export async function startRedisCluster(): Promise<readonly TestServer[]> {
  const nodes = await Promise.all([0, 1, 2].map(() => startRedisServer({ cluster: true })));
  const borders = [0, 5461, 10923, 16384];
  for (const [index, node] of nodes.entries()) {
    await sendToRedis(
      node.port,
      'CLUSTER',
      'ADDSLOTSRANGE',
      String(borders[index]),
      String((borders[index + 1] ?? 0) - 1),
    );
    // Epochs must differ, otherwise the nodes need time to agree.
    await sendToRedis(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    if (index > 0) await sendToRedis(node.port, 'CLUSTER', 'MEET', '127.0.0.1', String(nodes[0]?.port));
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
  const info = await sendToRedis(port, 'CLUSTER', 'INFO');
  return (
    info.includes('cluster_state:ok') &&
    info.includes('cluster_known_nodes:3') &&
    info.includes('cluster_slots_ok:16384')
  );
}

/** Sends one command and returns the raw reply, for commands that the store itself must not send, such as FLUSHALL. */
export function sendToRedis(port: number, ...words: readonly string[]): Promise<string> {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return send(port, `*${words.length}\r\n${parts.join('')}`);
}
