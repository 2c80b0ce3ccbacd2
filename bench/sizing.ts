/**
 * What a gateway needs, for docs/sizing.md: memory of a process that idles, and of each open stream; CPU of a call by store, of a chunk,
 * and of a connection with TLS. Under two minutes.
 *
 *   npm run bench:sizing
 *
 * It is CPU that counts: how many calls a second one processor takes follows from it, also where others use the machine.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { POSTGRES, startPostgresServer } from '../test/support/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../test/support/redis-server.ts';
import { createSelfSigned } from '../test/support/self-signed.ts';
import type { TestServer } from '../test/support/server-process.ts';
import { describeMachine } from './machine.ts';
import { type Case, measureCase, type Sample } from './measure.ts';
import { median } from './numbers.ts';
import { cpuMicros } from './proc.ts';
import { forkProgram, LOAD_CORES, stopAll } from './programs.ts';
import type { Upstreams } from './targets/target.ts';
import { tollgate } from './targets/tollgate.ts';
import { chatRequest } from './wires.ts';

const ENDLESS = 1_000_000;
const HANDSHAKES = 300;

const base = {
  reference: 'sqlite',
  connections: 32,
  rounds: 3,
  windowMs: 1500,
  warmUp: 15_000,
  request: { wire: 'openai', kind: 'json', body: chatRequest(2048, 'm-0-0', false) },
} as const;
const streaming = (intervalMs: number) =>
  ({ wire: 'openai', kind: 'stream', body: chatRequest(500, `m-${ENDLESS}-${intervalMs}`, true) }) as const;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-sizing-'));
const servers: TestServer[] = [];

/** The URLs of the stores that can be had here, by name. */
async function startStores(): Promise<Readonly<Record<string, string>>> {
  if (REDIS_SERVER) servers.push(await startRedisServer());
  if (POSTGRES) servers.push(await startPostgresServer());
  const urls = servers.map(({ url }) => [url.split(':', 1)[0] ?? '', url] as const);
  return { sqlite: 'sqlite:./data', ...Object.fromEntries(urls) };
}

/** The medians of what a case measured, by target. */
async function measure(which: Case, upstreams: Upstreams): Promise<Readonly<Record<string, Sample>>> {
  const { targets } = await measureCase(which, upstreams, say);
  return Object.fromEntries(
    targets.map(({ name, samples, error }) => {
      if (error !== undefined) throw new Error(`${which.id}: ${error}`);
      const of = (field: keyof Sample): number => median(samples.map((sample) => sample[field] ?? Number.NaN));
      return [name, { cpuUs: of('cpuUs'), rssMb: of('rssMb'), kbEach: of('kbEach') }];
    }),
  );
}

/** CPU of the gateway for a new connection with TLS and one request on it, in microseconds. */
async function measureHandshakes(upstreams: Upstreams): Promise<number> {
  const { cert, key } = createSelfSigned();
  const files = { cert: path.join(folder, 'tls.crt'), key: path.join(folder, 'tls.key') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const gateway = await tollgate('tls', 'with TLS', { tls: files }).start(upstreams);
  const connect = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = tls.connect({ host: '127.0.0.1', port: gateway.port, ca: cert, servername: 'localhost' }, () =>
        socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'),
      );
      socket.on('error', reject).on('end', resolve).resume();
    });
  const all = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) await connect();
  };
  try {
    await all(HANDSHAKES);
    const before = cpuMicros(gateway.pid);
    await all(HANDSHAKES);
    return (cpuMicros(gateway.pid) - before) / HANDSHAKES;
  } finally {
    await gateway.stop();
  }
}

async function main(): Promise<void> {
  const machine = describeMachine();
  const upstream = await forkProgram<number>('./upstream.js', [], { cores: LOAD_CORES });
  const url = `http://127.0.0.1:${upstream.ready}`;
  const upstreams = { folder, json: url, stream: url };
  const stores = Object.entries(await startStores()).map(([name, store]) => tollgate(name, `store ${name}`, { store }));
  const one = stores.slice(0, 1);
  const idle = await measure({ ...base, id: 'idle', title: 'a start', measures: 'boot', targets: one, rounds: 1 }, upstreams);
  const calls = await measure(
    { ...base, id: 'calls', title: 'calls', measures: 'requests', targets: stores },
    upstreams,
  );
  const chunks = await measure(
    {
      ...base,
      id: 'chunks',
      title: 'streams',
      measures: 'chunks',
      targets: one,
      request: streaming(20),
      connections: 100,
    },
    upstreams,
  );
  const open = await measure(
    {
      ...base,
      id: 'open',
      title: 'open',
      measures: 'memory',
      targets: one,
      request: streaming(1000),
      connections: 1000,
      rounds: 1,
    },
    upstreams,
  );
  const handshake = await measureHandshakes(upstreams);
  const perSecond = (cpuUs = Number.NaN): string => Math.round(1e6 / cpuUs).toLocaleString('en-US');
  const rows = [
    ...Object.entries(idle).map(([name, { rssMb }]) => [
      `memory of a process that just started, ${name}`,
      `${rssMb?.toFixed(0)} MB`,
    ]),
    ...Object.entries(calls).map(([name, { rssMb }]) => [
      `the same under load, ${name}`,
      `${rssMb?.toFixed(0)} MB`,
    ]),
    ['memory of an open stream', `${open['sqlite']?.kbEach?.toFixed(0)} KB`],
    ...Object.entries(calls).map(([name, { cpuUs }]) => [
      `a call of 2 KB, ${name}`,
      `${cpuUs?.toFixed(0)} µs of CPU: ${perSecond(cpuUs)} a second on one processor`,
    ]),
    [
      'a chunk of a stream',
      `${chunks['sqlite']?.cpuUs?.toFixed(0)} µs of CPU: ${perSecond(chunks['sqlite']?.cpuUs)} a second`,
    ],
    ['a new connection with TLS', `${handshake.toFixed(0)} µs of CPU: ${perSecond(handshake)} a second`],
  ];
  process.stdout.write(
    `${machine.cpu}, ${machine.cores} processors, load ${machine.loadBefore.toFixed(1)}, Node ${process.versions.node}\n\n` +
      `| What | Figure |\n|---|---|\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`,
  );
}

try {
  await main();
} finally {
  await stopAll();
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true, force: true });
}
