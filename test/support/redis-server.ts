import { ask, findProgram, freePort, makeDataFolder, startServer, type TestServer } from './server-process.ts';

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
      ...cluster,
    ],
    isReady: async () => (await askRedis(port, 'PING')).startsWith('+PONG'),
  });
  return startServer(`redis://127.0.0.1:${port}`, port, command, data.remove);
}

/** Sends one command and answers the raw reply: for what the store itself must not do, such as FLUSHALL. */
export function askRedis(port: number, ...words: readonly string[]): Promise<string> {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return ask(port, `*${words.length}\r\n${parts.join('')}`);
}
