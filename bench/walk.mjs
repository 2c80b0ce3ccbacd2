#!/usr/bin/env node
// Lists the code that a maintainer has to read to follow one action: every file and function of the product that ran
// for it. Uses V8's precise coverage, which does not change the source.
// usage, in a separate process: node bench/walk.mjs [--json | --detail chat] [FOLDER with dist/, after npm run build]
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import inspector from 'node:inspector/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** A timer during an action adds functions, so the smallest of several rounds counts. */
const ROUNDS = 12;
const SETTLE_MS = 300;

/**
 * Starts the gateway built in `root` and returns the functions that each action ran, by action.
 * @param {string} root
 * @returns {Promise<Record<string, { files: number, coreFiles: number, functions: number, named: number, calls: Record<string, string[]> }>>}
 */
export async function measureWalks(root) {
  // `dist` is a link to the newest build; V8 reports the paths of the build.
  const dist = `${pathToFileURL(realpathSync(path.join(root, 'dist'))).href}/`;
  const session = new inspector.Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', {
    callCount: true,
    detailed: false,
    allowTriggeredUpdates: false,
  });
  const vendor = await startVendor();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-walk-'));
  const configPath = path.join(folder, 'tollgate.config.json');
  writeFileSync(configPath, JSON.stringify(configOf(vendor.url)));
  const { createGateway } = await import(`${dist}core/gateway.js`);
  const open = () => createGateway({ configPath, cwd: folder, env: { ...process.env }, log: SILENT, port: 0 });

  // Measured right after the same action: leases of a second are then present on a busy machine too.
  const measure = async (action, before) => {
    await before?.();
    await session.post('Profiler.takePreciseCoverage');
    const value = await action();
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    return { value, walk: readCoverage((await session.post('Profiler.takePreciseCoverage')).result, dist) };
  };
  const start = await measure(open);
  const gateway = start.value;
  const walks = { start: start.walk };
  try {
    const actions = actionsOf(gateway);
    for (let round = 0; round < 3; round += 1) for (const action of Object.values(actions)) await action();
    for (const [name, action] of Object.entries(actions))
      for (let round = 0; round < ROUNDS; round += 1) {
        const { walk } = await measure(action, action);
        if (walks[name] === undefined || walk.functions < walks[name].functions) walks[name] = walk;
      }
    return walks;
  } finally {
    await gateway.close();
    vendor.close();
    session.disconnect();
    rmSync(folder, { recursive: true, force: true });
  }
}

const ANONYMOUS = '(anonymous)';

function readCoverage(scripts, dist) {
  const calls = {};
  for (const { url, functions } of scripts) {
    if (!url.startsWith(dist)) continue;
    for (const { functionName, ranges } of functions) {
      const [{ count, startOffset }] = ranges;
      // The function at the start is the module itself.
      if (count === 0 || (functionName === '' && startOffset === 0)) continue;
      const file = url.slice(dist.length).replace(/\.js$/, '.ts');
      calls[file] = [...(calls[file] ?? []), `${functionName || ANONYMOUS}×${count}`];
    }
  }
  const files = Object.keys(calls);
  const ran = Object.values(calls).flat();
  return {
    files: files.length,
    coreFiles: files.filter((file) => file.startsWith('core/')).length,
    functions: ran.length,
    named: ran.filter((name) => !name.startsWith(ANONYMOUS)).length,
    calls,
  };
}

function actionsOf(gateway) {
  const key = gateway.announcements.find(({ use }) => use === 'key').value;
  const post = async (route, body) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(gateway.url + route, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${route}: ${response.status} ${text.slice(0, 300)}`);
  };
  const chat = (model, stream) =>
    post('/v1/chat/completions', { model, stream, messages: [{ role: 'user', content: 'hi' }] });
  return {
    chat: () => chat('up/gpt-4o-mini', false),
    stream: () => chat('up/gpt-4o-mini', true),
    failover: () => chat('smart', true),
    speech: () => post('/voice/tts', { text: 'Hello there.' }),
    agent: () => post('/api/core/agent', { message: 'hi', response_model: { answer: 'string' } }),
  };
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {}, child: () => SILENT };

function configOf(vendorUrl) {
  const provider = { plugin: 'openai', apiKey: 'k', prices: { '*': { input: 1, output: 1 } } };
  return {
    store: 'sqlite:./data',
    auth: { 'api-key': { bootstrap: true } },
    providers: {
      up: { ...provider, baseUrl: `${vendorUrl}/v1` },
      down: { ...provider, baseUrl: `${vendorUrl}/down/v1` },
    },
    models: { smart: ['down/gpt-4o-mini', 'up/gpt-4o-mini'] },
    plans: { free: { rpm: 100_000, tpm: 100_000_000, concurrency: 100 } },
    defaultPlan: 'free',
    tts: { voice: { plugin: 'openai', baseUrl: `${vendorUrl}/v1`, apiKey: 'k' } },
    agents: { team: { model: 'up/gpt-4o-mini' } },
  };
}

/** Vendor of chat and speech in this process; below `/down` it is overloaded. */
async function startVendor() {
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    if (request.url.startsWith('/down')) return sendJson(response, { error: { message: 'overloaded' } }, 503);
    if (request.url.includes('audio/speech')) return response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(MP3);
    const body = JSON.parse(Buffer.concat(parts).toString() || '{}');
    const head = { id: 'c1', created: 1, model: body.model };
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    if (body.stream) return sendStream(response, head, usage);
    const content = body.response_format?.type === 'json_schema' ? '{"answer":"x"}' : 'Hello';
    const message = { role: 'assistant', content, refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
    return sendJson(response, { ...head, object: 'chat.completion', choices, usage });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

function sendJson(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendStream(response, head, usage) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const write = (choices, more = {}) =>
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`);
  const writeDelta = (delta, finish_reason = null) => write([{ index: 0, delta, logprobs: null, finish_reason }]);
  writeDelta({ role: 'assistant', content: '' });
  writeDelta({ content: 'Hel' });
  writeDelta({ content: 'lo' });
  writeDelta({}, 'stop');
  write([], { usage });
  response.end('data: [DONE]\n\n');
}

/** Twenty silent frames. */
const frame = Buffer.alloc(417);
frame.writeUInt32BE(0xfffb9000);
const MP3 = Buffer.concat(Array(20).fill(frame));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const detail = args.includes('--detail') ? args[args.indexOf('--detail') + 1] : undefined;
  const root = args.find((arg) => !arg.startsWith('--') && arg !== detail) ?? path.resolve(import.meta.dirname, '..');
  const walks = await measureWalks(path.resolve(root));
  if (args.includes('--json')) console.log(JSON.stringify(walks, null, 2));
  else {
    console.log('action      files  in core  functions  with a name');
    for (const [action, { files, coreFiles, functions, named }] of Object.entries(walks))
      console.log(
        `${action.padEnd(12)}${String(files).padStart(5)}${String(coreFiles).padStart(9)}${String(functions).padStart(11)}${String(named).padStart(13)}`,
      );
    for (const [file, calls] of Object.entries(walks[detail]?.calls ?? {}))
      console.log(`  ${file}: ${calls.join(' ')}`);
  }
  process.exit(0);
}
