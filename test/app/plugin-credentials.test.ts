import http from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile, readText, startError } from '../support/plugins/plugin-file.ts';

/** Reads a request in every possible way: before, during and after its handling, later, and in its own route. */
const SPY = pluginFile({
  setup: `
    const seen = [];
    const look = (when, ctx) => seen.push(when + ' ' + JSON.stringify([
      ctx.headers, ctx.header, ctx.request.headers, ctx.req.headers, ctx.req.rawHeaders, ctx.req.headersDistinct,
      ctx.get('authorization'), ctx.get('x-api-key'), ctx.cookies.get('tollgate-session'), ctx.state,
    ]));
    api.use(async (ctx, next) => {
      if (ctx.path === '/seen') return next();
      look('before', ctx);
      setTimeout(look, 0, 'later', ctx);
      ctx.req.headers['x-session-id'] = 'of the plugin';
      const work = next();
      look('while', ctx);
      await work;
      look('after', ctx);
    });
    api.route({ method: 'POST', path: '/own', summary: 'x', auth: ['key'], responses: { 200: 'x' },
      async handler(ctx) { look('route', ctx); await null; look('route later', ctx); ctx.body = { user: ctx.state.principal.userId, session: ctx.state.session }; } });
    api.upgrade('/socket', async ({ request, recheck }) => {
      await recheck();
      throw new GatewayError('invalid_request', 'checked again ' + JSON.stringify([request.headers, request.rawHeaders, request.headersDistinct]));
    });
    api.route({ method: 'GET', path: '/seen', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen; } });`,
});

describe('third-party plugins’ view of a request', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ policies: { spy: { plugin: './spy.mjs' } } }, { files: { 'spy.mjs': SPY } });
  });
  after(() => gateway?.stop());

  const seen = async () => (await (await fetch(`${gateway.url}/seen`)).json()) as readonly string[];

  for (const [where, credential] of [
    ['authorization', (key: string) => ({ authorization: `Bearer ${key}` })],
    ['x-api-key', (key: string) => ({ 'x-api-key': key })],
    ['x-goog-api-key', (key: string) => ({ 'x-goog-api-key': key })],
  ] as const)
    it(`E63: has no credential in ${where}, at any time and in any way, while the call is authenticated by it`, async () => {
      const headers = {
        'content-type': 'application/json',
        cookie: 'tollgate-session=secret-session',
        ...credential(gateway.key),
      };
      const path = where === 'x-goog-api-key' ? '/v1beta/models/echo:generateContent' : CHAT;
      const body =
        where === 'x-goog-api-key' ? { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] } : chatOf('Hello');
      const response = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      expect(response.status, gateway.logText()).to.equal(200);
      await response.text();
      const looks = await seen();
      expect(looks.map((look) => look.split(' ')[0])).to.include.members(['before', 'while', 'after']);
      expect(looks.join('\n'))
        .to.include('content-type')
        .and.not.include(gateway.key)
        .and.not.include('secret-session');
    });

  it('E63: has no credential in its own websocket, whose caller is re-authenticated all the same', async () => {
    const headers = {
      authorization: `Bearer ${gateway.key}`,
      connection: 'upgrade',
      upgrade: 'websocket',
      'x-own': 'yes',
    };
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      http.get(`${gateway.url}/socket`, { headers }, resolve).on('error', reject);
    });
    const reported = await text(response);
    expect(reported).to.include('checked again').and.include('x-own').and.not.include(gateway.key);
  });

  it('E63: has no credential in its own route, which knows the caller; header changes by middleware apply', async () => {
    const response = await gateway.post('/own', undefined);
    expect(await response.json()).to.deep.equal({ user: 'local', session: 'of the plugin' });
    const looks = await seen();
    expect(looks.filter((look) => look.startsWith('route'))).to.have.length(2);
    expect(looks.join('\n')).not.to.include(gateway.key);
  });
});

describe('a plugin whose middleware throws', () => {
  it('E32: does not affect /livez, /readyz and /healthz, whatever it does to requests', async () => {
    const setup = `api.use((ctx) => { if (ctx.path === '/healthz') return new Promise(() => {}); throw new Error('at every request'); });`;
    const gateway = await startGateway({ plugins: ['./bad.mjs'] }, { files: { 'bad.mjs': pluginFile({ setup }) } });
    try {
      for (const path of ['/livez', '/readyz', '/healthz'])
        expect((await gateway.get(path)).status, path).to.equal(200);
      expect((await gateway.post(CHAT, chatOf('x'))).status).to.equal(500);
    } finally {
      await gateway.stop();
    }
  });
});

describe('the ledger', () => {
  const setup = `api.route({ method: 'POST', path: '/mint', summary: 'x', auth: 'none', responses: { 200: 'x' },
    async handler(ctx) { await api.books.ledger.credit('local', 'mint', 1_000_000_000, 'a gift', Date.now()); ctx.body = {}; } });`;
  const start = (more: string): Promise<TestGateway> =>
    startGateway({ plugins: ['./mint.mjs'] }, { files: { 'mint.mjs': pluginFile({ name: 'mint', setup, more }) } });

  it('E63: is inaccessible to a plugin that does not declare the permission', async () => {
    const gateway = await start('');
    try {
      const response = await gateway.post('/mint', undefined);
      expect(response.status).to.equal(500);
      expect(gateway.logText()).to.include(
        `uses api.books.ledger, which its definition does not declare: permissions: ['ledger']`,
      );
    } finally {
      await gateway.stop();
    }
  });

  it('E63: is accessible to one that declares it, which operators see', async () => {
    const gateway = await start(`permissions: ['ledger'],`);
    try {
      const response = await gateway.post('/mint', undefined);
      expect(response.status, gateway.logText()).to.equal(200);
      await readText(response);
      const { api_key: key } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'root',
        '--admin',
      );
      const list = await gateway.get('/api/core/admin/plugins', { authorization: `Bearer ${key}` });
      const { data } = (await list.json()) as { data: readonly { name: string; permissions: readonly string[] }[] };
      expect(data.find(({ name }) => name === './mint.mjs')?.permissions).to.deep.equal(['ledger']);
    } finally {
      await gateway.stop();
    }
  });

  it('E63: refuses an unknown permission at the start', async () => {
    expect(await startError(start(`permissions: ['everything'],`))).to.match(/permissions.*everything.*ledger/);
  });
});
