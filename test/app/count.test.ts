import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile, startError } from '../support/plugins/plugin-file.ts';

/** Vendor that counts tokens as 100 plus the letters of the messages. `/questions` returns its count requests. */
const VENDOR = pluginFile({
  name: 'vendor',
  kind: 'provider',
  more: `configSchema: { type: 'object', properties: { factor: { type: 'number' }, refuse: { type: 'boolean' } } },`,
  setup: `
    const none = () => { throw new Error('no call is made'); };
    const questions = [];
    const say = (text) => (async function* () { yield Buffer.from(text); })();
    api.route({ method: 'GET', path: '/questions/' + api.instance, summary: 'x', auth: 'none', responses: { 200: 'x' },
      handler(ctx) { ctx.body = questions; } });
    api.provider({
      specVersion: 1, vendor: api.instance, baseUrl: 'http://127.0.0.1:1', anyModel: true, timeouts: { totalMs: 60_000 },
      chat: { request: none, response: none, stream: none },
      ...(config.factor && { countFactor: config.factor }),
      native: () => ({ mini: {
        path: '/native',
        headers: (caller) => caller,
        count: { path: '/count', body: ({ max, ...body }) => body, response: (body) => body.tokens },
      } }),
      error: (status) => ({ class: 'upstream_error', message: 'no ' + status }),
      async transport({ path, body, headers }, signal) {
        questions.push({ path, body, headers });
        const json = { 'content-type': 'application/json' };
        if (body.say === 'slow') return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        if (body.say === 'broken') return { status: 500, headers: json, body: say('{}') };
        if (body.say === 'words') return { status: 200, headers: json, body: say('{"tokens":"many"}') };
        return { status: 200, headers: json, body: say(JSON.stringify({ tokens: 100 + body.say.length, secret: 'x' })) };
      },
    });`,
});

/** Hooks with and without operations, and what they recorded. */
const PROBE = pluginFile({
  setup: `
    const seen = [];
    const note = (name) => (call) => { seen.push(name + ' ' + call.operation); return undefined; };
    for (const name of ['admit', 'prepare', 'reserve', 'receive', 'attempt', 'finish', 'error']) api.hook(name, note(name));
    api.hook('admit', { operations: ['count'], handler: note('named admit') });
    api.hook('finish', { operations: ['count'], handler: (call, { status, cost, usage, sent }) =>
      void seen.push('named finish ' + JSON.stringify({ status, cost, usage, sent })) });
    api.hook('prepare', { operations: ['count'], handler: (call, request) =>
      request.messages[0].content === 'more' ? { ...request, messages: [...request.messages, { role: 'user', content: 'x'.repeat(400) }] } : undefined });
    api.route({ method: 'GET', path: '/hooks', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen.splice(0); } });`,
});

describe('counting tokens', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs' } },
        providers: {
          echo: { prices: { '*': { input: 1, output: 1 } } },
          vendor: { plugin: './vendor.mjs', factor: 1.5 },
          second: { plugin: './vendor.mjs' },
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration
          openai: { apiKey: '${OPENAI_API_KEY}' },
        },
        models: { both: ['echo/echo', 'second/x'], narrow: ['vendor/x', 'echo/echo'] },
        billing: 'enforce',
        server: { port: 0, bodyLimit: '5kb' },
        policies: {
          probe: { plugin: './probe.mjs' },
          'access-log': {},
          metrics: { auth: 'none' },
          limits: {},
          accounts: {},
        },
      },
      { files: { ...MINI_FILES, 'vendor.mjs': VENDOR, 'probe.mjs': PROBE }, level: 'debug' },
    );
  });
  after(() => gateway?.stop());

  const count = async (body: object, headers: Record<string, string> = {}) => {
    const response = await gateway.post('/mini/count', body, headers);
    const { n, mini } = (await response.json()) as { n?: number; mini?: string };
    return { n, mini, status: response.status, estimated: response.headers.get('x-tollgate-estimated') };
  };
  const questions = async (name = 'vendor') =>
    (await (await fetch(`${gateway.url}/questions/${name}`)).json()) as {
      path: string;
      body: object;
      headers: object;
    }[];
  const create = async (...options: readonly string[]) => ({
    authorization: `Bearer ${(await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key}`,
  });

  it('asks a vendor with the caller’s format, with the body of a call, and returns only the number', async () => {
    const before = (await questions()).length;
    const response = await gateway.post(
      '/mini/count',
      { m: 'vendor/x', say: 'hello', max: 5, stream: true, odd: [1] },
      { 'x-mini-beta': 'b1' },
    );
    expect(await response.json()).to.deep.equal({ n: 105 });
    expect(response.headers.get('x-tollgate-estimated')).to.equal(null);
    expect(response.headers.get('x-tollgate-provider')).to.equal('vendor');
    expect((await questions()).slice(before)).to.deep.equal([
      { path: '/count', body: { m: 'x', say: 'hello', stream: true, odd: [1] }, headers: { 'x-mini-beta': 'b1' } },
    ]);
  });

  it('caches the count for the same body and key for a while', async () => {
    const body = { m: 'vendor/x', say: 'again and again' };
    const before = (await questions()).length;
    expect([await count(body), await count(body)].map(({ n }) => n)).to.deep.equal([115, 115]);
    expect((await questions()).length).to.equal(before + 1);
    await count({ ...body, say: 'again and agaim' });
    await count(body, await create());
    await count(body, { 'x-mini-beta': 'other' });
    expect((await questions()).length).to.equal(before + 4);
  });

  it('estimates if the vendor does not support the format, and reports the estimate', async () => {
    const { n, status, estimated } = await count({ m: 'echo/echo', say: 'x'.repeat(400) });
    expect([n, status, estimated]).to.deep.equal([104, 200, 'true']);
  });

  for (const [what, say] of [
    ['breaks', 'broken'],
    ['tells no number', 'words'],
    ['takes longer than two seconds @slow', 'slow'],
  ] as const)
    it(`estimates with the vendor’s factor when it ${what}`, async () => {
      const { n, status, estimated } = await count({ m: 'vendor/x', say });
      expect([n, status, estimated]).to.deep.equal([Math.ceil((4 + Math.ceil(say.length / 4)) * 1.5), 200, 'true']);
    });

  it('omits optional features that this caller may not use', async () => {
    const key = await create('--server-tools', 'web_search');
    await count({ m: 'vendor/x', say: 'wish', wishes: ['web_search', 'mcp'] }, key);
    expect((await questions()).at(-1)?.body).to.deep.include({ without: ['wishes[1]'] });
  });

  it('never sends a vendor a reference that is forbidden in a call', async () => {
    const before = (await questions()).length;
    expect(await count({ m: 'vendor/x', say: 'see', file: 'f' })).to.include({ status: 200, estimated: 'true' });
    expect((await questions()).length).to.equal(before);
  });

  it('asks the vendor 60 times a minute per key, then estimates', async () => {
    const headers = await create();
    const before = (await questions()).length;
    const reported = [];
    for (let at = 0; at < 63; at += 1) reported.push(await count({ m: 'vendor/x', say: `no ${at}` }, headers));
    expect(reported.filter(({ estimated }) => estimated === 'true')).to.have.length(3);
    expect(reported.every(({ status }) => status === 200)).to.equal(true);
    expect((await questions()).length).to.equal(before + 60);
  });

  it('counts for the first target of an alias only', async () => {
    const before = (await questions('second')).length;
    expect(await count({ m: 'both', say: 'hi' })).to.include({ n: 5, estimated: 'true' });
    expect((await questions('second')).length).to.equal(before);
  });

  it('identifies the caller and the model as a call does', async () => {
    const narrow = await create('--models', 'vendor/x');
    expect(await count({ m: 'echo/echo', say: 'x' }, narrow)).to.include({ status: 403, mini: 'model_not_allowed' });
    expect(await count({ m: 'narrow', say: 'x' }, narrow), 'a call could go on to echo').to.include({ status: 403 });
    expect(await count({ m: 'nothing', say: 'x' })).to.include({ status: 404, mini: 'unsupported_model' });
    expect(await count({ m: 'echo/echo', say: 'x' }, { authorization: 'Bearer tg_x' })).to.include({ status: 401 });
    expect(await count({ m: 'echo/echo' })).to.include({ status: 400, mini: 'invalid_request' });
    expect(await count({ m: 'echo/echo', say: 'x'.repeat(6000) })).to.include({ status: 413 });
    expect(await count({ m: 'openai/gpt-5', say: 'x' }), 'no key is needed to estimate').to.include({ status: 200 });
    expect(await count({ m: 'vendor/x', say: 'x', tools: ['mcp'] })).to.include({
      status: 403,
      mini: 'permission_denied',
    });
  });

  it('is free and uses no limit, with an empty balance too', async () => {
    const headers = await create('--rpm', '1', '--tpm', '1', '--account', 'poor');
    for (const say of ['a', 'b', 'c']) expect((await count({ m: 'vendor/x', say }, headers)).status).to.equal(200);
    expect((await gateway.post('/mini/chat', { m: 'echo/echo', say: 'a' }, headers)).status).to.equal(402);
    const { callable_models: _, ...account } = await gateway.command<Record<string, unknown>>(
      'accounts',
      'show',
      'poor',
    );
    expect(JSON.stringify(account)).not.to.match(/"count"|chat/);
  });

  it('runs its hooks, and has a metric and a line in the log', async () => {
    await fetch(`${gateway.url}/hooks`);
    await count({ m: 'vendor/x', say: 'hooked' });
    expect(await (await fetch(`${gateway.url}/hooks`)).json()).to.deep.equal([
      'named admit count',
      'named finish {"status":"ok","cost":0,"sent":true}',
    ]);
    expect((await count({ m: 'echo/echo', say: 'more' })).n).to.equal(4 + 1 + 4 + 100);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).to.match(/tollgate_calls_total\{operation="count",provider="vendor".*status="ok".*\} \d/);
    expect(metrics).not.to.match(/tollgate_tokens_total\{provider="vendor"/);
    const lines = gateway.logs.filter(({ operation }) => operation === 'count');
    expect(lines.at(-1)).to.include({ route: 'POST /mini/count', outcome: 'ok', provider: 'echo', status: 200 });
  });

  it('is in the OpenAPI document with its own response', async () => {
    const { paths } = (await (await gateway.get('/openapi.json')).json()) as { paths: Record<string, object> };
    expect(paths['/mini/count']).to.have.nested.property('post.responses.200.description', 'Number of tokens.');
  });
});

describe('a plugin for counting', () => {
  const starts = (kind: string, setup: string) =>
    startError(
      startGateway(
        { [kind === 'dialect' ? 'dialects' : 'operations']: { odd: { plugin: './odd.mjs' } } },
        { files: { 'odd.mjs': pluginFile({ name: 'odd', kind, setup }) } },
      ),
    );

  it('is refused if it is a dialect with a count route that cannot write the count', async () => {
    const setup = `const none = () => ({});
      api.dialect({ name: 'odd', request: { type: 'object' }, response: { type: 'object' }, keepAlive: '', read: none, write: none, stream: none, error: none,
        routes: [{ path: '/odd', summary: 'x', action: 'count' }] });`;
    expect(await starts('dialect', setup)).to.include('no count()');
  });

  it('is refused when it registers core’s own operation', async () => {
    const setup = `api.operation({ name: 'count', request: { type: 'object' }, estimate() {}, attempt() {}, isResponse() {} });`;
    expect(await starts('operation', setup)).to.include('belongs to core');
  });
});
