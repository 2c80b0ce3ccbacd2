import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { responsesBody } from '../support/vendors/responses-wire.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { wholeBody } from '../support/vendors/vendor-wires.ts';

const said = { pieces: [{ text: 'Hello' }] };
const MESSAGES = { messages: [{ role: 'user', content: 'Hi' }] };
const CONTENTS = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] };
const TOOLS = { tools: [{ type: 'function', function: { name: 'now', parameters: { type: 'object' } } }] };
const CHAT = '/v1/chat/completions';
const NATIVE_GEMINI = (provider: string) => `/v1beta/models/${provider}/gemini-3.8-flash:generateContent`;

/** Requests to vendors that store requests by default. */
const KEEPERS: readonly (readonly [path: string, body: JsonObject])[] = [
  [CHAT, { ...MESSAGES, model: 'openai/gpt-4o' }],
  [CHAT, { ...MESSAGES, ...TOOLS, model: 'openai/gpt-6-sol' }],
  [CHAT, { ...MESSAGES, model: 'azure/gpt-4o' }],
  [CHAT, { ...MESSAGES, model: 'gemini/gemini-3.8-flash' }],
  [CHAT, { ...MESSAGES, model: 'xai/grok-4.20-multi-agent' }],
  ['/v1/messages', { ...MESSAGES, model: 'openai/gpt-4o', max_tokens: 20 }],
  ['/v1/responses', { input: 'Hi', model: 'openai/gpt-4o' }],
  ['/v1/responses', { input: 'Hi', model: 'xai/grok-4.7' }],
  ['/v1/responses', { input: 'Hi', model: 'gemini/gemini-3.8-flash' }],
  [NATIVE_GEMINI('gemini'), CONTENTS],
];

/** Conditions that a caller may set, with targets that cannot satisfy them, and one that can. */
const CONDITIONS: readonly (readonly [field: JsonObject, cannot: readonly string[], can?: string])[] = [
  [{ inference_geo: 'us' }, ['openai/gpt-4o', 'gemini/gemini-3.8-flash', 'mistral/m'], 'relay/m'],
  [{ extra_body: { inference_geo: 'us' } }, ['openai/gpt-4o', 'together/m'], 'anthropic/claude-opus-5'],
  [{ provider: { zdr: true } }, ['openai/gpt-4o', 'together/m', 'gemini/gemini-3.8-flash'], 'openrouter/openai/gpt-4o'],
  [{ provider: { data_collection: 'deny' } }, ['xai/grok-4.7'], 'openrouter/openai/gpt-4o'],
  [{ compliance: 'hipaa' }, ['openai/gpt-4o'], 'together/m'],
  [{ service_tier: 'flex' }, ['mistral/m', 'anthropic/claude-opus-5'], 'openai/gpt-5.4'],
  [{ n: 2 }, ['anthropic/claude-opus-5', 'gemini/gemini-9-new', 'deepseek/m'], 'openai/gpt-4o'],
];

describe('conditions of a request', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    upstream = await startScriptedUpstream((wire) => {
      const { path } = wire.request;
      const form = path.includes('/messages') ? 'anthropic' : path.includes('generateContent') ? 'gemini' : 'openai';
      return wire.send(respondWith(200, path.includes('/responses') ? responsesBody(said) : wholeBody(form, said)));
    });
    const names = 'openai azure gemini xai anthropic mistral together deepseek openrouter'.split(' ');
    const vendor = (name: string) => ({ apiKey: 'sk-0123456789', baseUrl: `${upstream.url}/${name}`, models: ['*'] });
    gateway = await startGateway({
      providers: {
        ...Object.fromEntries(names.map((name) => [name, vendor(name)])),
        relay: { ...vendor('relay'), plugin: 'openai-compatible' },
        keeping: { ...vendor('keeping'), plugin: 'openai', store: true },
        kept: { ...vendor('kept'), plugin: 'gemini', store: true },
      },
      models: { any: ['openai/gpt-4o', 'relay/m'] },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  async function send(path: string, body: JsonObject) {
    const before = upstream.requests.length;
    const response = await gateway.post(path, body, { authorization: `Bearer ${gateway.key}` });
    const sent = upstream.requests.slice(before).map((request) => request.json() as JsonObject);
    return { status: response.status, headers: response.headers, text: await response.text(), sent };
  }

  for (const [path, body] of KEEPERS)
    it(`disable storage at the vendor (E11): ${path} ${body['model'] ?? ''}${body['tools'] ? ' with tools' : ''}`, async () => {
      for (const store of [undefined, false, true]) {
        const { status, sent, text } = await send(path, { ...body, ...(store !== undefined && { store }) });
        expect([status, sent.length, sent[0]?.['store']], `store: ${store} ${text}`).to.deep.equal([200, 1, false]);
      }
    });

  it('are reported if a caller requests storage at the vendor (E11)', async () => {
    for (const model of ['openai/gpt-4o', 'gemini/gemini-3.8-flash', 'relay/m', 'mistral/m']) {
      const { headers, sent } = await send(CHAT, { ...MESSAGES, model, store: true });
      expect(headers.get('x-tollgate-dropped'), model).to.equal('store');
      expect(sent[0]?.['store'] ?? false).to.equal(false);
    }
    const native = await send(NATIVE_GEMINI('gemini'), { ...CONTENTS, store: true });
    expect(native.headers.get('x-tollgate-dropped')).to.equal('store');
  });

  it('allow storage at the vendor if the operator configures it (E11)', async () => {
    for (const [path, body] of [
      [CHAT, { ...MESSAGES, model: 'keeping/gpt-4o' }],
      [CHAT, { ...MESSAGES, model: 'kept/gemini-3.8-flash' }],
      [NATIVE_GEMINI('kept'), CONTENTS],
    ] as const)
      for (const store of [undefined, false, true]) {
        const { status, sent } = await send(path, { ...body, ...(store !== undefined && { store }) });
        expect([status, sent[0]?.['store']], path).to.deep.equal([200, store]);
      }
  });

  for (const [field, cannot, can] of CONDITIONS)
    it(`are satisfied or refused, never dropped (E11): ${JSON.stringify(field)}`, async () => {
      const [name = ''] = Object.keys((field['extra_body'] ?? field) as JsonObject);
      for (const model of cannot) {
        const { status, sent, text } = await send(CHAT, { ...MESSAGES, ...field, model });
        expect([status, sent], `${model}: ${text}`).to.deep.equal([400, []]);
        expect(JSON.parse(text)).to.have.nested.property('error.param').that.includes(name);
      }
      const served = await send(CHAT, { ...MESSAGES, ...field, model: can ?? '' });
      expect(served.status, served.text).to.equal(200);
      expect(served.sent[0]).to.have.property(name);
    });

  it('move to the next target if the first cannot satisfy them (E11)', async () => {
    const { status, headers, sent } = await send(CHAT, { ...MESSAGES, model: 'any', inference_geo: 'eu' });
    expect([status, headers.get('x-tollgate-provider'), sent.length]).to.deep.equal([200, 'relay', 1]);
  });

  it('are the same in the vendor’s own format, and a value without effect is no condition (E11)', async () => {
    const own = { ...MESSAGES, model: 'anthropic/claude-opus-5', max_tokens: 20 };
    const relayed = { ...own, model: 'openai/gpt-4o' };
    const native = await send('/v1/messages', { ...own, inference_geo: 'us' });
    expect([native.status, native.sent[0]?.['inference_geo']]).to.deep.equal([200, 'us']);
    expect((await send('/v1/messages', { ...relayed, inference_geo: 'us' })).status).to.equal(400);
    for (const path of [CHAT, '/v1/messages'])
      expect((await send(path, { ...relayed, inference_geo: 'global' })).status, path).to.equal(200);
  });
});
