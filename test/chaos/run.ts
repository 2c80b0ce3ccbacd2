/**
 * Chaos test: two gateways on one Redis under load, in front of six vendors that stop, hang, limit, fail, send nonsense
 * and recover. Meanwhile gateways are reloaded, workers are killed and clocks jump. `npm run chaos -- --minutes 10
 * --rate 100 --seed 1`.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openRedis } from '../../plugins/stores/redis/index.ts';
import { pause } from '../support/processes/server-process.ts';
import { agent } from './client.ts';
import { runDeeds } from './deeds.ts';
import { install, USER } from './installation.ts';
import { judge } from './judge.ts';
import { startLoad } from './load.ts';
import { makePlan, spellAt } from './plan.ts';
import { countConnections, measureFamily } from './processes.ts';
import { createRandom } from './random.ts';
import { formatReport, writePage } from './report.ts';
import { startChaosVendor } from './vendor.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const options = {
  minutes: Number(values.minutes),
  rate: Number(values.rate),
  seed: Number(values.seed),
};
const TICK_MS = 50;
const SAMPLE_MS = 10_000;
/** Time limit for settling reservations of killed workers, and for closing idle connections. */
const AFTERMATH_MS = 90_000;

const lengthMs = options.minutes * 60_000;
const plan = makePlan(options.seed, lengthMs);
const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-chaos-'));
let begun = Number.POSITIVE_INFINITY;
const clock = (): number => Math.max(0, performance.now() - begun);

const vendors = await Promise.all(
  plan.spells.map((spells, at) =>
    startChaosVendor(() => spellAt(spells, clock()), clock, createRandom(options.seed * 1000 + at)),
  ),
);
const installation = await install(
  folder,
  vendors.map(({ port }) => port),
);
const measure = () => ({
  atMs: clock(),
  load: os.loadavg()[0] ?? 0,
  nodes: installation.nodes.map(({ pid }) => measureFamily(pid)),
});

begun = performance.now();
const samples = [measure()];
const load = startLoad({ ...options, lengthMs, clock, nodes: installation.nodes, key: installation.key });
const deeds = runDeeds(plan.deeds, installation, clock, createRandom(options.seed + 7));
let sampledAt = 0;
while (clock() < lengthMs) {
  await Promise.all(vendors.map((vendor, at) => vendor.become(spellAt(plan.spells[at] ?? [], clock()).mood)));
  if (clock() - sampledAt >= SAMPLE_MS) {
    sampledAt = clock();
    samples.push(measure());
    const moods = vendors.map((_, at) => spellAt(plan.spells[at] ?? [], clock()).mood).join(' ');
    console.log(`${Math.round(clock() / 1000)} s  ${load.line()}  ${deeds.line()}  ${moods}`);
  }
  await pause(TICK_MS);
}
await Promise.all(vendors.map((vendor) => vendor.become('live')));
const calls = await load.end();
const done = await deeds.end();
console.log('all calls have ended; waiting for the books and the connections');

const store = await openRedis({ url: installation.redis.url });
const until = performance.now() + AFTERMATH_MS;
await agent.close();
let left = await whatIsLeft();
while ((left.held > 0 || left.toVendors > 0 || left.fromClients > 0) && performance.now() < until) {
  await pause(500);
  left = await whatIsLeft();
}
samples.push(measure());

const verdict = await judge({ plan, calls, vendors, store, nodes: installation.nodes, done, left, samples });
await store.close();
const exits = await Promise.all(installation.nodes.map((node) => node.stop()));
const report = formatReport(options, verdict, exits);
console.log(report.text);
if (values.write) writePage(report.page);
await Promise.all(vendors.map((vendor) => vendor.close()));
await installation.redis.close();
if (values.keep) {
  await writeFile(path.join(folder, 'evidence.json'), JSON.stringify({ plan, done, calls, verdict }));
  console.log(folder);
} else await rm(folder, { recursive: true, force: true });
process.exit(report.isGood ? 0 : 1);

async function whatIsLeft() {
  return {
    held: (await store.ledger.balance(USER)).held,
    toVendors: vendors.reduce((sum, { openConnections }) => sum + openConnections, 0),
    fromClients: installation.nodes.reduce((sum, { url }) => sum + countConnections(Number(new URL(url).port)), 0),
  };
}
