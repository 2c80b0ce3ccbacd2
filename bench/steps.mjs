#!/usr/bin/env node
// Counts the steps of one warm chat: promises, timers, SQL statements and transactions, kilobytes allocated (sampled).
// Counts do not depend on the load of the machine. All duties are enabled: key, plan, ledger on sqlite, metrics, access
// log.
// usage, in a separate process: node bench/steps.mjs [--json] [FOLDER with dist/, after npm run build]
import { createHook } from 'node:async_hooks';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import inspector from 'node:inspector/promises';
import { register } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const WARM_CALLS = 1500;
const CALLS = 500;
/** Deferred writes of a call (batches of the store) are included. */
const SETTLE_MS = 300;

/**
 * Starts the gateway built in `root`, with a vendor and a client in another process; returns figures of one call.
 * @param {string} root
 */
export async function measureSteps(root) {
  const peer = fork(fileURLToPath(import.meta.url), ['--peer']);
  const [{ port }] = await once(peer, 'message');
  const statements = new Map();
  countStatements(root, (sql) => statements.set(sql, (statements.get(sql) ?? 0) + 1));
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-steps-'));
  const configPath = path.join(folder, 'tollgate.config.json');
  writeFileSync(configPath, JSON.stringify(configOf(`http://127.0.0.1:${port}/v1`)));
  const { createGateway } = await import(pathToFileURL(path.join(root, 'dist/core/gateway.js')).href);
  const gateway = await createGateway({ configPath, cwd: folder, env: { ...process.env }, log: SILENT, port: 0 });
  const key = gateway.announcements.find(({ use }) => use === 'key').value;
  const run = async (calls) => {
    peer.send({ url: gateway.url, key, calls });
    const [{ failed }] = await once(peer, 'message');
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    if (failed > 0) throw new Error(`${failed} of ${calls} calls failed`);
  };
  try {
    await run(WARM_CALLS);
    statements.clear();
    const resources = await countResources(() => run(CALLS));
    const sql = [...statements];
    const bytes = await sampleAllocation(() => run(CALLS));
    const perCall = (count) => Math.round((count / CALLS) * 10) / 10;
    const isControl = (text) => /^(BEGIN|COMMIT|ROLLBACK)/.test(text);
    const sum = (rows) => rows.reduce((total, [, count]) => total + count, 0);
    return {
      figures: {
        promises: perCall(resources.get('PROMISE') ?? 0),
        timers: perCall(resources.get('Timeout') ?? 0),
        sqlStatements: perCall(sum(sql.filter(([text]) => !isControl(text)))),
        sqlTransactions: perCall(sum(sql.filter(([text]) => text.startsWith('BEGIN')))),
        kilobytesAllocated: Math.round(bytes / CALLS / 1024),
      },
      statements: sql.map(([text, count]) => ({ sql: text.replace(/\s+/g, ' '), perCall: perCall(count) })),
    };
  } finally {
    await gateway.close();
    peer.disconnect();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function countResources(work) {
  const counts = new Map();
  const hook = createHook({ init: (_id, type) => counts.set(type, (counts.get(type) ?? 0) + 1) }).enable();
  await work();
  hook.disable();
  return counts;
}

async function sampleAllocation(work) {
  const session = new inspector.Session();
  session.connect();
  await session.post('HeapProfiler.enable');
  const options = {
    samplingInterval: 8192,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  };
  await session.post('HeapProfiler.startSampling', options);
  await work();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const sum = ({ selfSize, children }) => children.reduce((total, child) => total + sum(child), selfSize);
  return sum(profile.head);
}

/** Replaces the sqlite driver of the gateway by one that counts: the driver's classes cannot be patched. */
function countStatements(root, count) {
  globalThis.countStatement = count;
  const own = JSON.stringify(path.join(root, 'package.json'));
  const wrapper = `
    import { createRequire } from 'node:module';
    const { DatabaseSync: Driver } = process.getBuiltinModule?.('node:sqlite') ?? createRequire(${own})('@photostructure/sqlite');
    const count = globalThis.countStatement;
    export class DatabaseSync {
      #database;
      constructor(...values) { this.#database = new Driver(...values); }
      exec(sql) { count(sql.trim()); return this.#database.exec(sql); }
      close() { this.#database.close(); }
      prepare(sql) {
        const statement = this.#database.prepare(sql);
        const text = sql.trim();
        const counted = (name) => (...values) => { count(text); return statement[name](...values); };
        return { run: counted('run'), get: counted('get'), all: counted('all') };
      }
    }`;
  const hooks = `
    const url = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(wrapper)}`)};
    export const resolve = (specifier, context, next) =>
      specifier === 'node:sqlite' || specifier === '@photostructure/sqlite' ? { url, shortCircuit: true } : next(specifier, context);`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {}, child: () => SILENT };

function configOf(baseUrl) {
  return {
    store: 'sqlite:./data',
    auth: { 'api-key': { bootstrap: true } },
    logging: { format: 'json' },
    providers: { up: { plugin: 'openai', apiKey: 'k', baseUrl, prices: { '*': { input: 1, output: 1 } } } },
    plans: { free: { rpm: 1e9, tpm: 1e12, concurrency: 1000 } },
    defaultPlan: 'free',
  };
}

/** The other process: a vendor that responds immediately, and a client with sequential calls on one connection. */
function servePeer() {
  const message = { role: 'assistant', content: 'x'.repeat(1500), refusal: null };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
  const usage = { prompt_tokens: 500, completion_tokens: 100, total_tokens: 600 };
  const completion = { id: 'c1', object: 'chat.completion', created: 1, model: 'gpt-4o-mini', choices, usage };
  const body = Buffer.from(JSON.stringify(completion));
  const vendor = http.createServer((request, response) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    request.resume().on('end', () => response.writeHead(200, headers).end(body));
  });
  vendor.keepAliveTimeout = 60_000;
  vendor.listen(0, '127.0.0.1', () => process.send({ port: vendor.address().port }));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const messages = [
    { role: 'system', content: 'You are helpful.' },
    { role: 'user', content: 'y'.repeat(1700) },
  ];
  const payload = Buffer.from(JSON.stringify({ model: 'up/gpt-4o-mini', max_tokens: 200, messages }));
  const call = (url, key) =>
    new Promise((resolve) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': payload.length,
        authorization: `Bearer ${key}`,
      };
      http
        .request(new URL('/v1/chat/completions', url), { method: 'POST', agent, headers }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode === 200));
        })
        .on('error', () => resolve(false))
        .end(payload);
    });
  process.on('message', async ({ url, key, calls }) => {
    let failed = 0;
    for (let index = 0; index < calls; index += 1) if (!(await call(url, key))) failed += 1;
    process.send({ failed });
  });
  process.on('disconnect', () => process.exit());
}

if (process.argv[2] === '--peer') servePeer();
else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const root = args.find((arg) => !arg.startsWith('--')) ?? path.resolve(import.meta.dirname, '..');
  const { figures, statements } = await measureSteps(path.resolve(root));
  if (args.includes('--json')) console.log(JSON.stringify(figures, null, 2));
  else {
    for (const [figure, value] of Object.entries(figures)) console.log(`${figure.padEnd(20)}${value}`);
    for (const { sql, perCall } of statements.sort((a, b) => b.perCall - a.perCall))
      if (perCall > 0) console.log(`  ${perCall}  ${sql.slice(0, 150)}`);
  }
  process.exit(0);
}
