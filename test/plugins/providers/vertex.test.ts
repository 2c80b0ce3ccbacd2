import { expect } from 'chai';
import type { JsonObject } from '../../../contract/index.ts';
import vertex from '../../../plugins/providers/vertex.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { translate } from '../../support/formats/translate.ts';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../../support/vendors/scripted-upstream.ts';
import { streamText, type Wire, wholeBody } from '../../support/vendors/vendor-wires.ts';

const CONFIG = { project: 'acme-1', location: 'europe-west4' };
const CLAUDE = 'claude-opus-4-5@20251101';
const SAID = { pieces: [{ text: 'Hello' }] };
const SIGNED = { pieces: [{ reasoning: 'Hm', signature: 'Eq-canary' }, { text: 'Hello' }] };

describe('vertex', () => {
  it('calls the host of its location, or that of several', () => {
    const at = (location?: string) =>
      setUpProvider(vertex, { project: 'acme-1', ...(location !== undefined && { location }) }).baseUrl;
    expect(at('europe-west4')).to.equal(
      'https://europe-west4-aiplatform.googleapis.com/v1/projects/acme-1/locations/europe-west4',
    );
    expect(at()).to.equal('https://aiplatform.googleapis.com/v1/projects/acme-1/locations/global');
    expect(at('eu')).to.equal('https://aiplatform.eu.rep.googleapis.com/v1/projects/acme-1/locations/eu');
  });

  it('reports missing options', async () => {
    const check = async (config: object) => JSON.stringify(await vertex.check?.(config as never, {} as never));
    expect(await check(CONFIG)).to.equal('[]');
    expect(await check({})).to.include('needs `project`');
    expect(await check({ ...CONFIG, apiKey: 'x', google: { metadata: true } })).to.include('apiKey');
    expect(await check({ ...CONFIG, google: {} })).to.include('serviceAccount');
  });

  it('has models of Google below their publisher and tuned ones below the project', () => {
    const path = (model: string, stream = false) => translate(vertex, { model, stream }, CONFIG).path;
    expect(path('gemini-2.5-pro')).to.equal('/publishers/google/models/gemini-2.5-pro:generateContent');
    expect(path('gemini-2.5-pro', true)).to.equal(
      '/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    );
    expect(path('endpoints/123')).to.equal('/endpoints/123:generateContent');
  });

  it('sends Claude its own format, without the model', () => {
    const { path, body } = translate(vertex, { model: CLAUDE, max_tokens: 20, stream: true }, CONFIG);
    expect(path).to.equal('/publishers/anthropic/models/claude-opus-4-5%4020251101:streamRawPredict');
    expect(body).to.deep.equal({
      max_tokens: 20,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      stream: true,
      anthropic_version: 'vertex-2023-10-16',
    });
  });

  it('leaves `store` out, which is of Gemini’s own API', () => {
    const { body, dropped } = translate(vertex, { model: 'gemini-2.5-pro', store: true }, CONFIG);
    expect(body).to.not.have.property('store');
    expect(dropped).to.deep.equal(['store']);
  });
});

describe('a gateway before Vertex AI', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let said: Parameters<typeof wholeBody>[1];

  beforeEach(() => {
    said = SAID;
  });
  before(async () => {
    vendor = await startScriptedUpstream(async (wire) => {
      const { path } = wire.request;
      const form: Wire = path.includes('anthropic') ? 'anthropic' : 'gemini';
      if (!path.includes(':stream')) return wire.send(respondWith(200, wholeBody(form, said)));
      for (const part of [SSE_HEAD, chunk(streamText(form, said)), LAST_CHUNK]) await wire.send(part);
    });
    gateway = await startGateway({
      providers: { vertex: { ...CONFIG, apiKey: 'ya29.token-0123456789', baseUrl: vendor.url } },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const send = async (path: string, body: JsonObject, headers: Record<string, string> = {}) => {
    const response = await gateway.post(path, body, headers);
    const sent = vendor.requests.at(-1);
    return { response, text: await response.text(), sent };
  };
  const HI = [{ role: 'user', content: 'Hi' }];

  for (const model of ['gemini-2.5-pro', CLAUDE])
    for (const stream of [false, true])
      it(`returns the response of ${model}${stream ? ', streamed' : ''}`, async () => {
        const { text, sent } = await send('/v1/chat/completions', { model: `vertex/${model}`, messages: HI, stream });
        const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part);
        expect(words.join('')).to.equal('Hello');
        expect(text).to.include('"finish_reason":"stop"');
        expect(sent?.headers['authorization']).to.equal('Bearer ya29.token-0123456789');
      });

  for (const stream of [false, true])
    it(`passes on requests of Messages clients to Claude, except the model${stream ? ', streamed' : ''}`, async () => {
      const body = { model: `vertex/${CLAUDE}`, max_tokens: 20, messages: HI, ...(stream && { stream }) };
      const { response, text, sent } = await send('/v1/messages', body);
      expect(response.status, text).to.equal(200);
      expect(response.headers.get('x-tollgate-lane')).to.equal('native');
      expect(sent?.path).to.equal(
        `/publishers/anthropic/models/claude-opus-4-5%4020251101:${stream ? 'streamRawPredict' : 'rawPredict'}`,
      );
      expect(sent?.json()).to.deep.equal({
        ...{ max_tokens: 20, messages: HI, anthropic_version: 'vertex-2023-10-16' },
        ...(stream && { stream }),
      });
      expect(sent?.headers).to.not.have.property('anthropic-version');
    });

  for (const stream of [false, true])
    it(`E38: seals Claude’s signatures, and sends them back to Vertex only for their account${stream ? ', streamed' : ''}`, async () => {
      said = SIGNED;
      const keyOf = async (user: string) => {
        const { api_key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', user);
        return { authorization: `Bearer ${api_key}` };
      };
      const [ann, bob] = [await keyOf(`ann-${stream}`), await keyOf(`bob-${stream}`)];
      const body = { model: `vertex/${CLAUDE}`, max_tokens: 20, stream };
      const { text } = await send('/v1/messages', { ...body, messages: HI }, ann);
      expect(text).to.not.match(/"signature":"Eq/);
      const signature = /"signature":"(tg1\.vertex\.[^"]+)"/.exec(text)?.[1];
      const thinking = { type: 'thinking', thinking: 'Hm', signature };
      const messages = [...HI, { role: 'assistant', content: [thinking, { type: 'text', text: 'Hello' }] }, ...HI];
      const own = await send('/v1/messages', { ...body, messages }, ann);
      expect(JSON.stringify(own.sent?.json())).to.include('"signature":"Eq-canary"');
      const other = await send('/v1/messages', { ...body, messages }, bob);
      expect(other.response.status).to.equal(200);
      expect(JSON.stringify(other.sent?.json())).to.not.include('Eq-canary');
      expect(other.response.headers.get('x-tollgate-dropped')).to.include('reasoning');
    });

  it('passes on requests of Gemini’s clients', async () => {
    const body = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] };
    const { response, sent } = await send('/v1beta/models/vertex%2Fgemini-2.5-pro:generateContent', body);
    expect(response.headers.get('x-tollgate-lane')).to.equal('native');
    expect(sent?.path).to.equal('/publishers/google/models/gemini-2.5-pro:generateContent');
  });
});
