/**
 * How long reports and the first page of every list take over a month of two million calls on sqlite: medians of the time and of this
 * process's CPU, and the longest that the event loop was kept from others meanwhile, `/livez` among them. In milliseconds.
 *
 *   npm run bench:usage [-- --calls 100000 --rounds 9]
 *
 * Fills a new file with records of 50 users, 80 keys and 6 models over 30 days, as the ledger writes them, with an account and a key
 * for every twenty calls, and asks for reports and lists.
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { CallFacts, CallFilter, ReportQuery, Store } from '../core/index.ts';
import { listCalls } from '../plugins/policies/usage/calls-query.ts';
import { prepareCalls } from '../plugins/stores/sqlite/calls-sql.ts';
import { closeDatabase, FILE, openDatabase, openSqlite } from '../plugins/stores/sqlite/index.ts';
import { CallGroups, writeCall } from '../plugins/stores/sqlite/ledger-rows.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '2000000' }, rounds: { type: 'string', default: '5' } },
});
const CALLS = Number(values.calls);
const ROUNDS = Number(values.rounds);
const [USERS, KEYS, MODELS, DAYS] = [50, 80, 6, 30];
const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 9, 1);
const BATCH = 10_000;

/** The call number `n` of the month. Which key, model and tag it has looks random, and is the same in every run. */
function callOf(n: number): CallFacts {
  const mixed = Math.imul(n + 1, 2_654_435_761) >>> 0;
  const key = mixed % KEYS;
  const startedAt = START + Math.floor((n / CALLS) * DAYS * DAY_MS);
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

async function fill(folder: string): Promise<void> {
  const database = await openDatabase({ folder });
  const sql = prepareCalls(database);
  const tables = { sql, groups: new CallGroups(sql) };
  const account = database.prepare("INSERT INTO sums VALUES ('account', ?, 0, 0, 0, 0, 1, 1, NULL, NULL)");
  const member = database.prepare("INSERT INTO members VALUES ('keys-all', ?)");
  const entry = database.prepare("INSERT INTO entries VALUES (?, ?, ?, 'charge', ?, -1, 'chat', 1)");
  const newest = new Map<string, number>();
  for (let first = 0; first < CALLS; first += BATCH) {
    database.exec('BEGIN');
    for (let n = first; n < Math.min(first + BATCH, CALLS); n++) {
      const facts = callOf(n);
      const keys = { account: facts.userId, name: facts.userId, ref: `call_${n}` };
      writeCall(tables, keys, { facts, cost: n % 3000, at: facts.startedAt });
      entry.run(n + 1, newest.get(facts.userId) ?? 0, facts.userId, `call_${n}`);
      newest.set(facts.userId, n + 1);
      if (n % 20 !== 0) continue;
      account.run(`account-${n}`);
      member.run(`${String(n).padStart(9, '0')}.key`);
    }
    database.exec('COMMIT');
  }
  closeDatabase(database);
}

/** The edges of the month's days where days begin at this minute, UTC. */
const daysAt = (minute: number): readonly number[] =>
  Array.from({ length: DAYS + 1 }, (_, day) => START + day * DAY_MS + minute * 60_000);

const MONTH = [START, START + DAYS * DAY_MS];
const REPORTS: Readonly<Record<string, ReportQuery>> = {
  'the month by user': { edges: MONTH, by: ['user'] },
  'the month by model': { edges: MONTH, by: ['model'] },
  'the month by user and model': { edges: MONTH, by: ['user', 'model'] },
  'one user, by model': { edges: MONTH, by: ['model'], userId: 'user-7' },
  'by day in Europe/Berlin': { edges: daysAt(22 * 60), by: [] },
  'by day in Asia/Kolkata': { edges: daysAt(18 * 60 + 30), by: [] },
  'by day and user in Asia/Kolkata': { edges: daysAt(18 * 60 + 30), by: ['user'] },
  'one day by session': { edges: [START, START + DAY_MS], by: ['session'] },
};

/** The first page of each list, as routes and commands read it. */
const FILTERS: Readonly<Record<string, CallFilter>> = {
  'calls of all': {},
  'calls of one user': { userId: 'user-7' },
  'calls of one key': { key: 'key7' },
  'calls of one account': { account: 'user-7' },
  'calls of one session': { session: 's7' },
  'calls of one request': { requestId: 'req_7' },
  'calls of a new key': { account: 'user-7', key: 'new' },
  'calls of one user that failed': { userId: 'user-7', outcome: 'error' },
  'calls by a tag that none has': { tag: 'team=none' },
  'calls to a model that none was to': { model: 'none' },
};
const LISTS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(FILTERS).map(([name, filter]) => [
      name,
      (store: Store) => listCalls(store.ledger, { filter, limit: 50 }),
    ]),
  ),
  'five lists at once to a model that none was to': ({ ledger }) =>
    Promise.all(Array.from({ length: 5 }, () => listCalls(ledger, { filter: { model: 'none' }, limit: 50 }))),
  accounts: ({ ledger }) => ledger.accounts({ limit: 50 }),
  'the books of one account': ({ ledger }) => ledger.entries('user-7', { limit: 50 }),
  keys: ({ sets }) => sets.list('keys-all', { limit: 50 }),
};

/** A row of the table: the name, the time, the CPU, and the longest that others waited for the event loop. */
async function measure(name: string, ask: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  const cpu: number[] = [];
  let longestMs = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const startedMs = performance.now();
    let turnedMs = startedMs;
    let isDone = false;
    const turn = (): void => {
      longestMs = Math.max(longestMs, performance.now() - turnedMs);
      turnedMs = performance.now();
      if (!isDone) setImmediate(turn);
    };
    const before = process.cpuUsage();
    setImmediate(turn);
    await ask();
    const { user, system } = process.cpuUsage(before);
    times.push(performance.now() - startedMs);
    cpu.push((user + system) / 1000);
    isDone = true;
    await new Promise((resolve) => setTimeout(resolve));
  }
  return `| ${name} | ${median(times).toFixed(0)} | ${median(cpu).toFixed(0)} | ${longestMs.toFixed(0)} |\n`;
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-usage-'));
try {
  const startedMs = performance.now();
  await fill(folder);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const megabytes = (statSync(path.join(folder, FILE)).size / 1e6).toFixed(0);
  process.stdout.write(
    `${CALLS} calls in ${megabytes} MB, written in ${seconds} s\n\n| | ms | CPU | longest turn |\n|---|---|---|---|\n`,
  );
  const store = await openSqlite({ folder });
  for (const [name, query] of Object.entries(REPORTS))
    process.stdout.write(await measure(name, () => store.ledger.report(query)));
  for (const [name, list] of Object.entries(LISTS)) process.stdout.write(await measure(name, () => list(store)));
  await store.close();
} finally {
  rmSync(folder, { recursive: true });
}
