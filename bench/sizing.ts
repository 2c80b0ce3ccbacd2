/**
 * Measures resources of a gateway for docs/measurements.md. Memory of an idle process and of each open stream; CPU per call
 * by store, per chunk, and per TLS connection. Takes less than two minutes.
 *
 *     npm run bench:sizing
 *
 * Measures CPU rather than throughput: calls per second of one core follow from it, even on a shared machine.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { createSelfSigned } from '../test/support/identity/self-signed.ts';
import type { TestServer } from '../test/support/processes/server-process.ts';
import { POSTGRES, startPostgresServer } from '../test/support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../test/support/stores/redis-server.ts';
import { describeMachine } from './machine.ts';
import { type Case, measureCase, type Sample } from './measure.ts';
import { median } from './numbers.ts';
import { cpuMicros } from './proc.ts';
import { forkProgram, LOAD_CORES, stopAll } from './programs.ts';
import type { Upstreams } from './targets/target.ts';
import { tollgate } from './targets/tollgate.ts';
import { chatRequest } from './wires.ts';

const ENDLESS = 1_000_000;
const HANDSHAKES = 200;

const base = {
  reference: 'sqlite',
  connections: 32,
  rounds: 5,
  windowMs: 1000,
  warmUp: 15_000,
  request: { wire: 'openai', kind: 'json', body: chatRequest(2048, 'm-0-0', false) },
} as const;
const streaming = (intervalMs: number) =>
  ({ wire: 'openai', kind: 'stream', body: chatRequest(500, `m-${ENDLESS}-${intervalMs}`, true) }) as const;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-sizing-'));
const servers: TestServer[] = [];

/** URLs of the available stores, by name. */
async function startStores(): Promise<Readonly<Record<string, string>>> {
  if (REDIS_SERVER) servers.push(await startRedisServer());
  if (POSTGRES) servers.push(await startPostgresServer());
  const urls = servers.map(({ url }) => [url.split(':', 1)[0] ?? '', url] as const);
  return { sqlite: 'sqlite:./data', ...Object.fromEntries(urls) };
}

/** Samples of all rounds of a case, by target. */
async function measure(which: Case, upstreams: Upstreams): Promise<Readonly<Record<string, readonly Sample[]>>> {
  const { targets } = await measureCase(which, upstreams, say);
  return Object.fromEntries(
    targets.map(({ name, samples, error }) => {
      if (error !== undefined) throw new Error(`${which.id}: ${error}`);
      return [name, samples];
    }),
  );
}

/** CPU of the gateway for a new TLS connection and one request on it, in microseconds, round by round. */
async function measureHandshakes(upstreams: Upstreams): Promise<readonly Sample[]> {
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
    const samples: Sample[] = [];
    for (let round = 0; round < base.rounds; round += 1) {
      const before = cpuMicros(gateway.pid);
      await all(HANDSHAKES);
      samples.push({ cpuUs: (cpuMicros(gateway.pid) - before) / HANDSHAKES });
    }
    return samples;
  } finally {
    await gateway.stop();
  }
}

/** Median of some rounds, with their range. */
function describe(samples: readonly Sample[] = [], field: keyof Sample, unit: string): string {
  const values = samples.flatMap((sample) => sample[field] ?? []);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const range = values.length > 1 ? ` (${least.toFixed(0)}–${most.toFixed(0)})` : '';
  return `${median(values).toFixed(0)} ${unit}${range}`;
}

async function main(): Promise<void> {
  const machine = describeMachine();
  const upstream = await forkProgram<number>('./upstream.js', [], { cores: LOAD_CORES });
  const url = `http://127.0.0.1:${upstream.ready}`;
  const upstreams = { folder, json: url, stream: url };
  const stores = Object.entries(await startStores()).map(([name, store]) => tollgate(name, `store ${name}`, { store }));
  const one = stores.slice(0, 1);
  const idle = await measure(
    { ...base, id: 'idle', title: 'a start', measures: 'boot', targets: one, rounds: 2 },
    upstreams,
  );
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
  const handshakes = await measureHandshakes(upstreams);
  const rows = [
    ['memory of a process that just started', describe(idle['sqlite'], 'rssMb', 'MB')],
    ...Object.entries(calls).map(([name, samples]) => [`memory under load, ${name}`, describe(samples, 'rssMb', 'MB')]),
    ['memory of an open stream', describe(open['sqlite'], 'kbEach', 'KB')],
    ...Object.entries(calls).map(([name, samples]) => [
      `CPU of a call of 2 KB, ${name}`,
      describe(samples, 'cpuUs', 'µs'),
    ]),
    ['CPU of a chunk of a stream', describe(chunks['sqlite'], 'cpuUs', 'µs')],
    ['CPU of a new connection with TLS and its first request', describe(handshakes, 'cpuUs', 'µs')],
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
