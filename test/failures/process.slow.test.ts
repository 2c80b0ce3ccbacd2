import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { useTempFolder } from '../support/folders.ts';
import { PROMPT_COST, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { type Running, startCli } from '../support/processes/cli.ts';
import { completion, delta, events, openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import {
  heldSse,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const policy = (name: string, setup: string) =>
  `export default { name: '${name}', kind: 'policy', apiVersion: 1, setup(api) { ${setup} } };`;
const POST = (path: string, body: string) =>
  `api.route({ method: 'POST', path: '${path}', summary: 'x', auth: 'none', body: {}, bodyOptional: true, responses: { 200: 'Done.' }, async handler(ctx) { ${body}; ctx.body = {}; } });`;

/** Plugins that damage their process. */
const PLUGINS = {
  // These two are not plugins: they are loaded before the gateway, and throw on a signal.
  'rejects.mjs': `process.on('SIGUSR2', () => { void Promise.reject(new Error('not awaited')); });`,
  'throws.mjs': `process.on('SIGUSR2', () => { setTimeout(() => { throw new Error('out of a timer'); }, 1); });`,
  'tees.mjs': policy(
    'tees',
    `api.hook('stream', () => ({ push(part) { void (async () => { throw new Error('from a copy of the stream'); })(); return [part]; } }));`,
  ),
  'blocks.mjs': policy(
    'blocks',
    POST('/hurt', `for (const start = process.cpuUsage(); process.cpuUsage(start).user < 2_500_000; );`),
  ),
  'hoards.mjs': `import { getHeapStatistics } from 'node:v8';
let hoard = [];
process.on('SIGUSR2', () => { hoard = []; });
${policy('hoards', POST('/hurt', `for (let s = getHeapStatistics(); s.used_heap_size < s.heap_size_limit * 0.5; s = getHeapStatistics()) hoard.push(Array.from({ length: 20000 }, (_, n) => ({ n })))`))}`,
};

describe('a failing gateway process', () => {
  const folder = useTempFolder('process');
  let upstream: ScriptedUpstream;
  let running: Running;
  let url = '';
  let key = '';

  const start = async (config: object, env: Record<string, string> = {}, shell = ''): Promise<void> => {
    const one = openAiVendor(upstream, { prices: tokenPrices(1, 2) });
    await writeFile(
      path.join(folder, 'tollgate.config.json'),
      JSON.stringify({
        server: { port: 0, drainTimeout: '60s', drainDelay: '0s' },
        store: 'memory:',
        auth: { 'api-key': { bootstrap: true } },
        providers: { echo: {}, one },
        // Prevents overload refusals on a busy test machine.
        policies: { overload: { maxLag: '1m' } },
        ...config,
      }),
    );
    running = startCli(['start'], folder, env, shell);
    [, url = ''] = await running.seen(/listens on (http:\S+)/);
    [, key = ''] = await running.seen(/(tg_\w+)/);
  };

  before(async () => {
    for (const [name, text] of Object.entries(PLUGINS)) await writeFile(path.join(folder, name), text);
  });
  beforeEach(async () => {
    upstream = await startScriptedUpstream(respondWith(200, completion()));
  });
  afterEach(async () => {
    running.child.kill('SIGKILL');
    await running.finished;
    await upstream.close();
  });

  const post = (where: string, body: object = {}) =>
    fetch(url + where, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const send = (rest: object = {}) =>
    post('/v1/chat/completions', {
      model: 'one/m',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'a'.repeat(400) }],
      ...rest,
    });
  const worksAgain = () => eventually(async () => expect((await send()).status).to.equal(200));

  for (const [id, file, words] of [
    ['P06: an unhandled rejection', 'rejects.mjs', 'not awaited'],
    ['P07: an exception in a timer', 'throws.mjs', 'out of a timer'],
  ] as const) {
    it(`${id} that comes from no plugin is logged with its origin; the gateway drains, settles and exits with 1`, async () => {
      await start({}, { NODE_OPTIONS: `--import=${pathToFileURL(path.join(folder, file)).href}` });
      const held = heldSse(delta('one'), delta('', 'stop', { usage: completion().usage }), '[DONE]');
      upstream.script(held.script);
      const stream = await send({ stream: true });
      running.child.kill('SIGUSR2');
      await eventually(async () => expect(running.stdout()).to.include(words));
      held.finish();
      expect(await stream.text()).to.include('[DONE]');
      const { code, stdout } = await running.finished;
      expect(code).to.equal(1);
      expect(stdout).to.include(file).and.include('shutting down');
    });
  }

  it('X07: a plugin that throws in a copy of a stream is named, the stream is complete, and the gateway continues', async () => {
    await start({ plugins: ['./tees.mjs'] });
    upstream.script(events([delta('x'), delta('', 'stop'), '[DONE]']));
    expect(await (await send({ stream: true })).text()).to.include('[DONE]');
    await eventually(async () => expect(running.stdout()).to.include('from a copy of the stream'));
    expect(running.stdout()).to.include('"plugin":"./tees.mjs"').and.include('the gateway continues');
    upstream.script(respondWith(200, completion()));
    await worksAgain();
  });

  it('P08: a gateway whose event loop was blocked sheds waiting requests, spares running streams, and recovers', async () => {
    await start({ plugins: ['./blocks.mjs'], policies: { overload: {} } });
    const held = heldSse(delta('one'), delta('', 'stop'), '[DONE]');
    upstream.script(held.script);
    const stream = await send({ stream: true });
    const seen = upstream.requests.length;
    const hurting = post('/hurt');
    // They arrive while the event loop is blocked, or shortly before.
    await running.seen(/listens/);
    const waiting = Promise.all(
      Array.from({ length: 5 }, () => new Promise<Response>((resolve) => setTimeout(() => resolve(send()), 300))),
    );
    const health = new Promise<Response>((resolve) => setTimeout(() => resolve(fetch(`${url}/livez`)), 300));
    expect((await hurting).status).to.equal(200);
    for (const response of await waiting) {
      expect(response.status, await response.clone().text()).to.equal(503);
      expect(response.headers.get('retry-after')).to.equal('1');
      expect(((await response.json()) as { error: { code: string } }).error.code).to.equal('overloaded');
    }
    expect((await health).status).to.equal(200);
    expect(upstream.requests.length).to.equal(seen);
    held.finish();
    expect(await stream.text()).to.include('[DONE]');
    upstream.script(respondWith(200, completion()));
    await worksAgain();
    expect((await settledBooks(url, key)).spent).to.be.greaterThan(PROMPT_COST);
  });

  it('P09: a gateway whose heap is nearly full sheds load before it is full, and recovers', async () => {
    await start(
      { plugins: ['./hoards.mjs'], policies: { overload: { maxHeap: 0.4, maxLag: '1m' } } },
      { NODE_OPTIONS: '--max-old-space-size=256' },
    );
    await worksAgain();
    await post('/hurt');
    await eventually(async () => {
      const response = await send();
      expect(response.status).to.equal(503);
      expect(await response.text()).to.include('short of memory');
    });
    running.child.kill('SIGUSR2');
    await worksAgain();
  });

  it('P10: callers of a gateway without file descriptors wait or are refused, and it survives and recovers', async function () {
    if (process.platform === 'win32') this.skip();
    await start({ store: 'memory:' }, {}, 'ulimit -n 256');
    await worksAgain();
    const { hostname, port } = new URL(url);
    const sockets = Array.from({ length: 320 }, () => net.connect(Number(port), hostname).on('error', () => {}));
    const requestCount = await Promise.race([
      send().then(
        ({ status }) => status,
        () => 0,
      ),
      new Promise<number>((resolve) => setTimeout(() => resolve(0), 1500)),
    ]);
    expect(requestCount).to.be.oneOf([0, 200, 503]);
    for (const socket of sockets) socket.destroy();
    await worksAgain();
    expect(running.child.exitCode).to.equal(null);
  });

  it('P11: a full disk under the log loses lines, and nothing else', async function () {
    if (!existsSync('/dev/full')) this.skip();
    await start({}, {}, 'exec >/dev/full');
    for (let n = 0; n < 20; n++) {
      const response = await send();
      expect(response.status, await response.text()).to.equal(200);
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    await worksAgain();
    expect((await settledBooks(url, key)).spent).to.equal(21 * USAGE_COST);
    expect(running.child.exitCode).to.equal(null);
    running.child.kill('SIGTERM');
    expect((await running.finished).code).to.equal(0);
  });

  it('P11: a log reader that disconnects does not stop the gateway', async () => {
    await start({});
    running.child.stdout?.destroy();
    for (let n = 0; n < 20; n++) expect((await send()).status).to.equal(200);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await worksAgain();
    expect(running.child.exitCode).to.equal(null);
  });
});
