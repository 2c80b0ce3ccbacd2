/**
 * How cost grows: `node bench/dist/bench/growth.js` measures CPU per request and memory of Tollgate against connections,
 * keys in the store, providers and plugins, and draws `docs/growth.svg` beside `bench/results/growth.json`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { type Chart, drawCharts } from './charts.ts';
import { median } from './load/numbers.ts';
import { describeMachine } from './machine.ts';
import { type Case, measureCase, type TargetResult } from './measure.ts';
import { forkProgram, LOAD_CORES, stopAll } from './programs.ts';
import { startNginxUpstream } from './targets/others.ts';
import { PACKAGE, tollgate } from './targets/tollgate.ts';
import { chatRequest } from './wires.ts';

const CONNECTIONS = [8, 32, 128, 512];
const KEYS = [10, 10_000, 1_000_000];
const PROVIDERS = [5, 50, 500];
const PLUGINS = [0, 5, 10, 20];

interface Database {
  exec(sql: string): void;
  close(): void;
}

/** Puts keys that nobody uses into the store, beside the one that is used. */
async function fillKeys(folder: string, configFile: string, count: number): Promise<void> {
  const cli = path.join(PACKAGE, 'dist', 'core', 'cli', 'main.js');
  execFileSync(process.execPath, [cli, 'keys', 'list', '--config', configFile], { stdio: 'ignore' });
  const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite') as {
    DatabaseSync: new (file: string) => Database;
  };
  const database = new DatabaseSync(path.join(folder, 'data', 'tollgate.db'));
  const record = JSON.stringify({ value: { version: 1, userId: 'u', account: 'u', name: 'n', hash: '0'.repeat(64) } });
  database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO documents (namespace, key, value, expires) SELECT 'keys', hex(randomblob(6)) || i, '${record}', NULL FROM n`);
  database.close();
}

const base = {
  measures: 'requests',
  ask: { wire: 'openai', kind: 'json', body: chatRequest(2048, 'm-0-0', false) },
  connections: 32,
  rounds: 2,
  windowMs: 1000,
} as const;

const label = (count: number): string => count.toLocaleString('en');
const axes: readonly { readonly title: string; readonly cases: readonly Case[] }[] = [
  {
    title: 'connections',
    cases: CONNECTIONS.map((connections) => ({
      ...base,
      id: `connections-${connections}`,
      title: 'connections',
      connections,
      reference: label(connections),
      targets: [tollgate(label(connections), 'connections')],
    })),
  },
  axis('keys in the store', KEYS, (count) => ({
    prepare: (folder: string, file: string) => fillKeys(folder, file, count),
  })),
  axis('providers', PROVIDERS, (count) => ({ moreProviders: count - 5 })),
  axis('plugins with every hook', PLUGINS, (count) => ({ plugins: count })),
];

function axis(title: string, counts: readonly number[], options: (count: number) => object) {
  const targets = counts.map((count) => tollgate(label(count), title, options(count)));
  return { title, cases: [{ ...base, id: title, title, reference: label(counts[0] ?? 0), targets }] };
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-growth-'));
try {
  const vendor = await forkProgram<number>('./vendor.js', [], { cores: LOAD_CORES });
  const nginx = await startNginxUpstream(folder, LOAD_CORES);
  const stream = `http://127.0.0.1:${vendor.ready}`;
  const upstreams = { folder, stream, json: nginx ? `http://127.0.0.1:${nginx.port}` : stream };
  const charts: Chart[] = [];
  for (const { title, cases } of axes) {
    const targets: TargetResult[] = [];
    for (const each of cases) targets.push(...(await measureCase(each, upstreams, say)).targets);
    const figure = (target: TargetResult, field: 'cpuUs' | 'rssMb') => median(target.samples.map((s) => s[field] ?? 0));
    charts.push({
      title,
      points: targets.map((each) => ({ x: each.name, cpuUs: figure(each, 'cpuUs'), rssMb: figure(each, 'rssMb') })),
    });
  }
  const result = { createdAt: new Date().toISOString(), machine: describeMachine(), charts };
  writeFileSync(path.join(PACKAGE, 'bench', 'results', 'growth.json'), `${JSON.stringify(result, null, 1)}\n`);
  writeFileSync(path.join(PACKAGE, 'docs', 'growth.svg'), drawCharts(charts));
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
