import path from 'node:path';
import { expect } from 'chai';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

const CHAT = '/v1/chat/completions';
const requestOf = (rest: object = {}) => ({
  model: 'echo/echo',
  messages: [{ role: 'user', content: 'one two three' }],
  ...rest,
});

/** Source of a policy plugin with this body of `setup(api)`. */
const plugin = (name: string, body: string): string =>
  `export default { name: '${name}', kind: 'policy', apiVersion: 1, async setup(api, config) { ${body} } };\n`;

/** Starts a gateway with these plugins, loaded from files in this order. */
function startWith(plugins: Readonly<Record<string, string>>, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const files = Object.fromEntries(Object.entries(plugins).map(([name, body]) => [`${name}.mjs`, plugin(name, body)]));
  return startGateway({ plugins: Object.keys(files).map((file) => `./${file}`) }, { ...options, files });
}

const messageOf = (started: Promise<TestGateway>): Promise<string> =>
  started.then(
    async (gateway) => {
      await gateway.stop();
      return expect.fail('it started');
    },
    (error: Error) => error.message,
  );

interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string };
}

describe('plugins from files', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const EVERY_HOOK = `
    const seen = [];
    for (const name of ['admit', 'prepare', 'answer', 'route', 'reserve', 'send', 'attempt', 'receive', 'stream', 'error', 'finish'])
      api.hook(name, (call) => { if (seen.at(-1) !== name) seen.push(name); });
    api.route({ method: 'GET', path: '/seen', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen.splice(0); } });
  `;
  const INWARD = ['admit', 'prepare', 'answer', 'route', 'reserve', 'send', 'attempt'];
  const WHOLE = [...INWARD, 'receive', 'finish'];
  const LIVES: readonly (readonly [what: string, path: string, body: object, hooks: readonly string[]])[] = [
    ['an answer', CHAT, requestOf(), WHOLE],
    ['a stream', CHAT, requestOf({ stream: true }), [...INWARD, 'stream', 'finish']],
    ['an answer by path', '/api/core/echo/chat/completions', requestOf({ model: 'echo' }), WHOLE],
    ['embeddings', '/v1/embeddings', { model: 'echo/echo', input: 'x' }, WHOLE],
  ];
  for (const [what, path, body, hooks] of LIVES) {
    it(`see the whole life of ${what}`, async () => {
      gateway = await startWith({ watcher: EVERY_HOOK });
      await (await gateway.post(path, body)).text();
      const seen: string[] = [];
      const { url } = gateway;
      await until('the call is finished', () => {
        void look();
        return seen.includes('finish');
      });
      async function look(): Promise<void> {
        seen.push(...((await (await fetch(`${url}/seen`)).json()) as string[]));
      }
      expect(seen).to.deep.equal(hooks);
    });
  }

  it('change requests, responses and chunks', async () => {
    gateway = await startWith({
      shout: `
        api.hook('prepare', (call, request) => ({ ...request, messages: [{ role: 'user', content: 'changed words' }] }));
        api.hook('receive', (call, response) => ({ ...response, choices: response.choices.map((choice) => ({ ...choice, message: { ...choice.message, content: choice.message.content.toUpperCase() } })) }));
        api.hook('stream', () => ({ push: (chunk) => [{ ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, delta: choice.delta.content ? { ...choice.delta, content: choice.delta.content.toUpperCase() } : choice.delta })) }] }));`,
    });
    const client = gateway.openai();
    const { choices } = await client.chat.completions.create(requestOf() as never);
    expect((choices as { message: { content: string } }[])[0]?.message.content).to.equal('CHANGED WORDS');
    const text = await (await gateway.post(CHAT, requestOf({ stream: true }))).text();
    expect(text).to.include('"CHANGED"').and.not.to.include('changed');
  });

  it('refuse by their own error, with and without a stream', async () => {
    gateway = await startWith({
      guard: `api.hook('admit', (call) => { throw Object.assign(new Error('never seen'), { [Symbol.for('tollgate.GatewayError')]: true, code: 'permission_denied', status: 403, type: 'permission_error', headers: {}, toBody: (id) => ({ error: { message: 'Not today.', type: 'permission_error', code: 'permission_denied', param: null, request_id: id } }) }); });`,
    });
    for (const stream of [false, true]) {
      const response = await gateway.post(CHAT, requestOf({ stream }));
      expect(response.status).to.equal(403);
      expect(((await response.json()) as ErrorBody).error).to.include({
        code: 'permission_denied',
        message: 'Not today.',
      });
    }
  });

  it('are both named when they claim the same route', async () => {
    const route = `api.route({ method: 'GET', path: '/mine', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler() {} });`;
    const message = await messageOf(startWith({ first: route, second: route }));
    expect(message).to.match(
      /plugin ".*second.*": plugin_conflict: route "GET \/mine" is already registered by plugin ".*first/,
    );
  });

  it('may not replace a route of core', async () => {
    const route = `api.route({ method: 'GET', path: '/livez', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler() {} });`;
    expect(await messageOf(startWith({ thief: route }))).to.match(
      /thief.*plugin_conflict: route "GET \/livez" belongs to core/,
    );
  });

  const checking = (path: string, query: string): string =>
    `api.route({ method: 'GET', path: '${path}', summary: 'x', auth: 'none', query: ${query}, responses: { 200: 'x' }, handler(ctx) { ctx.body = 'ok'; } });`;

  it('stop the start by a route whose schema does not compile, by name', async () => {
    const misspelt = `{ type: 'object', properties: { q: { tpye: 'string' } } }`;
    expect(await messageOf(startWith({ broken: checking('/broken', misspelt) }))).to.equal(
      'plugin "./broken.mjs": the query schema of GET /broken does not compile: strict mode: unknown keyword: "tpye"',
    );
    const wrong = `{ type: 'object', properties: { q: { type: 'string', minLength: 'one' } } }`;
    expect(await messageOf(startWith({ broken: checking('/broken', wrong) }))).to.match(
      /"\.\/broken\.mjs": the query schema of GET \/broken does not compile: schema is invalid: data\/properties\/q\/minLength must be integer/,
    );
  });

  it('with request schemas have every schema checked at the start, those of core and of built-in plugins too', async () => {
    const config = {
      agents: {
        team: { model: 'echo/echo' },
        medical: { model: 'echo/echo' },
        rag: { folder: path.resolve('docs/decisions') },
      },
      plugins: ['./search.mjs'],
    };
    const files = { 'search.mjs': plugin('search', checking('/search', `{ type: 'object', required: ['q'] }`)) };
    gateway = await startGateway(config, { files });
    expect((await gateway.get('/search')).status).to.equal(400);
    expect((await gateway.get('/search?q=x')).status).to.equal(200);
  });

  it('X01 stop the start when setup throws, by name', async () => {
    expect(await messageOf(startWith({ broken: `throw new Error('no licence file');` }))).to.match(
      /broken.*setup failed: no licence file/,
    );
  });

  it('X03 that throw fail the call with a fixed sentence; the log has the rest', async () => {
    gateway = await startWith({
      crashing: `api.hook('prepare', () => { throw new TypeError('secret inner detail'); });`,
    });
    for (const stream of [false, true]) {
      const response = await gateway.post(CHAT, requestOf({ stream }));
      const text = await response.text();
      expect(response.status).to.equal(500);
      expect(text).to.include('internal_error').and.not.to.include('inner detail').and.not.to.include('crashing');
    }
    expect(gateway.logText()).to.include('secret inner detail').and.include('crashing');
  });

  it('X05 that throw on a chunk end the stream with an error frame, once', async () => {
    gateway = await startWith({
      late: `api.hook('stream', () => { let n = 0; return { push(chunk) { n += 1; if (n === 3) throw new Error('third'); return [chunk]; } }; });`,
    });
    const text = await (await gateway.post(CHAT, requestOf({ stream: true }))).text();
    expect(text.match(/"error"/g)).to.have.length(1);
    expect(text).to.include('one').and.not.to.include('[DONE]').and.not.to.include('third');
  });

  it('X06 that return invalid results are refused, and cannot change their configuration', async () => {
    gateway = await startWith({
      wrong: `
        try { config.injected = true; } catch {}
        api.route({ method: 'GET', path: '/config', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = { frozen: Object.isFrozen(config), injected: config.injected ?? null }; } });
        api.hook('receive', () => 5);`,
    });
    expect(await (await gateway.get('/config')).json()).to.deep.equal({ frozen: true, injected: null });
    expect((await gateway.post(CHAT, requestOf())).status).to.equal(500);
    expect((await gateway.post(CHAT, requestOf({ stream: true }))).status).to.equal(200);
  });

  it('X08 cannot read a credential: hooks’ arguments contain none', async () => {
    gateway = await startWith({
      nosy: `
        const received = [];
        const dump = (value) => { const seen = new Set(); return JSON.stringify(value, (key, child) => { if (typeof child === 'object' && child !== null) { if (seen.has(child)) return; seen.add(child); } return child instanceof Map ? [...child] : child; }); };
        for (const name of ['admit', 'prepare', 'answer', 'route', 'reserve', 'send', 'attempt', 'receive', 'finish']) api.hook(name, (...args) => { received.push(dump(args)); });
        api.route({ method: 'GET', path: '/received', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = received; } });`,
    });
    await (await gateway.post(CHAT, requestOf())).text();
    const reported = await (await gateway.get('/received')).text();
    expect(reported).to.include('one two three').and.not.to.include(gateway.key);
  });

  const BAD_RESPONSES: readonly (readonly [what: string, handler: string])[] = [
    ['a header with a line break', `ctx.set('x-bad', 'a\\r\\nb: c')`],
    ['a header beyond Latin-1', `ctx.set('x-bad', '\\u{1f600}')`],
    ['an impossible status', `ctx.status = 99`],
    ['a thrown string', `throw 'text'`],
    ['a thrown nothing', `throw undefined`],
  ];
  for (const [what, handler] of BAD_RESPONSES) {
    it(`X09 that respond with ${what} cause a 500, and the connection continues`, async () => {
      gateway = await startWith({
        odd: `api.route({ method: 'GET', path: '/odd', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ${handler}; } });`,
      });
      const response = await gateway.get('/odd');
      expect(response.status).to.equal(500);
      expect(((await response.json()) as ErrorBody).error.code).to.equal('internal_error');
      expect((await gateway.get('/livez')).status).to.equal(200);
    });
  }

  it('X09 that set no response cause an empty 204 or 404, never a hang', async () => {
    gateway = await startWith({
      mute: `api.route({ method: 'GET', path: '/mute', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = undefined; } });`,
    });
    expect([204, 404]).to.include((await gateway.get('/mute')).status);
  });

  it('close in reverse order, after the last response', async () => {
    const close = (name: string) => `api.onClose(() => { api.log.info({ closed: '${name}' }, 'closing'); });`;
    const started = await startWith({ a: close('a'), b: close('b') });
    await (await started.post(CHAT, requestOf())).text();
    await started.stop();
    const closed = started.logs.map((line) => line['closed']).filter(Boolean);
    expect(closed).to.deep.equal(['b', 'a']);
  });

  it('may call models on behalf of a principal, through all hooks', async () => {
    gateway = await startWith({
      caller: `
        let calls = 0;
        api.hook('admit', () => { calls += 1; });
        api.route({ method: 'POST', path: '/relay', summary: 'x', auth: ['key'], responses: { 200: 'x' }, async handler(ctx) {
          const { principal, requestId, signal } = ctx.state;
          const context = { principal, requestId, signal };
          const whole = await api.chat({ model: 'echo/echo', messages: [{ role: 'user', content: 'relayed' }] }, context);
          let text = '';
          for await (const chunk of await api.chat({ model: 'echo/echo', stream: true, messages: [{ role: 'user', content: 'in pieces' }] }, context)) text += chunk.choices[0]?.delta.content ?? '';
          ctx.body = { whole: whole.choices[0].message.content, text, calls };
        } });`,
    });
    const response = await gateway.post('/relay', undefined);
    expect(await response.json()).to.deep.equal({ whole: 'relayed', text: 'in pieces', calls: 2 });
  });
});
