/**
 * Compares the gateway with others: `npm run bench`, `npm run bench -- --quick`, `npm run bench -- --only
 * requests,boot`. Prints a table, and writes it and the raw samples to `bench/results/`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { TestServer } from '../test/support/processes/server-process.ts';
import { POSTGRES, startPostgresServer } from '../test/support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../test/support/stores/redis-server.ts';
import { benchCases } from './cases.ts';
import { describeMachine } from './machine.ts';
import { type CaseResult, measureCase } from './measure.ts';
import { forkProgram, LOAD_CORES, stopAll } from './programs.ts';
import { type BenchResult, renderReport } from './report.ts';
import { startNginxUpstream } from './targets/others.ts';
import { PACKAGE } from './targets/tollgate.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    out: { type: 'string' },
  },
});

const began = performance.now();
const say = (text: string): void => {
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  ${text}\n`);
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-bench-'));
const cleanUps: (() => Promise<void>)[] = [async () => rmSync(folder, { recursive: true, force: true }), stopAll];

async function startStores(): Promise<Record<string, string>> {
  const wanted = values.only === undefined || values.only.split(',').includes('stores');
  const stores: Record<string, string> = {};
  const add = async (name: string, start: () => Promise<TestServer>): Promise<void> => {
    const server = await start();
    cleanUps.push(() => server.close());
    stores[name] = server.url;
  };
  if (wanted && REDIS_SERVER) await add('redis', startRedisServer);
  if (wanted && POSTGRES) await add('postgres', startPostgresServer);
  return stores;
}

async function main(): Promise<void> {
  const upstream = await forkProgram<number>('./upstream.js', [], { cores: LOAD_CORES });
  const nginx = await startNginxUpstream(folder, LOAD_CORES);
  const stream = `http://127.0.0.1:${upstream.ready}`;
  const upstreams = { folder, stream, json: nginx ? `http://127.0.0.1:${nginx.port}` : stream };
  const all = benchCases({ quick: values.quick, stores: await startStores() });
  const only = values.only?.split(',');
  const name = values.out ?? (values.quick ? 'quick' : only ? 'partial' : 'full');
  const base = path.resolve(PACKAGE, 'bench', 'results', name);
  mkdirSync(path.dirname(base), { recursive: true });
  const machine = describeMachine();
  const results: CaseResult[] = [];
  for (const each of all) {
    if (only && !only.includes(each.id)) continue;
    say(`${each.id}: ${each.title}`);
    try {
      results.push(await measureCase(each, upstreams, say));
    } catch (error) {
      say(`${each.id} FAILED: ${(error as Error).message}`);
      process.exitCode = 1;
    }
    // Written after every case, so that an interrupted run keeps its measurements.
    write(base, machine, results);
  }
  const report = readFileSync(`${base}.md`, 'utf8');
  process.stdout.write(report);
  say(`written to ${base}.json and .md`);
}

function write(base: string, machine: BenchResult['machine'], cases: readonly CaseResult[]): void {
  const result: BenchResult = {
    createdAt: new Date().toISOString(),
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(),
    machine,
    seconds: Math.round((performance.now() - began) / 1000),
    cases,
  };
  writeFileSync(`${base}.json`, `${JSON.stringify(result, null, 1)}\n`);
  writeFileSync(`${base}.md`, renderReport(result));
}

try {
  await main();
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
process.exit();
