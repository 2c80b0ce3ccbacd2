/**
 * What the store costs a request: `npm run bench:stores [-- --quick --servers]`; `--servers` starts a Redis and a
 * Postgres of its own on the loopback. Every round runs each store once, interleaved; printed are medians of the CPU of
 * this process (user + system) and of the time per request. A request is what the limits and accounts policies do:
 * lease a place, take two windows, reserve; then, which nobody waits for, settle, adjust the tokens, give the place back.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Store } from '../core/index.ts';
import { openMemory } from '../plugins/stores/memory/index.ts';
import { openPostgres } from '../plugins/stores/postgres/index.ts';
import { openRedis } from '../plugins/stores/redis/index.ts';
import { openSqlite } from '../plugins/stores/sqlite/index.ts';
import { startPostgresServer } from '../test/support/postgres-server.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { median } from './load/numbers.ts';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, servers: { type: 'boolean', default: false } },
});
const ROUNDS = values.quick ? 3 : 9;
const REQUESTS = values.quick ? 5000 : 20_000;
/** Slow stores run fewer requests a round. */
const SHARE: Readonly<Record<string, number>> = {
  postgres: 0.1,
  redis: 0.5,
  'sqlite, shared by several': 0.5,
  'sqlite, `durability: full`': 0.2,
};
const ACCOUNTS = 100;

const FACTS = {
  operation: 'chat',
  provider: 'openai',
  model: 'gpt-5-mini',
  key: 'k1',
  outcome: 'ok',
  estimated: false,
};
const TOKENS = { prompt_tokens: 500, completion_tokens: 200 };
let next = 0;

/** What a request waits for; it answers what happens after it, which nobody waits for. */
type Request = (store: Store, n: number) => Promise<() => Promise<unknown>>;

/** The parts of a request: only the ledger, or everything. */
const CASES: Readonly<Record<'ledger only' | 'ledger, limits and lease', Request>> = {
  'ledger only': async ({ ledger }, n) => {
    const account = `user-${n % ACCOUNTS}`;
    const requestId = `req_${n}`;
    const now = Date.now();
    const expiresAt = now + 900_000;
    await ledger.reserve({
      account,
      requestId,
      amount: 500,
      floor: Number.NEGATIVE_INFINITY,
      expiresAt,
      facts: FACTS,
      now,
    });
    return () => ledger.settle({ account, requestId, amount: 321, usage: { ...FACTS, tokens: TOKENS }, now });
  },
  'ledger, limits and lease': async (store, n) => {
    const { counters } = store;
    const account = `user-${n % ACCOUNTS}`;
    const now = Date.now();
    const window = { windowMs: 60_000, limit: 1_000_000_000 };
    await counters.lease(`c:${account}`, `req_${n}`, 1000, 900_000, now);
    await counters.take(
      [
        { key: `rpm:${account}`, amount: 1, ...window },
        { key: `tpm:${account}`, amount: 700, ...window },
      ],
      now,
    );
    const settle = await CASES['ledger only'](store, n);
    return () =>
      Promise.all([
        counters.release(`c:${account}`, `req_${n}`),
        counters.adjust(`tpm:${account}`, 60_000, -33, now),
        settle(),
      ]);
  },
};

interface Sample {
  readonly cpu: number;
  readonly wall: number;
}

async function measure(store: Store, run: Request, requests: number, parallel: number): Promise<Sample> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = next + requests;
  const finishing = new Set<Promise<unknown>>();
  const work = async (): Promise<void> => {
    while (next < end) {
      const finish = await run(store, next++);
      const done: Promise<unknown> = finish().finally(() => finishing.delete(done));
      finishing.add(done);
      // Servers are slower than a loop: without a bound the loop would outrun them.
      if (finishing.size > 4 * parallel) await done;
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  await Promise.all(finishing);
  // What a store puts off is part of the cost; a question makes it do it now.
  await store.ledger.balance('user-0');
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / requests, wall: ((performance.now() - start) * 1000) / requests };
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-bench-'));
const shared = path.join(folder, 'shared');
const stores: Record<string, Store> = {
  memory: await openMemory(),
  'sqlite, one process': await openSqlite({ folder }),
  'sqlite, shared by several': await openSqlite({ folder: shared }),
  'sqlite, `durability: full`': await openSqlite({ folder: path.join(folder, 'full'), durability: 'full' }),
};
// Somebody else who has the store open and does nothing: from the first question on, both work in the tables.
const neighbour = await openSqlite({ folder: shared });
await neighbour.ledger.balance('user-0');
const servers = values.servers ? await Promise.all([startRedisServer(), startPostgresServer()]) : undefined;
if (servers) {
  // Generous bounds: a benchmark that saturates a machine must not be cut off by the guard.
  stores['redis'] = await openRedis({ url: servers[0].url, timeoutMs: 10_000 });
  stores['postgres'] = await openPostgres({ url: servers[1].url, timeoutMs: 10_000 });
}

const samples = new Map<string, Sample[]>();
for (let round = 0; round <= ROUNDS; round++) {
  process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  for (const [name, store] of Object.entries(stores)) {
    for (const [title, run] of Object.entries(CASES)) {
      for (const parallel of [1, 64]) {
        const requests = Math.ceil(REQUESTS * (SHARE[name] ?? 1) * (parallel === 1 ? 0.2 : 1));
        const sample = await measure(store, run, requests, parallel);
        const key = `${title} | ${parallel} | ${name}`;
        // Round 0 warms up.
        if (round > 0) samples.set(key, [...(samples.get(key) ?? []), sample]);
      }
    }
  }
}
console.log(
  '| case | at once | store | µs CPU / request | min – max | µs elapsed / request |\n|---|---|---|---|---|---|',
);
for (const [key, list] of samples) {
  const cpu = list.map((sample) => sample.cpu);
  const spread = `${Math.min(...cpu).toFixed(1)} – ${Math.max(...cpu).toFixed(1)}`;
  console.log(`| ${key} | ${median(cpu).toFixed(1)} | ${spread} | ${median(list.map((s) => s.wall)).toFixed(1)} |`);
}
await Promise.all([neighbour, ...Object.values(stores)].map((store) => store.close()));
await Promise.all((servers ?? []).map((server) => server.close()));
rmSync(folder, { recursive: true, force: true });
