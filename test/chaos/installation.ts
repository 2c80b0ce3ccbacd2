import path from 'node:path';
import { freePort, type TestServer } from '../support/processes/server-process.ts';
import { startRedisServer } from '../support/stores/redis-server.ts';
import { PRICE } from './charges.ts';
import { type ChaosNode, startNode, tollgate, WORKERS, writeNode } from './node.ts';
import { NODES } from './plan.ts';

/** The clocks of every vendor, as an operator of fast models would set them. */
export const CLOCKS = Object.freeze({ connect: '1s', firstByte: '5s', firstToken: '3s', idle: '5s', total: '20s' });
/** How long a call waits for a vendor that hangs; clocks end up to half a second late. */
export const CLOCK_MS = Object.freeze({ whole: 5_500, stream: 3_500 });

/** What clients ask for: each alias has all vendors, by another rule. */
export const ALIASES = ['in-order', 'by-weight', 'by-latency'] as const;

/** Soon, so that what a killed worker held is settled before a run has ended. */
const ACCOUNTS = { longestCall: '5s', holdMargin: '5s', sweepEvery: '1s' };
/** Who calls, and pays. */
export const USER = 'chaos';
const CREDIT_USD = '10000';
const DRAIN = '30s';
/** As behind a load balancer: a worker that was busy for longer would close connections under requests that wait there. */
const KEEP_ALIVE = '65s';
/** Gateways of one store know each other's keys by it. */
const PEPPER = 'a pepper that is shared by both gateways of a chaos run';

export interface Installation {
  readonly redis: TestServer;
  readonly nodes: readonly ChaosNode[];
  readonly key: string;
  /** Has a gateway read a file that differs from the one before. */
  reload(node: number, by: 'signal' | 'command'): Promise<void>;
}

/** Two gateways with two workers each over one Redis, before these vendors. */
export async function install(folder: string, ports: readonly number[]): Promise<Installation> {
  const redis = await startRedisServer();
  const listens = await Promise.all(Array.from({ length: NODES }, () => freePort()));
  const configs = listens.map((port) => (generation: number) => configOf(port, redis.url, ports, generation));
  const folders = listens.map((_, at) => path.join(folder, `gateway-${at}`));
  for (const [at, own] of folders.entries()) await writeNode(own, configs[at]?.(0) ?? {});
  const [first = ''] = folders;
  const made = JSON.parse(await tollgate(first, 'keys', 'create', '--user', USER, '--name', 'chaos', '--json')) as {
    data: { api_key: string };
  };
  const key = made.data.api_key;
  await tollgate(first, 'accounts', 'credit', USER, CREDIT_USD);
  const nodes = await Promise.all(folders.map(startNode));
  const generations = nodes.map(() => 0);
  return {
    ...{ redis, nodes, key },
    async reload(at, by) {
      generations[at] = (generations[at] ?? 0) + 1;
      await nodes[at]?.reload(configs[at]?.(generations[at] ?? 0) ?? {}, by);
    },
  };
}

function configOf(port: number, store: string, ports: readonly number[], generation: number): object {
  const names = ports.map((_, at) => `vendor-${at}`);
  // Another first target and other weights with each generation.
  const turned = names.map((_, at) => names[(at + generation) % names.length] ?? '');
  return {
    server: { port, workers: WORKERS, drainTimeout: DRAIN, keepAlive: KEEP_ALIVE },
    ...{
      store,
      billing: 'enforce',
      auth: { 'api-key': { pepper: PEPPER } },
      logging: { level: 'info', format: 'json' },
    },
    providers: Object.fromEntries(
      names.map((name, at) => [
        name,
        {
          ...{
            plugin: 'openai-compatible',
            baseUrl: `http://127.0.0.1:${ports[at]}/v1`,
            apiKey: `sk-chaos-${at}-0123456789`,
          },
          ...{
            models: ['*'],
            prices: { '*': { input: PRICE.input / 1000, output: PRICE.output / 1000 } },
            timeouts: CLOCKS,
          },
        },
      ]),
    ),
    models: {
      'in-order': turned.map((name) => `${name}/m`),
      'by-weight': {
        strategy: 'weighted',
        targets: turned.map((name, at) => ({ to: `${name}/m`, weight: 1 + ((at + generation) % 3) })),
      },
      'by-latency': { strategy: 'least-latency', targets: names.map((name) => `${name}/m`) },
    },
    plans: { many: { rpm: 1_000_000, concurrency: 10_000 } },
    defaultPlan: 'many',
    plugins: ['./calls.mjs'],
    // A busy test machine is no reason to refuse.
    policies: { overload: false, accounts: ACCOUNTS },
  };
}
