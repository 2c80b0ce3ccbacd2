import { expect } from 'chai';
import type Koa from 'koa';
import type { Principal } from '../../../contract/call.ts';
import type { Route } from '../../../contract/plugin.ts';
import { createKoa, createRouter, type RouterDeps } from '../../../core/http/koa.ts';
import { Lifecycle } from '../../../core/http/lifecycle.ts';
import { createHttpServer, listen } from '../../../core/http/server.ts';
import { createRequestSchemas } from '../../../core/plugins/registry.ts';
import { createSilentLog } from '../../support/log.ts';

const route = (method: Route['method'], path: string, rest: Partial<Route> = {}): Route => ({
  method,
  path,
  summary: 'x',
  auth: 'none',
  responses: { 200: 'x' },
  handler(ctx) {
    ctx.body = {
      params: ctx.params,
      body: ctx.state.body ?? null,
      user: (ctx.state.principal as Principal | undefined)?.userId ?? null,
    };
  },
  ...rest,
});
const says = (body: string): Partial<Route> => ({
  handler(ctx) {
    ctx.body = { body };
  },
});
const CALLERS: Readonly<Record<string, Principal>> = {
  key: { credential: 'key', userId: 'by-key', account: 'a' },
  token: { credential: 'token', userId: 'by-token', account: 'a', permissions: ['keys:write'] },
  weak: { credential: 'token', userId: 'weak', account: 'a' },
};
const BODY = {
  type: 'object',
  required: ['n'],
  additionalProperties: false,
  properties: { n: { type: 'integer' }, constructor: { type: 'string' } },
} as const;

describe('the router', () => {
  const routes: readonly Route[] = [
    route('GET', '/things/:id'),
    route('DELETE', '/things/:id'),
    route('GET', '/files/*path'),
    route('GET', '/order/first', says('a name')),
    route('GET', '/order/:id', says('a parameter')),
    route('GET', '/order/second', says('never')),
    route('GET', '/with-key', { auth: ['key'] }),
    route('GET', '/with-token', { auth: ['token'], permission: 'keys:write' }),
    route('GET', '/with-either', { auth: ['key', 'token'] }),
    route('POST', '/body', { body: BODY as never }),
    route('POST', '/maybe', { body: BODY as never, bodyOptional: true }),
    route('GET', '/query', {
      query: { type: 'object', required: ['q'], additionalProperties: false, properties: { q: { type: 'string' } } },
    }),
    route('POST', '/small', { body: { type: 'object' } as never, maxBodyBytes: 10 }),
  ];
  const deps = (more: Partial<RouterDeps> = {}): RouterDeps => ({
    routes: routes.map((value) => ({ owner: 'test', value })),
    requests: createRequestSchemas([]),
    authenticate: async ({ credential }) => CALLERS[credential],
    lifecycle: new Lifecycle(),
    maxBodyBytes: 1000,
    ...more,
  });
  let base: string;
  let stop: () => void;

  before(async () => {
    const koa: Koa = createKoa([createRouter(deps())], { lifecycle: new Lifecycle(), log: createSilentLog() });
    const server = createHttpServer(koa.callback(), {
      host: '127.0.0.1',
      port: 0,
      requestTimeoutMs: 5000,
      keepAliveMs: 1000,
    });
    base = `http://127.0.0.1:${await listen(server, '127.0.0.1', 0)}`;
    stop = () => void server.close().closeAllConnections();
  });
  after(() => stop());

  async function send(method: string, path: string, { key, body }: { key?: string | undefined; body?: unknown } = {}) {
    const headers = {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    };
    const response = await fetch(base + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const reply = (await response.json()) as {
      error?: { code: string; param: string | null; message: string };
      params?: object;
      user?: string;
      body?: unknown;
    };
    return { status: response.status, headers: response.headers, ...reply };
  }

  it('passes a handler its parameters, decoded, including slashes of a wildcard; an invalid escape stays unchanged', async () => {
    expect((await send('GET', '/things/%zz')).params).to.deep.equal({ id: '%zz' });
    expect((await send('GET', '/things/a%20b')).params).to.deep.equal({ id: 'a b' });
    expect((await send('GET', '/files/a/b/c.txt')).params).to.deep.equal({ path: 'a/b/c.txt' });
  });

  it('selects the first registered route for a path that several match', async () => {
    expect((await send('GET', '/order/first')).body).to.equal('a name');
    expect((await send('GET', '/order/second')).body).to.equal('a parameter');
  });

  it('returns 405 with the methods of a path, and 404 for an unknown one', async () => {
    const wrong = await send('POST', '/things/1', { body: {} });
    expect(wrong).to.deep.include({ status: 405 });
    expect(wrong.headers.get('allow'))
      .to.match(/DELETE/)
      .and.match(/GET/);
    expect(wrong.error?.code).to.equal('method_not_allowed');
    expect((await send('GET', '/nothing')).error?.code).to.equal('unknown_url');
  });

  const CREDENTIALS: readonly (readonly [path: string, key: string | undefined, outcome: string])[] = [
    ['/with-key', undefined, 'missing_api_key'],
    ['/with-key', 'unknown', 'invalid_api_key'],
    ['/with-key', 'key', 'by-key'],
    ['/with-key', 'token', 'invalid_api_key'],
    ['/with-token', undefined, 'missing_api_key'],
    ['/with-token', 'unknown', 'invalid_token'],
    ['/with-token', 'key', 'invalid_token'],
    ['/with-token', 'token', 'by-token'],
    ['/with-token', 'weak', 'permission_denied'],
    ['/with-either', 'key', 'by-key'],
    ['/with-either', 'weak', 'weak'],
    ['/things/1', 'unknown', 'null'],
  ];
  for (const [path, key, outcome] of CREDENTIALS)
    it(`answers ${key ?? 'no key'} on ${path} with ${outcome}`, async () => {
      const { error, user } = await send('GET', path, { key });
      expect(error?.code ?? String(user)).to.equal(outcome);
    });

  const BODIES: readonly (readonly [path: string, body: unknown, outcome: string])[] = [
    ['/body', { n: 1 }, '{"n":1}'],
    ['/body', undefined, 'invalid_request null'],
    ['/body', {}, 'invalid_request n'],
    ['/body', { n: '1' }, 'invalid_request n'],
    ['/body', { n: 1, more: 1 }, 'invalid_request more'],
    ['/body', [], 'invalid_request null'],
    ['/maybe', undefined, 'null'],
    ['/maybe', {}, 'invalid_request n'],
    ['/small', { long: 'x'.repeat(20) }, 'request_too_large null'],
  ];
  for (const [path, body, outcome] of BODIES)
    it(`answers ${JSON.stringify(body)?.slice(0, 30) ?? 'no body'} on ${path} with ${outcome}`, async () => {
      const response = await send('POST', path, { body });
      expect(
        response.error ? `${response.error.code} ${response.error.param}` : JSON.stringify(response.body),
      ).to.equal(outcome);
    });

  it('checks the query, and refuses unknown parameters', async () => {
    expect((await send('GET', '/query?q=x')).status).to.equal(200);
    expect((await send('GET', '/query')).error).to.include({ code: 'invalid_request', param: 'q' });
    expect((await send('GET', '/query?q=x&page=2')).error).to.include({ code: 'invalid_request', param: 'page' });
  });

  it('refuses at the start a schema that does not compile, by the plugin’s name', () => {
    const broken = route('POST', '/broken', {
      body: { type: 'object', properties: { a: { tpye: 'string' } } } as never,
    });
    expect(() => createRouter(deps({ routes: [{ owner: 'acme', value: broken }] }))).to.throw(
      /plugin "acme": the body schema of POST \/broken does not compile/,
    );
  });
});
