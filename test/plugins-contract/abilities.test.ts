import { createHmac } from 'node:crypto';
import http from 'node:http';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  CHAT,
  chatOf,
  framesOf,
  type PluginText,
  pluginFile,
  readText,
  routeText,
  startProbe,
} from '../support/plugins/plugin-file.ts';

describe('abilities of plugins', () => {
  let gateway: TestGateway | undefined;
  async function start(...given: Parameters<typeof startProbe>): Promise<TestGateway> {
    gateway = await startProbe(...given);
    return gateway;
  }
  const startOther = async (...given: Parameters<typeof startGateway>): Promise<TestGateway> => {
    gateway = await startGateway(...given);
    return gateway;
  };
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const SECRET = 'shared-secret';
  const sign = (text: string | Uint8Array): string => createHmac('sha256', SECRET).update(text).digest('hex');

  /** Callers sign method, path and body, and send no credential. */
  const SIGNED = pluginFile({
    name: 'signed',
    kind: 'auth',
    setup: `
    const { createHmac } = await import('node:crypto');
    const seen = [];
    api.hook('authenticate', async (request) => {
      const { method, path, headers, address, credential, bearer, now } = request;
      seen.push({ method, path, address, credential, bearer, now: typeof now, frozen: Object.isFrozen(request) && Object.isFrozen(headers) });
      if (!headers['x-signature']) return undefined;
      const body = await request.rawBody();
      const expected = createHmac('sha256', '${SECRET}').update(body).digest('hex');
      if (headers['x-signature'] !== expected) throw new GatewayError('invalid_api_key', 'The signature is wrong.');
      return { credential: 'key', userId: 'signer', account: 'signer' };
    });
    ${routeText('/seen', 'ctx.body = seen;')}
    api.route({ method: 'POST', path: '/upload', summary: 'x', auth: ['key'], form: { maxFileBytes: 1000 }, body: { type: 'object' }, responses: { 200: 'x' },
      async handler(ctx) {
        const { readFile } = await import('node:fs/promises');
        ctx.body = { user: ctx.state.principal.userId, fields: ctx.state.body, text: await readFile(ctx.state.files[0].path, 'utf8') };
      } });`,
  });

  describe('an auth plugin sees the whole request (D51)', () => {
    const begin = () =>
      startOther({ auth: { signed: { plugin: './signed.mjs' } } }, { files: { 'signed.mjs': SIGNED } });
    const send = (path: string, body: string, signature: string) =>
      fetch(`${gateway?.url}${path}?a=1`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-signature': signature },
        body,
      });

    for (const stream of [false, true])
      it(`a scheme that signs the body works end to end, ${stream ? 'with' : 'without'} a stream`, async () => {
        await begin();
        const body = JSON.stringify(chatOf('hello there', { stream }));
        const response = await send(CHAT, body, sign(body));
        expect(response.status).to.equal(200);
        expect(await readText(response)).to.equal('hello there');
        const wrong = await send(CHAT, body.replace('hello', 'jello'), sign(body));
        expect(wrong.status).to.equal(401);
        expect(await wrong.text()).to.include('The signature is wrong.');
        const [first] = (await (await send('/seen', '', '')).json()) as readonly object[];
        expect(first).to.deep.equal({
          ...{
            method: 'POST',
            path: CHAT,
            address: '127.0.0.1',
            credential: '',
            bearer: false,
            now: 'number',
            frozen: true,
          },
        });
      });

    it('a scheme that signs the body works for a form with a file too', async () => {
      await begin();
      const boundary = 'limit';
      const part = (head: string, text: string) =>
        `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}\r\n`;
      const body = `${part('name="title"', 'notes')}${part('name="file"; filename="a.txt"\r\ncontent-type: text/plain', 'inside')}--${boundary}--\r\n`;
      const response = await fetch(`${gateway?.url}/upload`, {
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, 'x-signature': sign(body) },
        body,
      });
      expect(await response.json()).to.deep.equal({ user: 'signer', fields: { title: 'notes' }, text: 'inside' });
    });

    it('a body that is too large is refused as by the route', async () => {
      gateway = await startGateway(
        { auth: { signed: { plugin: './signed.mjs' } }, server: { port: 0, bodyLimit: '1kb' } },
        { files: { 'signed.mjs': SIGNED } },
      );
      const response = await send(CHAT, JSON.stringify(chatOf('x'.repeat(3000))), 'x');
      expect(response.status).to.equal(413);
      expect(await response.text()).to.include('request_too_large');
    });

    it('a caller without a credential of the plugin gets 401', async () => {
      await begin();
      expect((await send(CHAT, JSON.stringify(chatOf('x')), '')).status).to.equal(401);
    });
  });

  describe('api.http reaches the hosts that its plugin declares, for every kind (D51)', () => {
    let server: http.Server;
    let host: string;
    before(async () => {
      server = http.createServer((request, response) => {
        if (request.url === '/away') response.writeHead(302, { location: `http://${host}/` }).end();
        else response.end('reached');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      host = `127.0.0.1:${(server.address() as { port: number }).port}`;
    });
    after(() => void server.close());

    const fetching = (kind: string, more: string): string =>
      pluginFile({
        ...{ name: 'asker', kind, more },
        setup: `
        ${kind === 'auth' ? `api.hook('authenticate', () => undefined);` : ''}
        ${routeText(
          '/ask',
          `const client = await api.http();
           const responses = [];
           for (const path of ['http://${host}/', 'http://${host}/away', 'http://127.0.0.1:9/', 'http://localhost:1/'])
             responses.push(await client.get(path, { retry: { limit: 0 } }).text().catch((error) => 'refused: ' + error.message));
           ctx.body = responses;`,
        )}`,
      });
    const SCHEMA = `configSchema: { type: 'object', properties: { url: { type: 'string', format: 'url' } } },`;
    const KINDS: readonly (readonly [kind: string, section: string])[] = [
      ['policy', 'policies'],
      ['auth', 'auth'],
      ['agent', 'agents'],
    ];
    for (const [kind, section] of KINDS)
      for (const [title, more, config] of [
        ['the host of its url option', SCHEMA, () => ({ url: `http://${host}/x` })],
        ['the hosts that it names', `hosts: ['HOST'],`, () => ({})],
      ] as const)
        it(`a plugin of kind ${kind} reaches ${title}, and no other`, async () => {
          const base = section === 'auth' ? { 'api-key': { bootstrap: true } } : {};
          const begun = await startOther(
            { [section]: { ...base, requester: { plugin: './asker.mjs', ...config() } } },
            { files: { 'asker.mjs': fetching(kind, more.replace('HOST', host)) } },
          );
          const response = await begun.post('/ask', undefined);
          const responses = (await response.json()) as readonly string[];
          expect(responses[0]).to.equal('reached');
          expect(responses[1], 'redirects are not followed').not.to.equal('reached');
          for (const reply of responses.slice(2)) expect(reply).to.match(/^refused: control-plane calls go to/);
        });
  });

  /** Responds by the request's `user`, and returns the events of other hooks. */
  const CACHE = `
  const seen = [];
  const response = (content) => ({ id: 'own', object: 'chat.completion', created: 1, model: 'own', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } });
  api.hook('answer', (call) => {
    if (call.request.user === 'free') return { response: response('from the cache'), headers: { 'x-tollgate-cache': 'hit' } };
    if (call.request.user === 'dear') return { response: response('from the cache'), cost: 1500 };
    return undefined;
  });
  const shout = (text) => text?.toUpperCase();
  api.hook('receive', (call, value) => ({ ...value, choices: value.choices.map((choice) => ({ ...choice, message: { ...choice.message, content: shout(choice.message.content) } })) }));
  api.hook('stream', () => ({ push: (chunk) => [{ ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, delta: { ...choice.delta, content: shout(choice.delta.content) } })) }] }));
  for (const name of ['route', 'reserve', 'send', 'attempt']) api.hook(name, () => void seen.push(name));
  api.hook('finish', (call, { status, sent, cost, attempts }) => void seen.push({ status, sent, cost, attempts }));
  ${routeText('/seen', 'ctx.body = seen;')}`;

  describe('the answer hook responds without a target (D51)', () => {
    const send = (body: object) => (gateway as TestGateway).post(CHAT, body);
    const seen = async () => (await (gateway as TestGateway).post('/seen', undefined)).json();
    const spent = async () =>
      ((await (await (gateway as TestGateway).get('/api/core/balance')).json()) as { spent: string }).spent;

    for (const stream of [false, true]) {
      const how = stream ? 'as a stream' : 'as a whole';
      it(`${how}: it passes the outward hooks and finish, nothing is sent and nothing is charged`, async () => {
        await start(CACHE, { billing: 'track' });
        const response = await send(
          chatOf('x', { stream, user: 'free', stream_options: stream ? { include_usage: true } : undefined }),
        );
        expect(response.status).to.equal(200);
        expect(response.headers.get('x-tollgate-cache')).to.equal('hit');
        const text = await response.clone().text();
        expect(await readText(response)).to.equal('FROM THE CACHE');
        if (stream)
          expect(framesOf(text).at(-1)).to.deep.include({
            usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
          });
        else expect(JSON.parse(text)).to.have.nested.property('usage.total_tokens', 9);
        expect(await seen()).to.deep.equal([{ status: 'ok', sent: false, cost: 0, attempts: [] }]);
        expect(await spent()).to.equal('0.00');
      });

      it(`${how}: a caller is charged the hook’s cost, once`, async () => {
        await start(CACHE, { billing: 'track' });
        await (await send(chatOf('x', { stream, user: 'dear' }))).text();
        expect(await seen()).to.deep.equal([{ status: 'ok', sent: false, cost: 1500, attempts: [] }]);
      });

      it(`${how}: undefined continues the call`, async () => {
        await start(CACHE);
        expect(await readText(await send(chatOf('as it is', { stream })))).to.equal('AS IT IS');
      });
    }

    it('the first result wins', async () => {
      const pluginReturning = (text: string): PluginText => ({
        setup: `api.hook('answer', () => ({ response: { id: 'x', object: 'chat.completion', created: 1, model: 'x', choices: [{ index: 0, message: { role: 'assistant', content: '${text}' }, finish_reason: 'stop' }] } }));`,
      });
      await startOther(
        { plugins: ['./a.mjs', './b.mjs'] },
        { files: { 'a.mjs': pluginFile(pluginReturning('first')), 'b.mjs': pluginFile(pluginReturning('second')) } },
      );
      expect(await readText(await send(chatOf('x')))).to.equal('first');
    });

    it('may respond to an operation that a plugin registered', async () => {
      await start(
        `api.hook('answer', { operations: ['embeddings'], handler: () => ({ response: { object: 'list', data: [], model: 'x', usage: { prompt_tokens: 0, total_tokens: 0 } } }) });`,
      );
      const response = await (gateway as TestGateway).post('/v1/embeddings', { model: 'echo/echo', input: 'x' });
      expect(await response.json()).to.deep.include({ object: 'list', data: [] });
    });
  });
});
