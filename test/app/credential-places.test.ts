import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

/** Records all that middleware and hooks of a plugin can see of a request. */
const SPY = pluginFile({
  setup: `
    const seen = [];
    api.use((ctx, next) => {
      const { url, originalUrl, href, querystring, search, query, headers, path } = ctx;
      seen.push(JSON.stringify({ url, originalUrl, href, querystring, search, query, headers, path, raw: ctx.req.rawHeaders, of: ctx.req.url, state: ctx.state, from: ctx.request.originalUrl }));
      return next();
    });
    api.route({ method: 'GET', path: '/seen', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen.join('\\n'); } });
    api.route({ method: 'GET', path: '/own', summary: 'x', auth: ['key'], responses: { 200: 'x' },
      query: { type: 'object', properties: { key: { type: 'string' } } }, handler(ctx) { ctx.body = { key: ctx.query.key ?? null }; } });`,
});

const PLACEHOLDER = 'sk-placeholder-1234567890';

describe('the places of a credential', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs' } },
        policies: { probe: { plugin: './probe.mjs' }, 'access-log': {}, metrics: { auth: 'none' } },
      },
      { files: { ...MINI_FILES, 'probe.mjs': SPY }, level: 'debug' },
    );
  });
  after(() => gateway?.stop());

  const BODY = JSON.stringify({
    m: 'echo/echo',
    say: 'hi',
    model: 'echo/echo',
    messages: [{ role: 'user', content: 'hi' }],
  });
  const send = async (path: string, headers: Record<string, string> = {}, body = BODY) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    return { status: response.status, text: await response.text() };
  };

  it('on the model list, which clients of every format call, are the headers of all formats and no parameter', async () => {
    const { key } = gateway;
    const models = (path: string, headers: Record<string, string> = {}) =>
      fetch(gateway.url + path, { headers }).then(({ status }) => status);
    expect(await models('/v1/models', { 'x-mini-key': key })).to.equal(200);
    expect(await models('/v1/models/echo/echo', { 'x-mini-key': key })).to.equal(200);
    expect(await models(`/v1/models?key=${key}`)).to.equal(401);
    expect(gateway.logText()).not.to.include(key);
  });

  it('of a client format are its header and its parameter, below its prefix', async () => {
    const { key } = gateway;
    for (const [path, headers] of [
      ['/mini/chat', { 'x-mini-key': key }],
      [`/mini/chat?key=${key}`, {}],
      [`/mini/chat?alt=sse&%6Bey=${key}&x=1`, {}],
      [`//mini//chat?key=${key}`, {}],
      [`/mini/chat?key=${key}`, { authorization: `Bearer ${key}`, 'x-api-key': key, 'x-mini-key': key }],
    ] as const)
      expect(await send(path, headers), path).to.deep.equal({ status: 200, text: '{"said":"hi"}' });
    const { status, text } = await send(`/MINI/chat?key=${key}`);
    expect(status).to.equal(404);
    expect(text).to.not.include(key);
  });

  it('leave the rest of the query, and hide header and parameter from the dialect', async () => {
    const { text } = await send(
      `/mini/echo%2Fecho%3Asay?a=1&key=${gateway.key}&b=2`,
      { 'x-mini-key': gateway.key, 'x-other': '1' },
      '{}',
    );
    expect(text).to.include('{\\"query\\":{\\"a\\":\\"1\\",\\"b\\":\\"2\\"}').and.include('x-other');
    expect(text).not.to.match(/x-mini-key|"authorization|tg_/);
  });

  it('of one format are ignored elsewhere', async () => {
    const header = await send('/v1/chat/completions', { 'x-mini-key': gateway.key });
    expect(header.status).to.equal(401);
    expect(header.text).to.include('missing_api_key');
    const inUrl = await send(`/v1/chat/completions?key=${gateway.key}`);
    expect(inUrl.status).to.equal(401);
    expect(inUrl.text).to.include('URLs are logged').and.not.include(gateway.key);
    // Rejected even if the same key is also in its right place: the client must learn of its mistake.
    expect((await send(`/v1/chat/completions?key=${gateway.key}`, { 'x-api-key': gateway.key })).status).to.equal(401);
  });

  it('are not read from a parameter that the route itself defines', async () => {
    const headers = { authorization: `Bearer ${gateway.key}` };
    expect(await (await fetch(`${gateway.url}/own?key=blue`, { headers })).json()).to.deep.equal({ key: 'blue' });
    expect((await fetch(`${gateway.url}/own?key=blue`)).status).to.equal(401);
    expect((await fetch(`${gateway.url}/own?key=${gateway.key}`, { headers })).status).to.equal(401);
  });

  it('may contain a placeholder in addition to the right credential, in any order', async () => {
    const { key } = gateway;
    for (const headers of [
      { authorization: `Bearer ${PLACEHOLDER}`, 'x-api-key': key },
      { authorization: `Bearer ${key}`, 'x-api-key': PLACEHOLDER },
      { authorization: 'Bearer dummy', 'x-api-key': 'none', 'x-mini-key': key },
    ])
      expect((await send('/mini/chat', headers)).status, JSON.stringify(headers)).to.equal(200);
    expect((await send(`/mini/chat?key=${PLACEHOLDER}`, { 'x-api-key': key })).status).to.equal(200);
  });

  it('may not contain a token of the caller’s subscription in addition to a key: the operator would pay, and it is never passed on (E12)', async () => {
    const { key } = gateway;
    const claims = Buffer.from('{"iss":"https://auth.openai.com","sub":"u"}').toString('base64url');
    const tokens = ['sk-ant-oat01-0123456789abcdefghij', `eyJhbGciOiJub25lIn0.${claims}.c2ln`, 'ya29.a0123456789'];
    const paths = ['/v1/messages', '/v1/chat/completions', '/v1/responses', '/v1beta/models/echo/echo:generateContent'];
    for (const token of tokens)
      for (const path of paths)
        for (const headers of [
          { authorization: `Bearer ${token}`, 'x-api-key': key },
          { authorization: `Bearer ${key}`, 'x-api-key': token },
        ]) {
          const { status, text } = await send(path, headers);
          expect(status, `${path} ${token}`).to.equal(400);
          expect(text).to.include('subscription').and.not.include(token).and.not.include(key);
        }
    const alone = await send('/v1/messages', { authorization: `Bearer ${tokens[0]}` });
    expect(alone.status, 'no key of this gateway').to.equal(401);
  });

  it('may not contain two different keys of this gateway: that is a 400 in any place', async () => {
    const { key } = gateway;
    const { api_key: other } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'other');
    const wrong = `${key.slice(0, -3)}abc`;
    for (const second of [other, wrong])
      for (const [path, headers] of [
        ['/mini/chat', { authorization: `Bearer ${key}`, 'x-api-key': second }],
        ['/mini/chat', { 'x-mini-key': key, 'x-api-key': second }],
        [`/mini/chat?key=${second}`, { authorization: `Bearer ${key}` }],
        [`/mini/chat?key=${second}&key=${key}`, {}],
      ] as const) {
        const { status, text } = await send(path, headers);
        expect(status, path).to.equal(400);
        expect(text).to.include('ambiguous_credentials').and.not.include(second);
      }
  });

  it('leave no key in logs, metrics or errors, nor visible to plugins', async () => {
    const fresh = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'seen');
    const secret = fresh.api_key;
    const responses = [
      await send(`/mini/chat?key=${secret}`),
      await send(`/mini/chat?key=${secret}`, {}, '{'),
      await send(`/mini/nothing?a=1&key=${secret}`),
      await send(`/mini?key=${secret}`),
      await send(`/v1/chat/completions?key=${secret}`),
      await send(`/nowhere?key=${secret}`),
      await send('/mini/nothing', { referer: `http://x.example/a?b=1&key=${secret}#c` }),
      await send(`/mini/chat?key=${secret}`, { referer: `http://x.example/?key=${secret}`, 'x-api-key': PLACEHOLDER }),
    ];
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 400, 404, 404, 401, 404, 404, 200]);
    const seen = await (await fetch(`${gateway.url}/seen`)).text();
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(seen).to.include('x.example/a?b=1#c').and.include('/mini/nothing?a=1');
    for (const text of [gateway.logText(), metrics, seen, ...responses.map(({ text: body }) => body)])
      expect(text.includes(secret), text.slice(0, 300)).to.equal(false);
  });
});
