import { expect } from 'chai';
import { partOfTests } from '../../../support/generated-cases.ts';
import { respondWith } from '../../../support/vendors/scripted-upstream.ts';
import { type AiRig, respondAs, startAi } from './rig.ts';

const HI = { model: 'acme/m-1', messages: [{ role: 'user', content: 'Hi' }] };
const SAID = respondAs('openai', { pieces: [{ text: 'Hello' }] });
const PACKAGE = '@ai-sdk/openai-compatible';

const HOOK = `export default {
  name: 'stamp', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('send', (call, request) => ({ ...request, headers: { ...request.headers, 'x-stamp': request.path + ' ' + request.body.model } }));
  },
};`;

/** Package of specification v3 whose models do what their name says. */
const ODD = `import net from 'node:net';
let calls = 0;
const usage = { inputTokens: { total: 3 }, outputTokens: { total: 2 } };
const finishReason = { unified: 'stop', raw: 'stop' };
export function createOdd(settings) {
  const send = (url, more = {}) => settings.fetch(url, { method: 'POST', body: '{}', headers: { 'x-key': settings.apiKey, 'content-type': 'application/json' }, ...more });
  const done = (text, warnings = []) => ({ content: [{ type: 'text', text }], finishReason, usage, warnings });
  const work = {
    throws: () => { throw new TypeError('undefined is not a function'); },
    rejects: async () => { await send(settings.baseURL); throw new RangeError('no such thing'); },
    hangs: () => new Promise(() => {}),
    prints: async () => { console.log('a line', { of: 'mine' }); await send(settings.baseURL); return done('printed'); },
    elsewhere: async () => { await send(settings.baseURL); await send(settings.other); return done('never'); },
    alone: async () => { calls += 1; return done('alone ' + calls); },
    warns: async () => { await send(settings.baseURL); return done('warned', [{ type: 'unsupported', feature: 'topK' }, { type: 'other', message: 'a note' }, { type: 'compatibility', feature: 'seed' }]); },
    schemaless: async () => { await send(settings.baseURL); return done('no json', [{ type: 'unsupported', feature: 'responseFormat' }]); },
    sourced: async () => { await send(settings.baseURL); return { ...done('cited'), content: [{ type: 'text', text: 'cited' }, { type: 'source', sourceType: 'url', id: 's1', url: 'https://pages.example/a', title: 'A page' }] }; },
    unknown: () => { throw Object.assign(new Error('No such languageModel: unknown'), { name: 'AI_NoSuchModelError' }); },
    listens: async () => { net.createServer().listen(0, '127.0.0.1').unref(); return done('never'); },
    files: async () => { await send(settings.baseURL); return { ...done('heard'), content: [{ type: 'text', text: 'heard' }, { type: 'file', mediaType: 'audio/wav', data: 'UklGRg==' }, { type: 'custom', kind: 'odd' }] }; },
    heavy: async () => { await send(settings.baseURL); return { ...done('heavy'), content: [{ type: 'text', text: 'heavy', providerMetadata: { odd: { blob: 'x'.repeat(300000) } } }] }; },
    old: undefined,
  };
  return {
    specificationVersion: 'v3',
    languageModel: (id) => ({
      specificationVersion: id === 'old' ? 'v1' : 'v3', provider: 'odd', modelId: id, supportedUrls: {},
      doGenerate: () => work[id](),
      async doStream() {
        const { content, warnings } = await work[id]();
        return { stream: new ReadableStream({ start(controller) {
          controller.enqueue({ type: 'stream-start', warnings });
          for (const part of content)
            if (part.type !== 'text') controller.enqueue(part);
            else for (const piece of [{ type: 'text-start', providerMetadata: part.providerMetadata }, { type: 'text-delta', delta: part.text }, { type: 'text-end' }]) controller.enqueue({ ...piece, id: '1' });
          controller.enqueue({ type: 'finish', usage, finishReason });
          controller.close();
        } }) };
      },
    }),
  };
}`;

describe('a package of the AI SDK within the gateway', () => {
  let rig: AiRig | undefined;
  afterEach(() => rig?.stop());
  const start = async (...args: Parameters<typeof startAi>): Promise<AiRig> => {
    rig = await startAi(...args);
    rig.vendor.script(SAID);
    return rig;
  };

  it('sends by the keys of a pool, and rests the one that is refused', async () => {
    const apiKeys = ['one', 'two'].map((name) => ({ name, key: `sk-pool-${name}-0123` }));
    const { vendor, gateway } = await start(PACKAGE, { apiKey: undefined, apiKeys });
    vendor.script((wire) =>
      wire.request.headers['authorization']?.includes('one')
        ? wire.send(respondWith(401, { error: { message: 'bad key', code: 'invalid_api_key' } }))
        : SAID(wire),
    );
    for (let n = 0; n < 6; n++) {
      const response = await gateway.post('/v1/chat/completions', HI, { 'x-session-id': `s${n}` });
      expect(response.status).to.equal(200);
    }
    const keys = vendor.requests.map(({ headers }) => headers['authorization']);
    expect(new Set(keys)).to.deep.equal(new Set(['Bearer sk-pool-one-0123', 'Bearer sk-pool-two-0123']));
    expect(keys.filter((key) => key?.includes('one'))).to.have.length(1);
  });

  it('gives `send` hooks the request of the vendor, and its trace', async () => {
    const { vendor, gateway } = await start(
      PACKAGE,
      {},
      { config: { plugins: ['./stamp.mjs'] }, files: { 'stamp.mjs': HOOK } },
    );
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const response = await gateway.post('/v1/chat/completions', HI, { traceparent });
    expect(response.status, gateway.logText()).to.equal(200);
    const [request] = vendor.requests;
    expect(request?.headers).to.include({ 'x-stamp': '/v1/chat/completions m-1' });
    expect(request?.headers['traceparent']).to.include('0af7651916cd43dd8448eb211c80319c');
  });

  it('is held to the deadlines of its provider, and the next target is tried', async () => {
    const { vendor, gateway } = await start(
      PACKAGE,
      { timeouts: { firstByte: '200ms' } },
      {
        config: { models: { both: ['acme/m-1', 'echo/echo'] }, providers: { echo: {} } },
      },
    );
    vendor.script((wire) => wire.hang());
    for (const stream of [false, true]) {
      const response = await gateway.post('/v1/chat/completions', { ...HI, model: 'both', stream });
      expect(response.headers.get('x-tollgate-provider'), gateway.logText()).to.equal('echo');
      await response.text();
    }
    const late = await gateway.post('/v1/chat/completions', HI);
    expect([late.status, (await late.text()).includes('provider_timeout')]).to.deep.equal([503, true]);
  });

  describe('that behaves badly', () => {
    const odd = (more: Readonly<Record<string, unknown>> = {}, config: Readonly<Record<string, unknown>> = {}) =>
      start(
        './odd.mjs',
        { models: ['*'], timeouts: { firstByte: '300ms' }, ...more },
        {
          files: { 'odd.mjs': ODD },
          config: { providers: { echo: {} }, models: {}, ...config },
        },
      );
    const send = (model: string, more: object = {}) => sendTo(`acme/${model}`, more);
    const sendTo = async (model: string, more: object = {}) => {
      const response = await rig?.gateway.post('/v1/chat/completions', { ...HI, model, ...more });
      const text = (await response?.text()) ?? '';
      return { status: response?.status, headers: response?.headers, text, log: rig?.gateway.logText() ?? '' };
    };

    const FAILS = [
      ['throws', 503, 'provider_unavailable', 'package \\"./odd.mjs\\": undefined is not a function'],
      ['rejects', 503, 'provider_unavailable', 'package \\"./odd.mjs\\": no such thing'],
      ['hangs', 503, 'provider_timeout', 'did not start a response within 300 ms'],
      ['unknown', 404, 'unsupported_model', 'No such languageModel'],
      ['old', 503, 'provider_unavailable', 'Install a version of the package'],
      ['alone', 503, 'provider_unavailable', 'ownTransport: true'],
      ['listens', 503, 'provider_unavailable', 'may not open a server'],
    ] as const;
    for (const [at, [model, status, code, logged]] of FAILS.entries()) {
      const { describe, it } = partOfTests(at);
      describe(`by a model that ${model}`, () => {
        it('44: leaves it to the next target, whole and streamed', async () => {
          await odd({}, { models: { both: [`acme/${model}`, 'echo/echo'] } });
          for (const stream of [false, true]) {
            const said = await sendTo('both', { stream });
            expect([said.status, said.headers?.get('x-tollgate-provider')], said.text).to.deep.equal([200, 'echo']);
            expect(said.log).to.include(`"target":"acme/${model}"`).and.include(logged);
          }
        });

        it('gives an error, whole and streamed', async () => {
          await odd();
          for (const stream of [false, true]) {
            const said = await send(model, { stream });
            expect([said.status, JSON.parse(said.text).error.code], said.text).to.deep.equal([status, code]);
            expect(said.log).to.include(logged);
          }
        });
      });
    }

    it('44: reports parts of responses that OpenAI does not have, whole and streamed', async () => {
      await odd();
      for (const [model, dropped] of [
        ['files', 'file, custom'],
        ['heavy', 'metadata'],
      ] as const) {
        expect((await send(model)).headers?.get('x-tollgate-dropped')).to.equal(dropped);
        await send(model, { stream: true });
        const [line] = rig?.gateway.logs.filter(({ msg }) => msg === 'request').slice(-1) ?? [];
        expect(line?.['dropped']).to.equal(dropped);
      }
    });

    it('keeps the key from other hosts, and names them in the log', async () => {
      const { vendor } = await odd({ options: { other: 'http://localhost:9/steal' } });
      const said = await send('elsewhere');
      expect(said.status).to.equal(503);
      expect(vendor.requests).to.have.length(1);
      expect(said.log).to.include('"host":"localhost:9"');
      expect(said.text).not.to.include('localhost');
    });

    it('prints into the log', async () => {
      await odd();
      const said = await send('prints');
      expect(said.text).to.include('printed');
      expect(said.log).to.include(`"text":"a line { of: 'mine' }"`);
    });

    it('may use connections of its own if the operator allows it', async () => {
      await odd({ ownTransport: true });
      expect((await send('alone')).text).to.include('alone 1');
      const words = ['keys', 'create', '--user', 'root', '--admin'];
      const { api_key: admin } = (await rig?.gateway.command<{ api_key: string }>(...words)) ?? {};
      const plugins = await rig?.gateway.get('/api/core/admin/plugins', { authorization: `Bearer ${admin}` });
      expect(await plugins?.text()).to.include('any (own connections of ./odd.mjs)');
    });

    it('reports what it ignored, whole and streamed', async () => {
      await odd();
      const said = await send('warns', { top_k: 3 });
      expect(said.headers?.get('x-tollgate-dropped')).to.equal('top_k, a note');
      await send('warns', { stream: true });
      expect(rig?.gateway.logs.filter(({ msg }) => msg === 'request').at(-1)?.['dropped']).to.equal('top_k, a note');
    });

    it('is refused if it ignores a schema', async () => {
      await odd();
      const response_format = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };
      for (const stream of [false, true]) {
        const said = await send('schemaless', { response_format, stream });
        expect([said.status, JSON.parse(said.text).error.code], said.text).to.deep.equal([404, 'unsupported_model']);
        expect(said.text).to.include('response_format');
      }
    });

    it('cites its sources, whole and streamed', async () => {
      await odd();
      for (const stream of [false, true])
        expect((await send('sourced', { stream })).text)
          .to.include('"url":"https://pages.example/a"')
          .and.include('A page');
    });
  });
});
