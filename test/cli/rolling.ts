import { writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { type Running, startCli } from '../support/processes/cli.ts';
import { until } from '../support/wait.ts';

/** A worker of the sources compiles itself at its start, which takes minutes on a busy machine. */
const BOUND_MS = 300_000;

/** Plugin that returns the process id of a worker. */
const TELLS_PID = `export default { name: 'pid', kind: 'policy', apiVersion: 1, setup(api) {
  api.route({ method: 'GET', path: '/test/pid', summary: 'Process id', auth: 'none', responses: { 200: 'The id.' },
    handler(ctx) { ctx.body = String(process.pid); } });
} };`;

/** Gateway of two workers, which tests stop or kill while clients connect. */
export interface RollingGateway {
  readonly running: Running;
  readonly port: number;
  /** Opens a connection and sends one request; returns the body or the error. */
  connect(): Promise<string>;
  /** Waits until two workers respond; returns their process ids. */
  workers(): Promise<readonly number[]>;
}

export async function startRolling(folder: string, server: object = {}): Promise<RollingGateway> {
  const config = {
    server: { host: '127.0.0.1', port: 0, workers: 2, drainDelay: '200ms', drainTimeout: '5s', ...server },
    ...{ store: 'sqlite:./data', logging: { level: 'error', format: 'json' }, providers: { echo: {} } },
    ...{ auth: { 'api-key': {} }, policies: { overload: false }, plugins: ['./pid.mjs'] },
  };
  writeFileSync(path.join(folder, 'pid.mjs'), TELLS_PID);
  writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
  const running = startCli(['start'], folder);
  const [, port = ''] = await running.seen(/listens on http:\S+:(\d+)/);
  const connect = (): Promise<string> => getPid(Number(port));
  return {
    running,
    port: Number(port),
    connect,
    async workers() {
      const seen = new Set<number>();
      const look = async (): Promise<boolean> => seen.add(Number(await connect())).size >= 2;
      await until('two workers answer', look, BOUND_MS);
      return [...seen];
    },
  };
}

function getPid(port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = net.connect({ host: '127.0.0.1', port });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.setTimeout(BOUND_MS, () => socket.destroy(new Error('no response')));
    socket.on('data', (bytes) => {
      text += String(bytes);
    });
    socket.on('close', () =>
      resolve(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n(\d+)$/.exec(text)?.[1] ?? `cut: ${text.slice(0, 40)}`),
    );
    socket.write('GET /test/pid HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  });
}

/** Kills idle workers and opens connections at the same moment; returns the failures. */
export async function connectThroughKills(
  gateway: RollingGateway,
  { rounds, isAll, connections }: { readonly rounds: number; readonly isAll: boolean; readonly connections: number },
): Promise<readonly string[]> {
  const failed: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const pids = await gateway.workers();
    for (const pid of isAll ? pids : pids.slice(0, 1)) process.kill(pid, 'SIGKILL');
    const responses = await Promise.all(Array.from({ length: connections }, () => gateway.connect()));
    failed.push(...responses.filter((response) => !/^\d+$/.test(response)));
  }
  return failed;
}

/** Stops the workers one by one while connections are opened continuously; returns their number and the failures. */
export async function connectThroughStops(
  gateway: RollingGateway,
  rounds: number,
): Promise<{ readonly made: number; readonly failed: readonly string[] }> {
  const failed: string[] = [];
  let made = 0;
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      const response = await gateway.connect();
      made += 1;
      if (!/^\d+$/.test(response)) failed.push(response);
    }
  };
  const clients = Array.from({ length: 4 }, client);
  for (let round = 0; round < rounds; round += 1) {
    const [pid = 0] = await gateway.workers();
    process.kill(pid, 'SIGTERM');
    await until('it has ended', () => !isAlive(pid), BOUND_MS);
  }
  isOver = true;
  await Promise.all(clients);
  return { made, failed };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
