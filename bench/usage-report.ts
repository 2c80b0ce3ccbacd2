/**
 * Measures reports and first pages of every list over a month of two million calls, requested over HTTP as by
 * operators. Prints medians of the time and of this process's CPU (gateway and client) in milliseconds. Prints the
 * longest block of the event loop too, since it delays `/livez`. Runs on sqlite, and on Redis and Postgres if their
 * servers are installed.
 *
 *     npm run bench:usage [-- --stores sqlite,redis,postgres --calls 100000 --rounds 9]
 *
 * Fills a new store with records of 50 users, 80 keys and 6 models over 30 days, in the format of the ledger. Every
 * twenty calls add an account, a key and an audit entry; there are a thousand budgets. Database servers get
 * `--server-calls` calls.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { CallFacts, Log, Store } from '../contract/index.ts';
import { createAuditLog } from '../core/plugins/audit.ts';
import { createInstanceStore, createRecordBook } from '../core/plugins/instance-store.ts';
import { Registry } from '../core/plugins/registry.ts';
import { createKeyIndex } from '../plugins/auth/api-key/key-index.ts';
import { createRecords } from '../plugins/auth/api-key/records.ts';
import { openPostgres } from '../plugins/stores/postgres/index.ts';
import { openRedis } from '../plugins/stores/redis/index.ts';
import { closeDatabase, openDatabase, openSqlite } from '../plugins/stores/sqlite/index.ts';
import { openSqliteLedger } from '../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../plugins/stores/sqlite/writer.ts';
import { startGateway } from '../test/support/gateways/gateway.ts';
import { POSTGRES, startPostgresServer } from '../test/support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../test/support/stores/redis-server.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '2000000' },
    'server-calls': { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
    stores: { type: 'string', default: 'sqlite,redis,postgres' },
  },
});
const ROUNDS = Number(values.rounds);
const [USERS, KEYS, MODELS, DAYS] = [50, 80, 6, 30];
const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 9, 1);
const BATCH = 10_000;
/** Number of calls per account, key and audit entry. */
const EVERY = 20;

/** Returns call `n` of the month's calls. Key, model and tag look random, but are the same in every run. */
function callOf(n: number, calls: number): CallFacts {
  const mixed = Math.imul(n + 1, 2_654_435_761) >>> 0;
  const key = mixed % KEYS;
  const startedAt = START + Math.floor((n / calls) * DAYS * DAY_MS);
  return {
    ...{
      requestId: `req_${n}`,
      userId: `user-${key % USERS}`,
      key: `key${key}`,
      operation: 'chat',
      provider: 'openai',
    },
    ...{ model: `model-${(mixed >>> 8) % MODELS}`, tags: key % 3 ? ['team=search'] : [], stream: n % 2 === 0 },
    ...{ outcome: n % 50 ? 'ok' : 'error', attempts: [], startedAt, durationMs: mixed % 20_000, firstByteMs: 300 },
    units: { prompt_tokens: mixed % 4000, completion_tokens: mixed % 900, cached_tokens: mixed % 1000 },
    ...{ estimated: n % 40 === 0, priced: true, session: `s${mixed % 5000}` },
  };
}

/** Writes the calls into sqlite's tables directly, in the format of its ledger, with an account for every twenty. */
async function fillSqlite(folder: string, calls: number): Promise<void> {
  const database = await openDatabase({ folder });
  const writer = new Writer(database, folder);
  const { journal } = openSqliteLedger(database, writer);
  const account = database.prepare(
    "INSERT INTO sums VALUES ('account', ?, 0, 0, 0, 0, 0, 1, NULL, NULL) ON CONFLICT DO NOTHING",
  );
  for (let first = 0; first < calls; first += BATCH) {
    await writer.write('bench.fill', () => {
      for (let n = first; n < Math.min(first + BATCH, calls); n++) {
        const facts = callOf(n, calls);
        const { userId, startedAt } = facts;
        account.run(userId);
        if (n % EVERY === 0) account.run(`account-${n}`);
        const keys = { account: userId, name: userId, kind: 'charge', ref: `call_${n}` } as const;
        const entry = { kind: 'charge', amount: -1, reason: 'chat', at: 1 } as const;
        journal.add(keys, entry, { facts, cost: n % 3000, at: startedAt, countedAt: startedAt });
      }
    });
    await journal.drain();
  }
  await journal.close();
  await writer.close();
  closeDatabase(database);
}

/** Concurrent writes on a database server. */
const AT_ONCE = 256;

async function inTurns(count: number, write: (n: number) => Promise<unknown>): Promise<void> {
  for (let first = 0; first < count; first += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, at) => write(first + at)));
}

/** Writes the calls through the ledger's own operations. */
async function fillServer({ ledger }: Store, calls: number): Promise<void> {
  await inTurns(calls, async (n) => {
    const facts = callOf(n, calls);
    const [account, requestId, now] = [facts.userId, `call_${n}`, facts.startedAt];
    const hold = { account, requestId, amount: 1, floor: Number.NEGATIVE_INFINITY, expiresAt: Date.now() + 3_600_000 };
    await ledger.reserve({ ...hold, facts, now });
    await ledger.settle({ account, requestId, amount: n % 3000, facts, now });
    if (n % EVERY === 0) await ledger.credit(`account-${n}`, `credit-${n}`, 1, 'bench', now);
  });
}

const NO_LOG: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => NO_LOG };

/** Writes keys and audit entries, like the gateway. */
async function fillLists(store: Store, count: number): Promise<void> {
  const registry = new Registry();
  const ofKeys = createInstanceStore(() => store, registry, { group: 'auth', name: 'api-key' });
  const own = createInstanceStore(() => store, registry, { group: 'core', name: 'core' });
  const keys = createRecords({ keyv: ofKeys.keyv, log: NO_LOG, books: { records: createRecordBook(own) } });
  const index = createKeyIndex(ofKeys.sets);
  const audit = createAuditLog({ store: own, keepForMs: 730 * DAY_MS, log: NO_LOG });
  await inTurns(count, async (n) => {
    const userId = `user-${n % 5000}`;
    const id = `k${String(n).padStart(11, '0')}`;
    const facts = { version: 1, userId, account: userId, hash: 'ab'.repeat(32), pepperId: 'p' } as const;
    const record = { ...facts, id, name: `key ${n}`, createdAt: START + n, tags: n % 2 ? ['team=search'] : [] };
    await keys.add(record);
    await index.add(record, count);
    const actor = { via: 'api', userId } as const;
    await audit.add({ actor, action: 'key.create', subject: `tg_${id}`, after: { user_id: userId } });
  });
}

const MONTH = 'from=2026-10-01&to=2026-10-31';
/** Measured reports, and the first page of every list. */
const PATHS: Readonly<Record<string, string>> = {
  'usage of the month by user': `/usage?by=user&${MONTH}`,
  'usage of the month by model': `/usage?by=model&${MONTH}`,
  'usage of the month by user and model': `/usage?by=user,model&${MONTH}`,
  'usage of one user, by model': `/usage?by=model&user=user-7&${MONTH}`,
  'usage by day in Europe/Berlin': `/usage?by=day&tz=Europe/Berlin&${MONTH}`,
  'usage by day and user in Asia/Kolkata': `/usage?by=day,user&tz=Asia/Kolkata&${MONTH}`,
  'usage of one day by session': '/usage?by=session&from=2026-10-01&to=2026-10-02',
  'calls of all': '/calls',
  'calls of one account': '/calls?account=user-7',
  'calls of one user': '/calls?user=user-7',
  'calls of one key': '/calls?key=key7',
  'calls of a key without any': '/calls?account=user-7&key=new',
  'calls of one session': '/calls?session=s7',
  'calls of one request': '/calls?request=req_7',
  'calls with a tag': '/calls?tag=team%3Dsearch',
  'calls with a tag that none has': '/calls?tag=team%3Dnone',
  'calls that failed': '/calls?outcome=error',
  'calls of one user that failed': '/calls?user=user-7&outcome=error',
  'calls to a model that none was to': '/calls?model=none',
  'the audit log': '/audit',
  'the audit log of one actor': '/audit?actor=user-7',
  'the audit log of a subject without any': '/audit?subject=none',
  keys: '/keys',
  'keys of one user': '/keys?user=user-7',
  'keys with a tag': '/keys?tag=team%3Dsearch',
  'keys with a name that none has': '/keys?name=needle',
  accounts: '/accounts',
  'accounts with a name that none has': '/accounts?name=needle',
  'accounts with a plan that none has': '/accounts?plan=gold',
  'the books of one account': '/accounts/user-7',
  budgets: '/budgets',
  'budgets near their end': '/near-budgets',
  users: '/users',
  teams: '/teams',
};

/** CPU of this process since then, in milliseconds. */
function workedSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Measures a row of the table: name, time, CPU, and the longest block of the event loop. The block counts work of this
 * process alone, not of other processes on the same core.
 */
async function measure(name: string, send: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  const cpu: number[] = [];
  let longestMs = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const startedMs = performance.now();
    const before = process.cpuUsage();
    let last = startedMs;
    let lastWorked = 0;
    let isDone = false;
    const turn = (): void => {
      const [now, worked] = [performance.now(), workedSince(before)];
      longestMs = Math.max(longestMs, Math.min(now - last, worked - lastWorked));
      [last, lastWorked] = [now, worked];
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await send();
    times.push(performance.now() - startedMs);
    cpu.push(workedSince(before));
    isDone = true;
    await new Promise((resolve) => setTimeout(resolve));
  }
  return `| ${name} | ${median(times).toFixed(0)} | ${median(cpu).toFixed(0)} | ${longestMs.toFixed(0)} |\n`;
}

async function measureStore(name: string, url: string, open: () => Promise<Store>, calls: number): Promise<void> {
  const began = performance.now();
  const store = await open();
  if (name !== 'sqlite') await fillServer(store, calls);
  await fillLists(store, Math.ceil(calls / EVERY));
  await store.close();
  process.stdout.write(`\n${name}: ${calls} calls, filled in ${((performance.now() - began) / 1000).toFixed(0)} s\n\n`);
  const budgets = Array.from({ length: 1000 }, (_, at) => ({
    ...{ name: `budget-${at}`, amount_usd: 5, every: 'month', user: `user-${at}` },
  }));
  const tags = { team: ['search', 'none'] };
  const gateway = await startGateway(
    { store: name === 'sqlite' ? url : { url, timeout: '30s' }, budgets, tags, policies: { limits: {} } },
    { level: 'silent' },
  );
  const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
  const send = async (at: string): Promise<void> => {
    const response = await gateway.get(`/api/core/admin${at}`, { authorization: `Bearer ${key}` });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${at}: ${response.status} ${text}`);
  };
  process.stdout.write(`| ${name} | ms | CPU | longest turn |\n|---|---|---|---|\n`);
  try {
    for (const [what, at] of Object.entries(PATHS)) process.stdout.write(await measure(what, () => send(at)));
    const five = Array.from({ length: 5 }, () => '/calls?model=none');
    process.stdout.write(
      await measure('five lists at once to a model that none was to', () => Promise.all(five.map(send))),
    );
  } finally {
    await gateway.stop();
  }
}

const wanted = values.stores.split(',');
if (wanted.includes('sqlite')) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-usage-'));
  try {
    await fillSqlite(folder, Number(values.calls));
    await measureStore('sqlite', `sqlite:${folder}`, () => openSqlite({ folder }), Number(values.calls));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
for (const [name, program, start, open] of [
  ['redis', REDIS_SERVER, startRedisServer, (url: string) => openRedis({ url, timeoutMs: 30_000 })],
  ['postgres', POSTGRES, startPostgresServer, (url: string) => openPostgres({ url, timeoutMs: 30_000 })],
] as const) {
  if (!program || !wanted.includes(name)) continue;
  const server = await start();
  try {
    await measureStore(name, server.url, () => open(server.url), Number(values['server-calls']));
  } finally {
    await server.close();
  }
}
