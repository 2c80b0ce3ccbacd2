import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { createReloader } from '../../cli/reload.ts';
import { loadConfig } from '../../config/load-config.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type RoutingRig, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { createSilentLog } from '../support/log.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { chunk, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';

const SECRET = 'sk-vendor-0123456789abcdef0123456789abcdef';

describe('the state of targets for operators', () => {
  let rig: RoutingRig;
  let admin: Record<string, string>;
  before(async () => {
    rig = await startRoutingRig({ pair: ['a/pair', 'b/pair'] }, { c: { baseUrl: 'http://127.0.0.1:1' } });
    const words = ['keys', 'create', '--user', 'root', '--admin'];
    const { api_key: key } = await rig.gateway.command<{ api_key: string }>(...words);
    admin = { authorization: `Bearer ${key}` };
    const body = { error: { message: `The key ${SECRET} of org-abc12345678 is limited` } };
    rig.vendors['a']?.script(respondWith(429, body, { 'retry-after': '60' }));
    await rig.send('pair', {}, { 'x-request-id': 'targets-0001' });
    await rig.send('c/gone');
    await rig.send('c/more');
  });
  after(() => rig?.stop());

  interface Row {
    readonly target: string;
    readonly [field: string]: unknown;
  }
  const read = async (query = '') => {
    const response = await rig.gateway.get(`/api/core/admin/targets${query}`, admin);
    expect(response.status).to.equal(200);
    return (await response.json()) as { data: Row[]; has_more: boolean; next?: string; retries: object };
  };

  it('has the time of its next retry, errors, latency, and the vendor’s message without secrets', async () => {
    const { data, has_more, retries } = await read();
    const [a, b, gone] = data;
    expect(data.map(({ target }) => target)).to.deep.equal(['a/pair', 'b/pair', 'c/gone', 'c/more']);
    expect(a).to.include({ state: 'open', cause: 'rate_limit', attempts: 1, error_ratio: 1 });
    expect(Date.parse(String(a?.['open_until']))).to.be.within(Date.now() + 30_000, Date.now() + 61_000);
    expect(a?.['last_error']).to.include({ class: 'rate_limit', status: 429, request_id: 'targets-0001' });
    expect(JSON.stringify(data))
      .to.include('is limited')
      .and.not.to.match(/sk-vendor|org-abc|127\.0\.0\.1/);
    expect(b).to.include({ state: 'closed', error_ratio: 0, attempts: 1 }).and.to.have.property('whole_ms');
    expect(gone?.['last_error']).to.include({ class: 'upstream_error', errno: 'ECONNREFUSED' });
    expect(has_more).to.equal(false);
    expect(retries).to.deep.include({ running: 0, allowed: 3 });
  });

  it('shows the callable targets of the configuration after a start, before any call (E51)', async () => {
    const vendor = { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9' };
    const started = await startGateway({
      providers: {
        echo: {},
        north: { ...vendor, apiKey: 'k', models: ['m', '*'] },
        keyless: { plugin: 'openai', models: ['gpt-5'] },
      },
      models: { smart: ['north/n', 'echo/echo'], old: 'keyless/gpt-5', 'any-*': 'north/*' },
    });
    try {
      const { api_key: key } = await started.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'root',
        '--admin',
      );
      const response = await started.get('/api/core/admin/targets', { authorization: `Bearer ${key}` });
      const { data } = (await response.json()) as { data: Row[] };
      expect(data.map(({ target, state, attempts }) => [target, state, attempts])).to.deep.equal([
        ['echo/echo', 'closed', 0],
        ['north/m', 'closed', 0],
        ['north/n', 'closed', 0],
      ]);
    } finally {
      await started.stop();
    }
  });

  it('comes in pages', async () => {
    const first = await read('?limit=3');
    expect(first).to.deep.include({ has_more: true, next: 'c/gone' });
    const second = await read(`?limit=3&after=${encodeURIComponent(first.next ?? '')}`);
    expect(second.data.map(({ target }) => target)).to.deep.equal(['c/more']);
    expect(second).to.include({ has_more: false }).and.not.to.have.property('next');
  });

  for (const query of [
    '?limit=0',
    '?limit=1e9',
    '?limit=1001',
    '?limit=99999',
    `?after=${'x'.repeat(501)}`,
    '?state=open',
  ])
    it(`is refused with a clear error for ${query.slice(0, 20)}`, async () => {
      const response = await rig.gateway.get(`/api/core/admin/targets${query}`, admin);
      expect(response.status).to.equal(400);
      expect(await response.json()).to.have.nested.property('error.code', 'invalid_request');
    });

  it('is for operators only', async () => {
    for (const response of [
      await rig.gateway.get('/api/core/admin/targets'),
      await rig.gateway.post('/api/core/admin/reload', {}),
    ])
      expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).to.deep.equal([
        403,
        'permission_denied',
      ]);
  });

  it('belongs to the policy "admin", as the routes of reload, configuration and plugins do', () => {
    const paths = rig.gateway.openApi['paths'] as Record<string, Record<string, { readonly tags: readonly string[] }>>;
    for (const [path, method] of [
      ['targets', 'get'],
      ['reload', 'post'],
      ['configuration', 'get'],
      ['plugins', 'get'],
    ] as const)
      expect(paths[`/api/core/admin/${path}`]?.[method]?.tags, path).to.deep.equal(['admin']);
  });

  it('is also logged as a warning for each failed attempt: target, status or errno, class, message, request, next step', () => {
    const line = (target: string) => rig.gateway.logs.find((each) => each['target'] === target);
    expect(line('a/pair')).to.include({ level: 'warn', status: 429, class: 'rate_limit', next: 'b/pair' });
    expect(line('a/pair')).to.include({ request_id: 'targets-0001' });
    expect(line('c/gone')).to.include({ level: 'warn', errno: 'ECONNREFUSED', class: 'upstream_error' });
    expect(rig.gateway.logText()).not.to.match(/sk-vendor|org-abc/);
  });

  it('includes a stream that was interrupted', async () => {
    rig.vendors['d']?.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      wire.reset();
    });
    await rig.send('d/breaks', { stream: true });
    const row = (await read()).data.find(({ target }) => target === 'd/breaks');
    expect(row?.['last_error']).to.include({ class: 'upstream_error' });
    const line = rig.gateway.logs.find((each) => each['target'] === 'd/breaks');
    expect(line).to.include({ msg: 'an attempt failed', next: 'end' });
  });
});

/** Shows what operators changed. */
const AUDIT = pluginFile({
  name: 'show-audit',
  kind: 'policy',
  more: `permissions: ['operators'],`,
  setup: `api.route({ method: 'GET', path: '/audit', summary: 'x', auth: ['key'], responses: { 200: 'x' },
    async handler(ctx) { ctx.body = await api.operators.auditLog({ limit: 10 }); } });`,
});

describe('POST /api/core/admin/reload', () => {
  let gateway: TestGateway;
  let admin: Record<string, string>;
  before(async () => {
    const config = { policies: { 'show-audit': { plugin: './audit.mjs' } } };
    gateway = await startGateway(config, { files: { 'audit.mjs': AUDIT } });
    const words = ['keys', 'create', '--user', 'root', '--admin'];
    const { api_key: key } = await gateway.command<{ api_key: string }>(...words);
    admin = { authorization: `Bearer ${key}` };
  });
  after(() => gateway?.stop());

  const reload = async (body?: object) => {
    const response = await gateway.post('/api/core/admin/reload', body, admin);
    // biome-ignore lint/suspicious/noExplicitAny: of every shape
    return { status: response.status, body: (await response.json()) as any };
  };
  const statusOf = async (model: string): Promise<number> =>
    (await gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] })).status;

  it('is disabled in a program that reads its configuration itself', async () => {
    expect(await reload({})).to.have.nested.property('body.error.code', 'feature_disabled');
  });

  it('returns the changes of a reload, reloads, and gives the reason of a failure; the audit log has all actions', async () => {
    const { folder, use, recordReload: noteReload, audit } = gateway;
    const configPath = path.join(folder, 'tollgate.config.json');
    const load = () => loadConfig({ cwd: folder, env: {}, configPath });
    const log = createSilentLog();
    const inspect = () => Promise.resolve([]);
    const deps = { loaded: await load(), log, read: load, inspect, swap: use, note: noteReload, audit };
    gateway.reloadBy(createReloader(deps));
    const before = JSON.parse(await readFile(configPath, 'utf8')) as object;
    await writeFile(configPath, JSON.stringify({ ...before, models: { other: 'echo/echo' } }));
    const trial = await reload({ diff: true });
    expect(trial.body).to.include({ object: 'reload', reloaded: false });
    const [change] = trial.body.changes;
    expect(change).to.deep.equal({ path: 'models.other', after: '"echo/echo"', needs_restart: false });
    expect(await statusOf('other'), 'nothing has changed').to.equal(404);
    const done = await reload();
    expect(done.body).to.deep.include({ reloaded: true, changes: [change] });
    expect(await statusOf('other')).to.equal(200);
    await writeFile(configPath, '{"nonsense": 1}');
    for (const body of [{}, { diff: true }]) {
      const refused = await reload(body);
      expect([refused.status, refused.body.error.code]).to.deep.equal([409, 'conflict']);
      expect(refused.body.error.message).to.include('nonsense').and.not.to.include(folder);
    }
    expect(await statusOf('other'), 'the former one goes on').to.equal(200);
    expect((await reload({ diff: 'yes' })).status).to.equal(400);
    const { entries } = (await (await gateway.get('/audit')).json()) as { entries: Record<string, object>[] };
    const [entry, ...others] = entries.filter(({ action }) => String(action) === 'configuration.reload');
    expect(others, 'neither what was only asked nor what was refused').to.deep.equal([]);
    expect(entry?.['actor']).to.include({ via: 'api', userId: 'root' });
    expect(entry?.['after']).to.deep.include({ changes: [change] });
  });
});
