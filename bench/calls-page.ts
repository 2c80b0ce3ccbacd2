/**
 * Compares the requests of the console's pages Calls, Overview and Usage over two stores, of 2,000 and of 2,000,000
 * records. Each view is requested from both in turns, as often as the console does until its list is full; prints
 * medians in milliseconds and their ratio.
 *
 *     npm run bench:calls [-- --stores sqlite,postgres --small 2000 --large 2000000 --rounds 7 --views status,page]
 *
 * Fills new stores through their journals: 30 days until now, 500 users, 200 keys, 12 models, 10 teams, 3 % failures, and
 * three calls with rare values. `--sqlite FOLDER` keeps the files and reuses them.
 */

import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { CallFacts } from '../contract/index.ts';
import { dimensionsOf, hourOf, sumsOf } from '../plugins/stores/kit/call-rows.ts';
import { cleanFacts } from '../plugins/stores/kit/facts.ts';
import { JournalMover } from '../plugins/stores/kit/journal-mover.ts';
import type { RollupChange, WrittenRecord } from '../plugins/stores/kit/versioned-ledger.ts';
import { connect } from '../plugins/stores/postgres/connection.ts';
import { createJournal, createRows } from '../plugins/stores/postgres/ledger.ts';
import { closeDatabase, openDatabase } from '../plugins/stores/sqlite/index.ts';
import { openSqliteLedger } from '../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../plugins/stores/sqlite/writer.ts';
import { startGateway, type TestGateway } from '../test/support/gateways/gateway.ts';
import { POSTGRES, startPostgresServer } from '../test/support/stores/postgres-server.ts';
import { median } from './numbers.ts';

const { values } = parseArgs({
  options: {
    stores: { type: 'string', default: 'sqlite,postgres' },
    small: { type: 'string', default: '2000' },
    large: { type: 'string', default: '2000000' },
    rounds: { type: 'string', default: '7' },
    days: { type: 'string', default: '30' },
    views: { type: 'string', default: '' },
    sqlite: { type: 'string' },
  },
});
const DAYS = Number(values.days);
const DAY_MS = 86_400_000;
const END = Date.now() - 60_000;
const START = END - DAYS * DAY_MS;
const [USERS, KEYS, END_USERS, ADDRESSES] = [500, 200, 3000, 400];
const MODELS = ['gpt-5', 'gpt-5-mini', 'claude-opus', 'claude-haiku', 'gemini-pro', 'gemini-flash'].flatMap((name) => [
  name,
  `${name}-2`,
]);
const PROVIDERS = ['openai', 'anthropic', 'google'];
const ALIASES = ['fast', 'smart', 'cheap', 'code'];
const CODES = ['provider_unavailable', 'rate_limited', 'timeout', 'provider_error'];
const STATUSES = [503, 429, 504, 500];
const TEAMS = ['search', 'data', 'web', 'mobile', 'support', 'sales', 'finance', 'legal', 'research', 'ops'];

/** Facts that only three calls of a store have. */
const RARE: Partial<CallFacts> = {
  ...{ userId: 'needle', key: 'needle000000', tags: ['team=needle'], model: 'needle-model', provider: 'needle' },
  ...{ operation: 'moderation', requested: 'needle-alias', outcome: 'error', errorCode: 'context_length_exceeded' },
  ...{ attempts: [{ target: 'needle/needle-model', status: 529, class: 'overloaded', ms: 900 }] },
  ...{ address: '192.0.2.7', endUser: 'needle-person', session: 'needle-session', durationMs: 599_000 },
};
const RARE_USD = 50;

const keyOf = (number: number): string => `key${String(number).padStart(9, '0')}`;

/** Returns call `n`. Its values look random, but are the same in every run. */
function callOf(n: number, calls: number): { readonly facts: CallFacts; readonly cost: number; readonly id: string } {
  const mixed = Math.imul(n + 1, 2_654_435_761) >>> 0;
  const other = Math.imul(mixed ^ (mixed >>> 15), 2_246_822_519) >>> 0;
  const user = Math.floor(((mixed % 10_007) / 10_007) ** 2 * USERS);
  const model = (other >>> 4) % MODELS.length;
  const [provider, name] = [PROVIDERS[model >> 2] ?? 'openai', MODELS[model] ?? 'gpt-5'];
  const startedAt = Math.floor(START + (n / calls) * DAYS * DAY_MS);
  const isFailed = mixed % 100 < 3;
  const [code, status] = [CODES[other % 4] ?? 'timeout', STATUSES[other % 4] ?? 500];
  const durationMs = 400 + (other % 9000);
  const attempt = { target: `${provider}/${name}`, status: isFailed ? status : 200, ms: durationMs - 20 };
  const [input, output] = [mixed % 4000, other % 900];
  const facts: CallFacts = {
    ...{ requestId: `req_${n}_${mixed.toString(36)}`, traceId: `${mixed.toString(16).padStart(32, '0')}` },
    ...{ userId: `user-${user}@example.com`, key: user < KEYS ? keyOf(user) : '-', operation: 'chat', provider },
    ...{ tags: user % 4 ? [`team=${TEAMS[user % TEAMS.length]}`] : [], model: name, stream: n % 2 === 0 },
    ...(other % 10 < 6 && { requested: ALIASES[other % ALIASES.length] ?? 'fast' }),
    ...(n % 3 === 0 && { session: `s${other % 50_000}` }),
    ...(n % 2 === 0 && { endUser: `person-${other % END_USERS}` }),
    outcome: isFailed ? (other % 7 === 0 ? 'refused' : 'error') : 'ok',
    ...(isFailed && { errorCode: code, errorMessage: `The provider "${provider}" returned ${status}.` }),
    attempts: [isFailed ? { ...attempt, class: 'overloaded', reason: 'The engine is overloaded.' } : attempt],
    lane: 'native',
    ...{ address: `10.1.${(mixed % ADDRESSES) >> 7}.${mixed % 128}`, startedAt, durationMs },
    ...{ firstByteMs: 200 + (mixed % 700), receiveMs: 1, upstreamMs: durationMs - 20, estimated: n % 40 === 0 },
    units: { prompt_tokens: input, completion_tokens: output, cached_tokens: input >> 2 },
    costParts: [
      { unit: 'input_tokens', quantity: input, usd: input * 2e-6 },
      { unit: 'output_tokens', quantity: output, usd: output * 8e-6 },
    ],
    priced: true,
  };
  const isRare = [0.15, 0.55, 0.85].some((share) => n === Math.floor(calls * share));
  const id = `call_${Math.floor(startedAt * 1024)
    .toString(36)
    .padStart(10, '0')}${String(n).padStart(12, '0')}`;
  return {
    id,
    facts: cleanFacts(isRare ? { ...facts, ...RARE } : facts),
    cost: isRare ? RARE_USD * 1e9 : input * 2000 + output * 8000,
  };
}

const BATCH = 10_000;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes the calls to a file by the journal of its ledger. */
async function fillSqlite(folder: string, calls: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const database = await openDatabase({ folder });
  const writer = new Writer(database, folder);
  const { journal } = openSqliteLedger(database, writer);
  for (let first = 0; first < calls; first += BATCH) {
    await writer.write('bench.fill', () => {
      for (let n = first; n < Math.min(first + BATCH, calls); n++) {
        const { facts, cost, id } = callOf(n, calls);
        const at = facts.startedAt;
        journal.add({ account: facts.userId, name: facts.userId, kind: 'charge', ref: id }, undefined, {
          ...{ facts, cost, at, countedAt: at },
        });
      }
    });
    await journal.drain();
  }
  await journal.close();
  await writer.close();
  closeDatabase(database);
}

/** Calls of one commit on Postgres. */
const COMMIT = 400;

async function fillPostgres(url: string, calls: number): Promise<void> {
  const connection = await connect({ url, connections: 2, timeoutMs: 60_000, log: undefined });
  const mover = new JournalMover(createJournal(connection), undefined);
  const rows = createRows(connection, 60_000, mover);
  for (let first = 0; first < calls; first += COMMIT) {
    const records: WrittenRecord[] = [];
    const rollup: RollupChange[] = [];
    for (let n = first; n < Math.min(first + COMMIT, calls); n++) {
      const { facts, cost, id } = callOf(n, calls);
      const { userId, startedAt: at } = facts;
      records.push({ account: userId, name: userId, ref: id, facts, cost, at, countedAt: at });
      rollup.push({ hour: hourOf(at), dimensions: dimensionsOf(userId, facts), sums: sumsOf(facts, cost) });
    }
    const sums = addUp(rollup);
    await rows.commit({ expected: new Map(), version: 'bench', rows: [], entries: [], records, rollup: sums });
    if (first % BATCH === 0) await mover.drain();
  }
  await mover.drain();
  await mover.close();
  await connection.read('', 'ANALYZE', []);
  await connection.close();
}

function addUp(changes: readonly RollupChange[]): readonly RollupChange[] {
  const groups = new Map<string, RollupChange>();
  for (const change of changes) {
    const key = JSON.stringify([change.hour, change.dimensions]);
    const known = groups.get(key);
    const sums = known ? known.sums.map((sum, at) => sum + (change.sums[at] ?? 0)) : change.sums;
    groups.set(key, { ...change, sums });
  }
  return [...groups.values()];
}

/** Pages of lists, as the console requests them. */
const LISTS: Readonly<Record<string, string>> = Object.freeze({
  'no filter': '',
  'sort by cost': 'sort=cost',
  'sort by duration': 'sort=duration',
  'sort by first byte': 'sort=first_byte',
  'sort by tokens': 'sort=tokens',
  'last hour': 'last=1h',
  'last day': 'last=24h',
  'last week': 'last=7d',
  'last month': 'last=30d',
  'outcome error': 'outcome=error',
  'error code, frequent': 'error_code=rate_limited',
  'error code, rare': 'error_code=context_length_exceeded',
  'status 429': 'status=429',
  'status, rare': 'status=529',
  'cost, frequent': 'min_cost=0.01',
  'cost, rare': 'min_cost=5',
  'duration, frequent': 'min_duration=5s',
  'duration, rare': 'min_duration=60s',
  'alias, frequent': 'alias=fast',
  'alias, rare': 'alias=needle-alias',
  'model, frequent': 'model=gpt-5',
  'model, rare': 'model=needle-model',
  'model, none': 'model=none',
  'provider, rare': 'provider=needle',
  'operation, rare': 'operation=moderation',
  'key, frequent': `key=${keyOf(1)}`,
  'key, rare': 'key=needle000000',
  'user, frequent': 'user=user-1@example.com',
  'team, frequent': 'tag=team%3Dsearch',
  'team, rare': 'tag=team%3Dneedle',
  'end user, one of 3,000': 'end_user=person-7',
  'end user, rare': 'end_user=needle-person',
  'address, one of 400': 'address=10.1.1.8',
  'address, rare': 'address=192.0.2.7',
  'network, rare': 'address=192.0.2.0/24',
  'part of a name, frequent': 'search=user-1',
  'part of a name, rare': 'search=needle-per',
  'part of a name, none': 'search=nowhere',
  'session, rare': 'session=needle-session',
  'request id': 'request=req_1900_',
  'key and status': `key=${keyOf(1)}&status=429`,
  'team and model': 'tag=team%3Dsearch&model=gemini-pro',
  'model and rare error code': 'model=gpt-5&error_code=context_length_exceeded',
  'error of last week, by cost': 'outcome=error&last=7d&sort=cost',
});

/** Other requests. */
const OTHERS: Readonly<Record<string, string>> = Object.freeze({
  'count of all': '/calls?count=true&limit=1',
  'count of errors': '/calls?count=true&limit=1&outcome=error',
  'count of a team': '/calls?count=true&limit=1&tag=team%3Dsearch',
  'chart of Calls, a day': '/overview?range=day&tz=UTC&details=false',
  'chart of Calls, a week': '/overview?range=week&tz=UTC&details=false',
  'overview of an hour': '/overview?range=hour&tz=UTC',
  'overview of a day': '/overview?range=day&tz=UTC',
  'overview of a week': '/overview?range=week&tz=UTC',
  'overview of a key': `/overview?range=day&tz=UTC&key=${keyOf(1)}`,
  'usage of today': '/usage?period=today&by=provider&sort=cost&limit=5&tz=UTC',
  'usage of a week by day': '/usage?by=day&last=7d&limit=1000',
  'usage of a month by user': '/usage?by=user&last=30d&sort=cost&limit=200',
  'usage of a month by model with latency': '/usage?by=model&last=30d&sort=cost&limit=200&latency=true',
});

interface ListPage {
  readonly data: readonly unknown[];
  readonly next?: string;
}

/** Rows of a list that the console wants, and the time after which this bench stops waiting for them. */
const ROWS = 100;
const MOST_MS = 30_000;

type Send = (at: string) => Promise<unknown>;

/** Loads a list as the console does; returns the number of rows. */
async function loadList(send: Send, filter: string, after?: string): Promise<number> {
  const until = performance.now() + MOST_MS;
  let rows = 0;
  for (let from = after; performance.now() < until; ) {
    const cursor = from === undefined ? '' : `&after=${encodeURIComponent(from)}`;
    const page = (await send(`/calls?limit=${ROWS}&${filter}${cursor}`)) as ListPage;
    rows += page.data.length;
    if (page.next === undefined || rows >= ROWS) return rows;
    from = page.next;
  }
  return rows;
}

/** Time of the first frame of the live list. */
async function follow(gateway: TestGateway, headers: Record<string, string>): Promise<void> {
  const abort = new AbortController();
  const response = await fetch(`${gateway.url}/api/core/admin/calls?follow=true&limit=20`, {
    ...{ headers, signal: abort.signal },
  });
  await response.body?.getReader().read();
  abort.abort();
}

type View = (side: Side) => Promise<number>;

interface Side {
  readonly gateway: TestGateway;
  readonly headers: Record<string, string>;
  readonly send: Send;
  /** Cursor of the second page, and the id of a call. */
  readonly next: string;
  readonly id: string;
}

function viewsOf(): Readonly<Record<string, View>> {
  const opened: View = async ({ gateway, headers, send }) => {
    const [rows = 0] = await Promise.all([
      loadList(send, ''),
      follow(gateway, headers),
      send('/overview?range=day&tz=UTC&details=false'),
    ]);
    return Number(rows);
  };
  const lists = Object.entries(LISTS).map(([name, filter]) => [
    name,
    ({ send }: Side) => loadList(send, filter),
  ]) as readonly (readonly [string, View])[];
  const others = Object.entries(OTHERS).map(([name, at]) => [
    name,
    async ({ send }: Side) => {
      await send(at);
      return 0;
    },
  ]) as readonly (readonly [string, View])[];
  return {
    'page Calls opens': opened,
    'live list begins': async ({ gateway, headers }) => {
      await follow(gateway, headers);
      return 0;
    },
    'second page': ({ send, next }) => loadList(send, '', next),
    'one call': async ({ send, id }) => {
      await send(`/calls/${id}`);
      return 1;
    },
    ...Object.fromEntries(lists),
    ...Object.fromEntries(others),
  };
}

async function openSide(store: object | string): Promise<Side> {
  const tags = { team: [...TEAMS, 'needle'] };
  const gateway = await startGateway({ store, tags, policies: { limits: {} } }, { level: 'silent' });
  const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
  const headers = { authorization: `Bearer ${key}` };
  const send: Send = async (at) => {
    const response = await gateway.get(`/api/core/admin${at}`, headers);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${at}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  const page = (await send(`/calls?limit=${ROWS}`)) as ListPage;
  const { id } = page.data.at(-1) as { readonly id: string };
  return { gateway, headers, send, next: page.next ?? '', id };
}

async function measureView(view: View, sides: readonly [Side, Side]): Promise<string> {
  const times: [number[], number[]] = [[], []];
  const rows = [0, 0];
  for (let round = 0; round < Number(values.rounds); round++)
    for (const [at, side] of sides.entries()) {
      // A view of many seconds is measured once.
      if ((times[at]?.[0] ?? 0) > 5000) continue;
      const began = performance.now();
      rows[at] = await view(side);
      times[at]?.push(performance.now() - began);
    }
  const [small, large] = [median(times[0]), median(times[1])];
  return `${small.toFixed(1)} | ${large.toFixed(1)} | ${(large / small).toFixed(2)} | ${rows.join(' / ')}`;
}

async function compare(name: string, stores: readonly [object | string, object | string]): Promise<void> {
  const sides: readonly [Side, Side] = [await openSide(stores[0]), await openSide(stores[1])];
  const wanted = values.views === '' ? [] : values.views.split(',');
  say(`\n| ${name} | ${values.small}: ms | ${values.large}: ms | ratio | rows |\n|---|---|---|---|---|`);
  try {
    for (const [what, view] of Object.entries(viewsOf())) {
      if (wanted.length > 0 && !wanted.some((word) => what.includes(word))) continue;
      say(`| ${what} | ${await measureView(view, sides)} |`);
    }
  } finally {
    for (const { gateway } of sides) await gateway.stop();
  }
}

async function fill(name: string, count: number, run: () => Promise<void>): Promise<void> {
  const [began, before] = [performance.now(), process.cpuUsage()];
  await run();
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - began) / 1000;
  const cpu = ((user + system) / count).toFixed(1);
  say(
    `${name}: ${count} records in ${seconds.toFixed(0)} s, ${(count / seconds).toFixed(0)} a second, ${cpu} µs of CPU each`,
  );
}

const SIZES = [Number(values.small), Number(values.large)] as const;
const stores = values.stores.split(',');
say(
  `${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, Node ${process.versions.node}, load ${os.loadavg()[0]?.toFixed(1)}`,
);
if (stores.includes('sqlite')) {
  const root = values.sqlite ?? mkdtempSync(path.join(os.tmpdir(), 'tollgate-calls-'));
  try {
    const folders = SIZES.map((size) => path.join(root, String(size))) as [string, string];
    for (const [at, folder] of folders.entries())
      if (!existsSync(folder)) await fill('sqlite', SIZES[at] ?? 0, () => fillSqlite(folder, SIZES[at] ?? 0));
    await compare('sqlite', [`sqlite:${folders[0]}`, `sqlite:${folders[1]}`]);
  } finally {
    if (values.sqlite === undefined) rmSync(root, { recursive: true });
  }
}
if (stores.includes('postgres') && POSTGRES) {
  const servers = [await startPostgresServer(), await startPostgresServer()] as const;
  try {
    for (const [at, { url }] of servers.entries())
      await fill('postgres', SIZES[at] ?? 0, () => fillPostgres(url, SIZES[at] ?? 0));
    await compare('postgres', [{ url: servers[0].url }, { url: servers[1].url }]);
  } finally {
    for (const server of servers) await server.close();
  }
}
process.exit(0);
