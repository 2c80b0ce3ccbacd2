/**
 * How long reports take over a month of a million calls on sqlite: medians of the time and of this process's CPU, in milliseconds.
 *
 *   npm run bench:usage [-- --calls 100000 --rounds 9]
 *
 * Fills a new file with records of 50 users, 80 keys and 6 models over 30 days, as the ledger writes them, and asks for reports.
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { CallFacts, Ledger, ReportQuery } from '../core/index.ts';
import { CallGroups, callKeys, recordCall } from '../plugins/stores/sqlite/call-records.ts';
import { prepareCalls } from '../plugins/stores/sqlite/calls-sql.ts';
import { closeDatabase, FILE, openDatabase } from '../plugins/stores/sqlite/database.ts';
import { openSqlite } from '../plugins/stores/sqlite/index.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '5' } },
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
    ...{ outcome: n % 50 ? 'ok' : 'error', attempts: 1, startedAt, durationMs: mixed % 20_000, firstByteMs: 300 },
    units: { prompt_tokens: mixed % 4000, completion_tokens: mixed % 900, cached_tokens: mixed % 1000 },
    ...{ estimated: n % 40 === 0, priced: true, session: `s${mixed % 5000}` },
  };
}

async function fill(folder: string): Promise<void> {
  const database = await openDatabase({ folder });
  const sql = prepareCalls(database);
  const tables = { sql, groups: new CallGroups(sql) };
  for (let first = 0; first < CALLS; first += BATCH) {
    database.exec('BEGIN');
    for (let n = first; n < Math.min(first + BATCH, CALLS); n++) {
      const facts = callOf(n);
      recordCall(tables, { of: callKeys(facts.userId, `call_${n}`), facts, cost: n % 3000, at: facts.startedAt });
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

const PAGES: Readonly<Record<string, Parameters<Ledger['calls']>[0]>> = {
  'newest 50 calls': { limit: 50 },
  'newest 50 of one user': { limit: 50, userId: 'user-7' },
  'a page of a user who is not there': { limit: 50, userId: 'nobody' },
};

/** A row of the table: the name, the time and the CPU. */
async function measure(name: string, ask: () => Promise<unknown>): Promise<string> {
  const times: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const startedMs = performance.now();
    const before = process.cpuUsage();
    await ask();
    const { user, system } = process.cpuUsage(before);
    times.push(performance.now() - startedMs);
    cpu.push((user + system) / 1000);
  }
  return `| ${name} | ${median(times).toFixed(0)} | ${median(cpu).toFixed(0)} |\n`;
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-usage-'));
try {
  const startedMs = performance.now();
  await fill(folder);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  const megabytes = (statSync(path.join(folder, FILE)).size / 1e6).toFixed(0);
  process.stdout.write(`${CALLS} calls in ${megabytes} MB, written in ${seconds} s\n\n| | ms | CPU |\n|---|---|---|\n`);
  const store = await openSqlite({ folder });
  for (const [name, query] of Object.entries(REPORTS))
    process.stdout.write(await measure(name, () => store.ledger.report(query)));
  for (const [name, query] of Object.entries(PAGES))
    process.stdout.write(await measure(name, () => store.ledger.calls(query)));
  await store.close();
} finally {
  rmSync(folder, { recursive: true });
}
