#!/usr/bin/env node
/**
 * Compares the cost of a call with the yardstick, in figures that depend little on other load. Needs Node and Linux.
 *
 *   node bench/gate.mjs [--workload chat|plain|tools|stream|store] [--store URL] [--body 2] [--conns 32] [--calls 6000] [--rounds 8] [--repeats 1]
 *        [--node PATH] [--flags '…'] [--main dist/cli/main.js] [--portkey FOLDER] [--check | --bounds]
 *
 * Each workload compares two programs alternately; both run with --flags. --portkey adds Portkey's gateway as a third
 * program of the workload chat: FOLDER is its package with its dependencies. Figures per call:
 *   cpu    microseconds of all threads of the process tree (schedstat), median of the rounds. A round ends SETTLE_MS after
 *          its last response, while the other program is idle, so work after the calls is included.
 *   alloc  KB allocated on V8's heap (--trace-gc-nvp)
 *   old    KB that survived two young collections (promoted): memory that finished calls still hold
 *   write  KB and calls of write (/proc/PID/io), sockets and log included
 *   p50    median time of a call, for its caller
 *
 * `--check` exits with 1 if a figure is above its bound in gate-bounds.json. `--bounds` lowers bounds to the measured
 * figures plus a margin; it never raises one.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const SELF = fileURLToPath(import.meta.url);
const FOLDER = path.dirname(SELF);
const BOUNDS = path.join(FOLDER, 'gate-bounds.json');
const SETTLE_MS = 800;
const DEFAULTS = {
  workload: 'chat',
  store: '',
  portkey: '',
  main: path.join(FOLDER, '..', 'dist', 'cli', 'main.js'),
  node: process.execPath,
  flags: '',
  calls: '6000',
  warm: '4000',
  rounds: '8',
  repeats: '1',
  conns: '32',
  body: '2',
};
/** Margin above a measured figure: CPU varies by 7 % on a busy machine, bytes by 2 to 5 %. */
const MARGINS = { cpu: 1.25, alloc: 1.1, old: 1.1 };
/** Minimum margin for promoted KB, which are few and depend on the rest of the young generation. */
const OLD_ROOM_KB = 1;

const TEXT =
  'The quick brown fox jumps over the lazy dog while the gateway forwards a request and counts the tokens that it used. ';
const CHUNKS = 100;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const OPENAI_CHAT = '/api/core/openai/chat/completions';
const MODEL = 'gpt-4o-mini';

const messagesOf = (kilobytes) =>
  Array.from({ length: Math.max(1, Math.round(kilobytes * 4)) }, (_, at) => ({
    role: at % 2 ? 'assistant' : 'user',
    content: TEXT.repeat(2) + at,
  }));

const chatOf = (kilobytes) => ({ model: MODEL, messages: messagesOf(kilobytes), max_tokens: 200 });

const TOOLS = Array.from({ length: 5 }, (_, at) => ({
  name: `tool_${at}`,
  description: TEXT,
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', description: 'Name of a city' }, days: { type: 'integer' } },
    required: ['city'],
  },
}));

const BUDGETS = [
  { name: 'all', amount_usd: 1e6, every: 'day' },
  { name: 'openai', provider: 'openai', amount_usd: 1e6, every: 'month' },
  { name: 'model', model: `openai/${MODEL}`, amount_usd: 1e6, every: 'day' },
];

/**
 * Two programs per workload: the second one is compared with the first. `path` and `body` belong to its request. `plain` compares the
 * yardstick of the other benchmarks, `targets/plain.ts`, with the gate's; `store` the gateway on the store of --store with the gateway
 * on SQLite.
 */
const WORKLOADS = {
  chat: (kilobytes) => [
    { name: 'yardstick', path: '/openai/v1/chat/completions', body: chatOf(kilobytes) },
    { name: 'gateway', path: OPENAI_CHAT, body: chatOf(kilobytes) },
  ],
  plain: (kilobytes) => [
    { name: 'yardstick', path: '/openai/v1/chat/completions', body: chatOf(kilobytes) },
    { name: 'plain.ts', path: '/json/v1/chat/completions', body: chatOf(kilobytes) },
  ],
  tools: (kilobytes) => [
    { name: 'chat', path: OPENAI_CHAT, body: chatOf(kilobytes) },
    {
      name: 'tools',
      path: '/v1/messages',
      body: { ...chatOf(kilobytes), model: 'fast', tools: TOOLS },
      hasSpare: true,
      config: { models: { fast: [`openai/${MODEL}`, `spare/${MODEL}`] }, budgets: BUDGETS },
    },
  ],
  store: (kilobytes, store) => [
    { name: 'sqlite', path: OPENAI_CHAT, body: chatOf(kilobytes) },
    { name: 'server', path: OPENAI_CHAT, body: chatOf(kilobytes), config: { store } },
  ],
  stream: (kilobytes) => [
    { name: 'passed', path: OPENAI_CHAT, body: { ...chatOf(kilobytes), stream: true } },
    {
      name: 'translated',
      path: '/v1/messages',
      body: { ...chatOf(kilobytes), model: `openai/${MODEL}`, stream: true },
    },
  ],
};

/** Start functions of programs other than the gateway. */
const STARTS = { yardstick: startYardstick, 'plain.ts': startPlain, portkey: startPortkey };

if (process.env.GATE_VENDOR) startVendor();
else await run();

/** Starts a vendor that responds immediately, with about 2 KB or with CHUNKS events. */
function startVendor() {
  const message = { role: 'assistant', content: TEXT.repeat(16) };
  const usage = { prompt_tokens: 319, completion_tokens: 110, total_tokens: 429 };
  const common = { id: 'chatcmpl-1', created: 1, model: MODEL };
  const whole = JSON.stringify({
    ...common,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  });
  const event = (delta, more = {}) =>
    `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices: delta, ...more })}\n\n`;
  const choice = (delta, finish_reason = null) => [{ index: 0, delta, finish_reason }];
  const events = [
    event(choice({ role: 'assistant', content: '' })),
    ...Array.from({ length: CHUNKS - 3 }, (_, at) => event(choice({ content: `word ${at} ` }))),
    event(choice({}, 'stop')),
    event([], { usage }),
    'data: [DONE]\n\n',
  ];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      if (!Buffer.concat(parts).includes('"stream":true')) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(whole) });
        response.end(whole);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const each of events) response.write(each);
      response.end();
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

async function run() {
  const options = Object.fromEntries(
    Object.entries(DEFAULTS).map(([name, value]) => [name, { type: 'string', default: value }]),
  );
  const flags = { check: { type: 'boolean' }, bounds: { type: 'boolean' } };
  const { values: o } = parseArgs({ options: { ...options, ...flags } });
  if (!Object.hasOwn(WORKLOADS, o.workload)) throw new Error(`no workload is called ${o.workload}`);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gate-'));
  const vendor = fork(SELF, { env: { ...process.env, GATE_VENDOR: '1' } });
  const running = [];
  let failed = 0;
  const results = [];
  try {
    const [vendorPort] = await once(vendor, 'message');
    for (let repeat = 0; repeat < Number(o.repeats); repeat += 1) {
      const programs = [];
      const parts = WORKLOADS[o.workload](Number(o.body), o.store);
      if (o.portkey) parts.push({ ...parts[0], name: 'portkey', path: '/v1/chat/completions' });
      for (const part of parts) {
        const program = await (STARTS[part.name] ?? startGateway)(
          o,
          path.join(folder, `${part.name}${repeat}`),
          vendorPort,
          part,
        );
        running.push(program);
        programs.push(program);
      }
      await measure(programs, o);
      for (const each of programs) {
        await stop(each);
        failed += each.failed;
        console.log(describe(each));
      }
      const [base, subject, portkey] = programs;
      if (portkey) compare(portkey, subject);
      results.push({
        cpu: subject.cpu / base.cpu,
        alloc: subject.alloc / base.alloc,
        old: Math.max(subject.old - base.old, 0),
      });
    }
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    vendor.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  }
  const version = await versionOf(o.node);
  const figures = Object.fromEntries(
    ['cpu', 'alloc', 'old'].map((name) => [name, median(results.map((each) => each[name]))]),
  );
  const store = o.store && ` ${new URL(o.store).protocol}`;
  const sameFlags = o.flags && `, flags of both ${o.flags}`;
  const row = `Node ${version}, ${o.workload}${store}, ${o.body} KB, ${o.conns} callers${sameFlags}`;
  const bounds = JSON.parse(fs.readFileSync(BOUNDS, 'utf8'));
  const isHeld = report(row, figures, bounds[row]);
  if (o.bounds) {
    bounds[row] = lowered(figures, bounds[row]);
    fs.writeFileSync(BOUNDS, `${JSON.stringify(bounds, null, 2)}\n`);
  }
  if (failed > 0) console.log(`${failed} requests failed`);
  if (o.check && !bounds[row]) console.log(`gate-bounds.json has no bounds for: ${row}`);
  process.exitCode = failed > 0 || (o.check && !isHeld) ? 1 : 0;
}

/** Prints each figure with its bound; returns true if all are within. */
function report(row, figures, bounds) {
  console.log(row);
  let isHeld = bounds !== undefined;
  for (const [name, value] of Object.entries(figures)) {
    const bound = bounds?.[name];
    const isMet = bound === undefined || value <= bound;
    isHeld &&= isMet;
    const unit = name === 'old' ? 'KB above' : 'x';
    console.log(`${isMet ? 'pass' : 'FAIL'} ${name}: ${value.toFixed(2)} ${unit} (bound ${bound ?? 'none'})`);
  }
  return isHeld;
}

/** Bounds for measured figures; no bound rises. */
function lowered(figures, before = {}) {
  return Object.fromEntries(
    Object.entries(figures).map(([name, value]) => {
      const room = name === 'old' ? Math.max(value * MARGINS.old, value + OLD_ROOM_KB) : value * MARGINS[name];
      return [name, Math.min(Math.ceil(room * 100) / 100, before[name] ?? Number.POSITIVE_INFINITY)];
    }),
  );
}

/** Prints the figures of Portkey as multiples of the gateway's. */
function compare(portkey, gateway) {
  const ratio = (name) => `${name} ${(portkey[name] / gateway[name]).toFixed(2)} x`;
  console.log(`portkey / gateway: ${ratio('cpu')}, ${ratio('p50')}`);
}

function describe({ name, cpu, alloc, old, written, writes, rss, rssLater, p50 }) {
  return [
    name.padEnd(10),
    `cpu ${cpu.toFixed(0)} us`,
    `alloc ${alloc.toFixed(1)} KB`,
    `old ${old.toFixed(2)} KB`,
    `write ${written.toFixed(1)} KB in ${writes.toFixed(1)}`,
    `rss ${rss} MB, later ${rssLater} MB`,
    `p50 ${p50.toFixed(0)} us`,
  ].join('  ');
}

async function versionOf(node) {
  const child = spawn(node, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = await once(child.stdout, 'data');
  return /v(\d+)/.exec(String(text))?.[1];
}

async function startYardstick(o, folder, vendorPort, part) {
  const port = await freePort();
  const env = { PORT: String(port), UPSTREAM: `http://127.0.0.1:${vendorPort}`, KEY: 'secret' };
  const program = await start(o, folder, [path.join(FOLDER, 'plain-gateway.mjs')], env, port);
  return { ...program, ...part, key: 'secret' };
}

async function startPlain(o, folder, vendorPort, part) {
  fs.mkdirSync(folder);
  const port = await freePort();
  const vendor = `http://127.0.0.1:${vendorPort}`;
  const file = path.join(FOLDER, 'targets', 'plain.ts');
  const args = ['--import', 'tsx/esm', file, vendor, vendor, folder, 'secret'];
  const program = await start(o, folder, args, { PORT: String(port) }, port);
  return { ...program, ...part, key: 'secret' };
}

/** Starts Portkey's gateway, which has none of the duties. */
async function startPortkey(o, folder, vendorPort, part) {
  const port = await freePort();
  const args = [path.join(o.portkey, 'build', 'start-server.js'), '--headless', `--port=${port}`];
  const program = await start(o, folder, args, { TRUSTED_CUSTOM_HOSTS: '127.0.0.1' }, port);
  const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${vendorPort}/v1` };
  return { ...program, ...part, key: 'secret', headers };
}

/** Starts the gateway with all duties enabled: key, plan, ledger on SQLite, access log, metrics. */
async function startGateway(o, folder, vendorPort, part) {
  fs.mkdirSync(folder);
  const config = path.join(folder, 'tollgate.config.json');
  const openai = {
    apiKey: 'sk-upstream',
    models: ['*'],
    prices: { '*': { input: 1, output: 4 } },
    baseUrl: `http://127.0.0.1:${vendorPort}/v1`,
  };
  const settings = {
    server: { host: '127.0.0.1' },
    store: `sqlite:${folder}`,
    logging: { format: 'json' },
    providers: part.hasSpare ? { openai, spare: { plugin: 'openai', ...openai } } : { openai },
    auth: { 'api-key': { bootstrap: true } },
    plans: { bench: { rpm: 1e9, tpm: 1e12 } },
    defaultPlan: 'bench',
    ...part.config,
  };
  fs.writeFileSync(config, JSON.stringify(settings));
  const port = await freePort();
  const program = await start(o, folder, [o.main, 'start', '--config', config, '--port', String(port)], {}, port);
  await wait(500);
  const key = /tg_[\w-]+/.exec(fs.readFileSync(program.log, 'utf8'))?.[0] ?? '';
  return { ...program, ...part, key };
}

async function start(o, folder, args, env, port) {
  const log = `${folder}.log`;
  const out = fs.openSync(log, 'w');
  const flags = ['--trace-gc', '--trace-gc-nvp', ...o.flags.split(' ').filter(Boolean)];
  const child = spawn(o.node, [...flags, ...args], {
    cwd: path.join(FOLDER, '..'),
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', out, out],
  });
  fs.closeSync(out);
  for (let attempt = 0; ; attempt += 1) {
    if (attempt > 300 || child.exitCode !== null) {
      child.kill('SIGKILL');
      throw new Error(`${args[0]} did not start: ${fs.readFileSync(log, 'utf8').slice(-500)}`);
    }
    const isUp = await new Promise((resolve) => {
      const request = http.get({ port, path: '/' }, (response) => resolve(Boolean(response.resume())));
      request.on('error', () => resolve(false));
    });
    if (isUp) return { child, log, port, failed: 0 };
    await wait(100);
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function measure(programs, o) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: Number(o.conns) });
  const post = (program) =>
    new Promise((resolve) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': program.bytes.length,
        authorization: `Bearer ${program.key}`,
        ...program.headers,
      };
      const startedMs = performance.now();
      const options = { port: program.port, path: program.path, method: 'POST', agent, headers };
      const request = http.request(options, (response) => {
        if (response.statusCode !== 200) program.failed += 1;
        response.resume().on('end', () => {
          program.times?.push(performance.now() - startedMs);
          resolve();
        });
      });
      request.on('error', () => {
        program.failed += 1;
        resolve();
      });
      request.end(program.bytes);
    });
  const drive = async (program, calls) => {
    let left = calls;
    const caller = async () => {
      while (left-- > 0) await post(program);
    };
    await Promise.all(Array.from({ length: Number(o.conns) }, caller));
  };
  const perRound = Math.ceil(Number(o.calls) / Number(o.rounds));
  for (const program of programs) {
    program.bytes = Buffer.from(JSON.stringify(program.body));
    await drive(program, Number(o.warm));
    await wait(SETTLE_MS);
    Object.assign(program, { rounds: [], times: [], from: fs.statSync(program.log).size, io: ioOf(program.child.pid) });
  }
  for (let round = 0; round < Number(o.rounds); round += 1)
    for (const program of round % 2 ? programs.toReversed() : programs) {
      const before = cpuOf(program.child.pid);
      await drive(program, perRound);
      await wait(SETTLE_MS);
      program.rounds.push((cpuOf(program.child.pid) - before) / perRound / 1e3);
    }
  const calls = perRound * Number(o.rounds);
  for (const program of programs) {
    const lines = fs.readFileSync(program.log, 'latin1').slice(program.from);
    const collections = [...lines.matchAll(/ gc=\w+ .*?allocated=(\d+) promoted=(\d+)/g)];
    const sum = (group) => collections.reduce((total, match) => total + Number(match[group]), 0) / calls / 1e3;
    const io = ioOf(program.child.pid);
    Object.assign(program, {
      cpu: median(program.rounds),
      p50: median(program.times) * 1e3,
      alloc: sum(1),
      old: sum(2),
      written: (io.bytes - program.io.bytes) / calls / 1e3,
      writes: (io.calls - program.io.calls) / calls,
      rss: rssOf(program.child.pid),
    });
  }
  await wait(5000);
  for (const program of programs) program.rssLater = rssOf(program.child.pid);
  agent.destroy();
}

async function stop({ child }) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await Promise.race([once(child, 'exit'), wait(4000)]);
  child.kill('SIGKILL');
}

/** Process ids of a process and its descendants. */
function treeOf(pid) {
  try {
    const children = fs
      .readdirSync(`/proc/${pid}/task`)
      .flatMap((task) => fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '));
    return [pid, ...children.filter(Boolean).map(Number).flatMap(treeOf)];
  } catch {
    return [];
  }
}

/** CPU of all threads of a process tree, in nanoseconds. */
function cpuOf(root) {
  let total = 0;
  for (const pid of treeOf(root))
    for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
      try {
        total += Number(fs.readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
      } catch {
        // The thread has ended meanwhile.
      }
    }
  return total;
}

function ioOf(root) {
  let bytes = 0;
  let calls = 0;
  for (const pid of treeOf(root)) {
    const io = fs.readFileSync(`/proc/${pid}/io`, 'utf8');
    bytes += Number(/wchar: (\d+)/.exec(io)[1]);
    calls += Number(/syscw: (\d+)/.exec(io)[1]);
  }
  return { bytes, calls };
}

function rssOf(root) {
  const kilobytes = treeOf(root).map((pid) =>
    Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0),
  );
  return Math.round(kilobytes.reduce((sum, each) => sum + each, 0) / 1024);
}
