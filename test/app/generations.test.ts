import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { type LoadedConfig, loadConfig } from '../../config/load-config.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Reports its generation, counts its calls and records when it closes. */
const WITNESS = pluginFile({
  name: 'witness',
  more: `permissions: ['operators'], configSchema: { type: 'object', properties: { label: { type: 'string' }, fails: { enum: ['setup', 'ready'] } } },`,
  setup: `
    const { label, fails } = config;
    let admitted = 0;
    let finished = 0;
    const kept = api.keep('hits', () => ({ n: 0, madeBy: label }), ({ madeBy, n }) => api.log.info({ kept: madeBy, n }, 'kept is closed'));
    api.hook('admit', () => { admitted += 1; kept.n += 1; });
    api.hook('finish', async () => { await new Promise((resolve) => setTimeout(resolve, 30)); finished += 1; });
    api.use(async (ctx, next) => { ctx.set('x-generation', label); await next(); });
    const gather = api.operators.gather('label', () => label);
    api.route({ method: 'GET', path: '/witness', summary: 'x', auth: 'none', responses: { 200: 'x' }, async handler(ctx) { ctx.body = { label, kept, gathered: await gather() }; } });
    api.route({ method: 'GET', path: '/only-' + label, summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = {}; } });
    api.onClose(() => api.log.info({ closed: label, admitted, finished }, 'generation is closed'));
    api.onReady(() => { if (fails === 'ready') throw new Error('not ready'); });
    if (fails === 'setup') throw new Error('not set up');
  `,
});

describe('another configuration in a running gateway', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  const configOf = (label: string, more: Record<string, unknown> = {}) => ({
    providers: {
      echo: {},
      slow: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] },
    },
    policies: { overload: false, metrics: { auth: 'none' }, witness: { plugin: './witness.mjs', label } },
    ...more,
  });

  /** Loads a second configuration while the first one runs. */
  async function load(label: string, more: Record<string, unknown> = {}): Promise<LoadedConfig> {
    const configPath = path.join(gateway.folder, `${label}.json`);
    const base = { server: { port: 0, drainDelay: '0s' }, store: 'sqlite:./data', auth: { 'api-key': {} } };
    await writeFile(configPath, JSON.stringify({ ...base, ...configOf(label, more) }));
    return loadConfig({ cwd: gateway.folder, env: {}, configPath });
  }

  beforeEach(async () => {
    upstream = await startScriptedUpstream();
    gateway = await startGateway(configOf('one'), { files: { 'witness.mjs': WITNESS } });
  });
  afterEach(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const witness = async () => (await (await gateway.get('/witness')).json()) as { label: string; kept: { n: number } };
  const closings = () => gateway.logs.filter(({ msg }) => msg === 'generation is closed');
  const send = (body: object) =>
    gateway.post('/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], ...body });

  it('takes over under load without losing any of 200 calls, and the first closes once, after its last call @slow', async () => {
    upstream.script(async (wire) => {
      const { stream } = wire.request.json() as { stream?: boolean };
      await wire.pause(20 + Math.random() * 300);
      if (!stream) return wire.send(respondWith(200, completion('whole')));
      await wire.send(SSE_HEAD);
      for (const text of ['in ', 'pie', 'ces']) {
        await wire.send(chunk(`data: ${delta(text)}\n\n`));
        await wire.pause(Math.random() * 100);
      }
      await wire.send(chunk(`data: ${delta('', 'stop')}\n\n`));
      await wire.send(chunk('data: [DONE]\n\n'));
      await wire.send('0\r\n\r\n');
    });
    const next = await load('two');
    const served: Record<string, number> = {};
    const call = async (n: number): Promise<void> => {
      const stream = n % 2 === 0;
      const response = await send({ model: 'slow/m', stream });
      const text = await response.text();
      expect(response.status, text).to.equal(200);
      expect(text).to.include(stream ? '[DONE]' : 'whole');
      const label = response.headers.get('x-generation') ?? '';
      served[label] = (served[label] ?? 0) + 1;
    };
    const before = Array.from({ length: 150 }, (_, n) => call(n));
    await upstream.request(60);
    const swapped = gateway.use(next);
    const during = Array.from({ length: 50 }, (_, n) => call(n));
    await swapped;
    expect((await witness()).label).to.equal('two');
    await Promise.all([...before, ...during]);
    expect(served['one']).to.be.above(0);
    await eventually(async () => expect(closings()).to.have.lengthOf(1));
    await call(1);
    expect(served['two']).to.be.above(0);
    expect((served['one'] ?? 0) + (served['two'] ?? 0)).to.equal(201);
    expect(closings()[0]).to.include({ closed: 'one', admitted: served['one'], finished: served['one'] });
  });

  it('waits for a caller who left: work after its call is done before the close', async () => {
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('so far')}\n\n`));
      await wire.hang();
    });
    const leaving = new AbortController();
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'slow/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    });
    await response.body?.getReader().read();
    await gateway.use(await load('two'));
    expect(closings()).to.deep.equal([]);
    leaving.abort();
    await eventually(async () => expect(closings()).to.have.lengthOf(1));
    expect(closings()[0]).to.include({ closed: 'one', admitted: 1, finished: 1 });
  });

  for (const fails of ['setup', 'ready'] as const)
    it(`that fails in ${fails} leaves the running one unchanged`, async () => {
      const bad = await load('two', {
        policies: { overload: false, witness: { plugin: './witness.mjs', label: 'two', fails } },
      });
      const error = await gateway.use(bad).catch((thrown: Error) => thrown);
      expect(String(error)).to.include(`plugin "witness": ${fails === 'setup' ? 'setup' : 'onReady'} failed: not`);
      expect(await witness()).to.deep.include({ label: 'one', gathered: ['one'] });
      expect((await send({ model: 'echo/echo' })).status).to.equal(200);
      expect(closings().map(({ closed }) => closed)).to.deep.equal(['two']);
      expect((await witness()).kept.n).to.equal(1);
    });

  it('with an invalid route is refused like a failed set-up', async () => {
    const files = `export default { name: 'broken', kind: 'policy', apiVersion: 1, setup(api) { api.route({ method: 'GET', path: '/livez', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler() {} }); } };`;
    await writeFile(path.join(gateway.folder, 'broken.mjs'), files);
    const error = await gateway.use(await load('two', { plugins: ['./broken.mjs'] })).catch((thrown: Error) => thrown);
    expect(String(error)).to.include('belongs to core');
    expect((await witness()).label).to.equal('one');
  });

  it('inherits its plugins’ shared resources, which are closed when no configuration uses them', async () => {
    await send({ model: 'echo/echo' });
    await gateway.use(await load('two'));
    await send({ model: 'echo/echo' });
    expect((await witness()).kept).to.deep.equal({ n: 2, madeBy: 'one' });
    expect(gateway.logText()).not.to.include('kept is closed');
    await gateway.use(await load('three', { policies: { overload: false } }));
    await eventually(async () => expect(gateway.logText()).to.include('kept is closed'));
    expect(gateway.logs.filter(({ msg }) => msg === 'kept is closed')).to.have.lengthOf(1);
    expect(closings().map(({ closed }) => closed)).to.deep.equal(['one', 'two']);
    expect((await gateway.get('/witness')).status).to.equal(404);
  });

  it('uses its own aliases, plans and routes, and is the one that workers report', async () => {
    expect((await send({ model: 'quick' })).status).to.equal(404);
    const plans = { plans: { tight: { rpm: 1 } }, defaultPlan: 'tight' };
    await gateway.use(await load('two', { models: { quick: ['echo/echo'] }, ...plans }));
    expect((await send({ model: 'quick' })).status).to.equal(200);
    expect((await send({ model: 'quick' })).status).to.equal(429);
    expect(await witness()).to.deep.include({ label: 'two', gathered: ['two'] });
    expect((await gateway.get('/only-one')).status).to.equal(404);
    expect((await gateway.get('/only-two')).status).to.equal(200);
    const openApi = (await (await gateway.get('/openapi.json')).json()) as { paths: object };
    expect(openApi.paths).to.have.property('/only-two');
    expect(openApi.paths).not.to.have.property('/only-one');
  });

  it('may be replaced many times, also while earlier ones are active; each is closed once', async () => {
    upstream.script(async (wire) => {
      await wire.pause(400);
      await wire.send(respondWith(200, completion()));
    });
    const labels = ['two', 'three', 'four'];
    const calls: Promise<Response>[] = [];
    for (const label of labels) {
      calls.push(send({ model: 'slow/m' }));
      await gateway.use(await load(label));
    }
    for (const response of await Promise.all(calls)) expect(response.status).to.equal(200);
    await eventually(async () => expect(closings()).to.have.lengthOf(3));
    expect(closings().map(({ closed }) => closed)).to.have.members(['one', 'two', 'three']);
    expect((await witness()).label).to.equal('four');
  });

  it('lets streams of the previous one continue, and a drain cancels them at its deadline like all others', async () => {
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      await wire.hang();
    });
    const response = await send({ model: 'slow/m', stream: true });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).to.include('one');
    await gateway.use(await load('two', { server: { port: 0, drainDelay: '0s', drainTimeout: '200ms' } }));
    expect((await witness()).label).to.equal('two');
    expect(closings(), 'its stream goes on').to.deep.equal([]);
    const closed = gateway.close();
    let rest = '';
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) rest += part.value;
    expect(rest).to.include('"code":"shutting_down"');
    await closed;
    expect(closings().map((each) => each['closed'])).to.have.members(['one', 'two']);
    await upstream.requests[0]?.closed;
  });

  it('preserves the metrics', async () => {
    const requests = async () =>
      /tollgate_http_requests_total\{[^}]*chat\/completions[^}]*\} (\d+)/.exec(
        await (await gateway.get('/metrics')).text(),
      )?.[1];
    await send({ model: 'echo/echo' });
    const before = await requests();
    await gateway.use(await load('two'));
    await send({ model: 'echo/echo' });
    expect(Number(await requests())).to.equal(Number(before) + 1);
  });
});
