import path from 'node:path';
import { freePort, type TestServer } from '../support/processes/server-process.ts';
import { startRedisServer } from '../support/stores/redis-server.ts';
import { PRICE } from './charges.ts';
import { type ChaosNode, startNode, tollgate, WORKERS, writeNode } from './node.ts';
import { NODES } from './plan.ts';

/** Timeouts of every vendor, as an operator of fast models would set them. */
export const CLOCKS = Object.freeze({ connect: '1s', firstByte: '5s', firstToken: '3s', idle: '5s', total: '20s' });
/** Wait for a vendor that hangs; timeouts end up to half a second late. */
export const CLOCK_MS = Object.freeze({ whole: 5_500, stream: 3_500 });

/** Models that clients request: each alias has all vendors, with another strategy. */
export const ALIASES = ['in-order', 'by-weight', 'by-latency'] as const;

/** Short times, so that reservations of a killed worker are settled before a run ends. */
const ACCOUNTS = { longestCall: '5s', holdMargin: '5s', sweepEvery: '1s' };
/** User who makes and pays all calls. */
export const USER = 'chaos';
const CREDIT_USD = '10000';
const DRAIN = '30s';
/** As behind a load balancer. With a shorter value, a busy worker would close connections with requests in transit. */
const KEEP_ALIVE = '65s';
/** Gateways on one store need the same pepper to accept each other's keys. */
const PEPPER = 'a pepper that is shared by both gateways of a chaos run';

export interface Installation {
  readonly redis: TestServer;
  readonly nodes: readonly ChaosNode[];
  readonly key: string;
  /** Makes a gateway reload a configuration that differs from the previous one. */
  reload(node: number, by: 'signal' | 'command'): Promise<void>;
}

/** Starts two gateways with two workers each on one Redis, in front of these vendors. */
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
  // Each generation has another first target and other weights.
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
    // A busy test machine must not cause refusals.
    policies: { overload: false, accounts: ACCOUNTS },
  };
}
