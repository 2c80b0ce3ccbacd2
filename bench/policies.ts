/**
 * Measures the cost of auth, limits and the ledger by store: CPU of the gateway's process (user + system) and time, per
 * call.
 *
 *     npm run bench:policies [-- --quick --only memory,sqlite]
 *
 * Compiled, because tsx names every function at run time. Calls run through a generation in this process, without HTTP
 * and with a provider that responds immediately, so that the figures include nothing else. Every round runs each store
 * and each set of policies once, interleaved. A figure is the median of the rounds, less that of the same call without
 * policies.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { loadConfig } from '../config/load-config.ts';
import type { Principal } from '../contract/call.ts';
import { Call } from '../core/calls/call.ts';
import type { CallDeps } from '../core/calls/call-deps.ts';
import { completeChat } from '../core/calls/chat.ts';
import { createGeneration } from '../core/calls/generation.ts';
import { createLogger } from '../core/logger.ts';
import { openFoundation } from '../core/plugins/foundation.ts';
import type { TestServer } from '../test/support/processes/server-process.ts';
import { POSTGRES, startPostgresServer } from '../test/support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../test/support/stores/redis-server.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const ROUNDS = values.quick ? 5 : 15;
const CALLS = values.quick ? 1000 : 3000;
const PARALLEL = 32;

const RATES = { rpm: 1_000_000_000, tpm: 1_000_000_000_000 };
/** From no policies to all; figures are differences to the first set. */
const SETS: Readonly<Record<string, object>> = {
  none: { billing: 'off' },
  auth: { billing: 'off', auth: true },
  'auth, ledger': { billing: 'track', auth: true },
  'auth, ledger, three windows': {
    billing: 'track',
    auth: true,
    budgets: [
      { name: 'h', amount_usd: 999_999, every: 'hour', timezone: 'Australia/Lord_Howe' },
      { name: 'd', amount_usd: 999_999, every: 'day', timezone: 'Europe/Berlin' },
      { name: 'm', amount_usd: 999_999, soft_usd: 999_998, every: 'month', timezone: 'America/New_York' },
    ],
  },
  'auth, ledger, limits': { billing: 'track', auth: true, plans: { p: RATES }, defaultPlan: 'p' },
  'auth, ledger, limits, places': {
    billing: 'track',
    auth: true,
    plans: { p: { ...RATES, concurrency: 1000 } },
    defaultPlan: 'p',
  },
};

interface Subject {
  /** Created key, if it was the first on its store. */
  readonly key: string | undefined;
  call(): Promise<void>;
  /** Flushes deferred work of the store, which is part of the cost. */
  finish(): Promise<unknown>;
  close(): Promise<void>;
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-policies-'));
const log = createLogger({ level: 'silent', destination: new Writable() });
const REQUEST = { model: 'echo', max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hello there, you.' }] };
const ANONYMOUS: Principal = Object.freeze({ credential: 'key', userId: 'local', account: 'local', keyId: 'k' });

/** Starts a gateway without its server. */
async function startSubject(name: string, store: string, set: object, known: string | undefined): Promise<Subject> {
  const { auth, ...config } = set as { auth?: boolean };
  const own = path.join(folder, name.replace(/\W+/g, '-'));
  const configPath = `${own}.json`;
  const providers = { echo: { prices: { '*': { input: 1, output: 2 } } } };
  const text = { store, providers, auth: { 'api-key': { bootstrap: true } }, ...config };
  writeFileSync(configPath, JSON.stringify(text));
  const loaded = await loadConfig({ cwd: folder, env: {}, configPath });
  const foundation = await openFoundation(loaded, log);
  const generation = await createGeneration(foundation, loaded);
  await generation.ready();
  const key = generation.registry.announcements.find(({ use }) => use === 'key')?.value;
  const credential = auth ? (key ?? known) : undefined;
  return {
    key,
    call: () => call(generation.deps, credential),
    async finish() {
      await generation.deps.pending.idle(30_000);
      await foundation.store.ledger.balance('local');
    },
    async close() {
      await generation.deps.pending.idle(30_000);
      await generation.close();
      await foundation.close();
    },
  };
}

async function call(deps: CallDeps, credential: string | undefined): Promise<void> {
  const principal = credential ? await authenticate(deps, credential) : ANONYMOUS;
  if (!principal) throw new Error('the key of the bench was refused');
  const targets = [{ provider: 'echo', model: 'echo' }];
  await completeChat(deps, new Call(deps, 'chat', REQUEST, { requestId: 'req_bench', principal, targets }));
}

async function authenticate(deps: CallDeps, credential: string): Promise<Principal | undefined> {
  return deps.partsOf('chat').hooks.authenticate?.({
    ...{ credential, bearer: true, now: Date.now(), method: 'POST', path: '/v1/chat/completions' },
    ...{ headers: {}, address: '127.0.0.1', rawBody: async () => new Uint8Array(), beforeLookup: () => undefined },
  });
}

/** Calls over sockets start in separate turns of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function measure({ call: one, finish }: Subject, calls: number): Promise<{ cpu: number; wall: number }> {
  let left = calls;
  const cpu = process.cpuUsage();
  const began = performance.now();
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      while (left-- > 0) {
        await nextTurn();
        await one();
      }
    }),
  );
  await finish();
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / calls, wall: ((performance.now() - began) * 1000) / calls };
}

const isWanted = (store: string): boolean => values.only === undefined || values.only.split(',').includes(store);
const stores: Record<string, (name: string) => string> = {};
if (isWanted('memory')) stores['memory'] = () => 'memory:';
if (isWanted('sqlite')) stores['sqlite'] = (name) => `sqlite:./${name.replace(/\W+/g, '-')}`;
const servers: TestServer[] = [];
for (const [name, program, start] of [
  ['redis', REDIS_SERVER, startRedisServer],
  ['postgres', POSTGRES, startPostgresServer],
] as const) {
  if (!program || !isWanted(name)) continue;
  const server = await start();
  servers.push(server);
  stores[name] = () => server.url;
}

const subjects: { readonly store: string; readonly set: string; readonly subject: Subject; readonly calls: number }[] =
  [];
for (const [store, address] of Object.entries(stores)) {
  // On a database server all sets share a store, whose first key is created once.
  let key: string | undefined;
  for (const [set, config] of Object.entries(SETS)) {
    const name = `${store} ${set}`;
    const subject = await startSubject(name, address(name), config, key);
    key ??= subject.key;
    subjects.push({ store, set, calls: store === 'postgres' ? Math.ceil(CALLS / 10) : CALLS, subject });
  }
}

const samples = new Map<string, { cpu: number[]; wall: number[] }>();
for (let round = 0; round <= ROUNDS; round += 1) {
  process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  for (const { store, set, subject, calls } of subjects) {
    const { cpu, wall } = await measure(subject, calls);
    // Rounds before the first one warm up.
    if (round === 0) continue;
    const key = `${store}|${set}`;
    const known = samples.get(key) ?? { cpu: [], wall: [] };
    samples.set(key, known);
    known.cpu.push(cpu);
    known.wall.push(wall);
  }
}

process.stdout.write(
  '| store | policies | µs CPU / call | more than none | µs elapsed / call |\n|---|---|---|---|---|\n',
);
for (const { store, set } of subjects) {
  const own = samples.get(`${store}|${set}`);
  const none = samples.get(`${store}|none`);
  if (!own || !none) continue;
  const more = median(own.cpu) - median(none.cpu);
  process.stdout.write(
    `| ${store} | ${set} | ${median(own.cpu).toFixed(1)} | ${set === 'none' ? '' : more.toFixed(1)} | ${median(own.wall).toFixed(1)} |\n`,
  );
}
for (const { subject } of subjects) await subject.close();
for (const server of servers) await server.close();
rmSync(folder, { recursive: true, force: true });
