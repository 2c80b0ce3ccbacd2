import { expect } from 'chai';
import { connectTo, readToEnd } from '../support/clients/raw-socket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

describe('below the prefix of a client format', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs' } },
        server: { port: 0, bodyLimit: '1kb' },
        policies: { gate: { plugin: './gate.mjs' } },
      },
      {
        files: {
          ...MINI_FILES,
          'gate.mjs': pluginFile({
            name: 'gate',
            setup: `api.use((ctx, next) => {
              if (ctx.get('x-late')) throw new GatewayError('overloaded', 'Come back later.', { retryAfterMs: 2000 });
              return next();
            });`,
          }),
        },
      },
    );
  });
  after(() => gateway?.stop());

  const CASES: readonly (readonly [what: string, path: string, init: RequestInit, status: number, code: string])[] = [
    ['a path without a route', '/mini/nothing', { method: 'POST', body: '{}' }, 404, 'unknown_url'],
    ['the prefix itself', '/mini', {}, 404, 'unknown_url'],
    ['another case and two slashes', '/MINI//nothing/', {}, 404, 'unknown_url'],
    ['another method', '/mini/chat', { method: 'DELETE' }, 405, 'method_not_allowed'],
    [
      'no credential',
      '/mini/chat',
      { method: 'POST', body: '{}', headers: { authorization: '' } },
      401,
      'missing_api_key',
    ],
    [
      'a large body',
      '/mini/chat',
      { method: 'POST', body: JSON.stringify({ m: 'x'.repeat(2000) }) },
      413,
      'request_too_large',
    ],
    ['a body that is no JSON', '/mini/chat', { method: 'POST', body: '{' }, 400, 'invalid_json'],
    ['a plugin’s refusal before any route', '/mini/nothing', { headers: { 'x-late': '1' } }, 503, 'overloaded'],
  ];
  for (const [what, path, init, status, code] of CASES)
    it(`${what} is ${status} in the format`, async () => {
      const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...init.headers };
      const response = await fetch(gateway.url + path, { ...init, headers });
      expect(response.status).to.equal(status);
      const id = response.headers.get('x-request-id');
      expect(await response.json()).to.include({ mini: code, id });
      expect(response.headers.get('request-id')).to.equal(id);
    });

  it('an error elsewhere stays in OpenAI’s format', async () => {
    for (const path of ['/minimal/x', '/nothing/mini'])
      expect(await (await gateway.get(path)).json(), path).to.have.nested.property('error.code', 'unknown_url');
  });

  it('a colon may be escaped in the path', async () => {
    for (const path of ['/mini/echo%2Fecho%3Asay', '/mini/echo%2Fecho%3asay', '/mini/echo%2Fecho:say'])
      expect((await gateway.post(path, { say: 'hi' })).status, path).to.equal(200);
  });

  it('an unknown query parameter is ignored', async () => {
    const response = await gateway.post('/mini/chat?beta=true&x=%zz', { m: 'echo/echo', say: 'hi' });
    expect(await response.json()).to.deep.equal({ said: 'hi' });
    expect((await gateway.get('/v1/models?limit=1000')).status).to.equal(200);
  });
});

describe('the root of a gateway', () => {
  it('answers GET and HEAD without a credential, and without its version', async () => {
    const gateway = await startGateway();
    try {
      const response = await fetch(`${gateway.url}/`);
      expect(response.status).to.equal(200);
      expect(await response.json()).to.deep.equal({ name: 'tollgate', docs: '/docs' });
      const head = await fetch(`${gateway.url}/?x=1`, { method: 'HEAD' });
      expect([head.status, await head.text()]).to.deep.equal([200, '']);
      expect((await fetch(`${gateway.url}/`, { method: 'POST' })).status).to.equal(405);
    } finally {
      await gateway.stop();
    }
  });

  it('belongs to a plugin that has a page there', async () => {
    const setup = `api.route({ method: 'GET', path: '/', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = 'mine'; } });`;
    const gateway = await startGateway(
      { policies: { page: { plugin: './page.mjs' } } },
      { files: { 'page.mjs': pluginFile({ name: 'page', setup }) } },
    );
    try {
      expect(await (await fetch(`${gateway.url}/`)).text()).to.equal('mine');
    } finally {
      await gateway.stop();
    }
  });

  it('returns the request id under both names, also for invalid HTTP', async () => {
    const gateway = await startGateway();
    try {
      const socket = await connectTo(gateway.url);
      socket.write('nonsense\r\n\r\n');
      const text = await readToEnd(socket);
      const [, id] = /^x-request-id: (\S+)/m.exec(text) ?? [];
      expect(id).to.be.a('string');
      expect(text).to.include(`\r\nrequest-id: ${id}\r\n`);
    } finally {
      await gateway.stop();
    }
  });
});
