import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { ChatRequest } from '../../contract/index.ts';
import { effectsOf } from '../../core/calls/gates.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { partOf } from '../support/generated-cases.ts';
import { type BuiltInProvider, loadNetworkProviders } from '../support/plugins/all-providers.ts';
import { AMAZON_HEAD, amazonEvent, amazonStream } from '../support/vendors/amazon-frames.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);
const read = (path: string): Buffer => readFileSync(new URL(path, FIXTURES));

const NAME = 'get_weather';
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const FUNCTION = { name: NAME, description: 'The weather of a city', parameters: PARAMETERS };
const GOOGLE = { tools: [{ functionDeclarations: [FUNCTION] }] };

/** Path and body of each client format, with a tool of the caller. */
const WAYS: Readonly<Record<string, (model: string, stream: boolean) => readonly [path: string, body: object]>> = {
  chat: (model, stream) => [
    '/v1/chat/completions',
    { model, stream, messages: [{ role: 'user', content: 'Hi' }], tools: [{ type: 'function', function: FUNCTION }] },
  ],
  messages: (model, stream) => [
    '/v1/messages',
    {
      ...{ model, stream, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
      tools: [{ name: NAME, description: 'The weather of a city', input_schema: PARAMETERS }],
    },
  ],
  'messages with `type: custom`': (model, stream) => [
    '/v1/messages',
    {
      ...{ model, stream, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
      tools: [{ type: 'custom', name: NAME, description: 'The weather of a city', input_schema: PARAMETERS }],
    },
  ],
  responses: (model, stream) => [
    '/v1/responses',
    { model, stream, input: 'Hi', store: false, tools: [{ type: 'function', ...FUNCTION, strict: false }] },
  ],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...GOOGLE },
  ],
  interactions: (model, stream) => [
    '/v1beta/interactions',
    { model, stream, input: 'Hi', store: false, tools: [{ type: 'function', ...FUNCTION }] },
  ],
  ollama: (model, stream) => [
    '/api/chat',
    { model, stream, messages: [{ role: 'user', content: 'Hi' }], tools: [{ type: 'function', function: FUNCTION }] },
  ],
};

/** Recorded responses of a request by its path: JSON, and stream. */
function recorded(vendor: string, path: string): readonly [whole: string, stream: string] {
  if (path.includes('converse')) return ['bedrock/chat.json', 'bedrock/stream.sse'];
  if (/messages$|rawPredict|\/invoke/i.test(path))
    return ['dialects/messages/recorded.json', 'dialects/messages/recorded.sse'];
  if (path.includes('enerateContent')) return ['gemini/chat.json', 'gemini/stream.sse'];
  if (path.endsWith('responses'))
    return ['dialects/responses/recorded-tools.json', 'dialects/responses/recorded-tools.sse'];
  return [`${vendor}/chat.json`, `${vendor}/stream.sse`];
}

/** Responds in the wire format of the request. */
async function respond(wire: Wire): Promise<void> {
  const [, vendor = '', ...rest] = (wire.request.path.split('?')[0] ?? '').split('/');
  const path = decodeURIComponent(rest.join('/'));
  const isStream = /stream/i.test(path) || (wire.request.json() as { stream?: boolean }).stream === true;
  const [whole, stream] = recorded(vendor, path);
  const file = isStream ? stream : whole;
  if (!existsSync(new URL(file, FIXTURES)))
    return wire.send(respondWith(400, { error: { message: `no fixture for ${wire.request.path}` } }));
  const bytes = read(file);
  if (!isStream) return wire.send(respondWith(200, bytes, { 'content-type': 'application/json' }));
  const isFramed = path.includes('converse') || path.includes('/invoke');
  await wire.send(isFramed ? AMAZON_HEAD : SSE_HEAD);
  if (path.includes('converse')) await wire.send(chunk(amazonStream(bytes.toString())));
  else if (isFramed)
    for (const [, data = ''] of bytes.toString().matchAll(/^data: (.+)$/gm))
      await wire.send(chunk(amazonEvent('chunk', { bytes: Buffer.from(data).toString('base64') })));
  else await wire.send(chunk(bytes));
  return wire.send(LAST_CHUNK);
}

const PROVIDERS = await loadNetworkProviders();

/**
 * Path of a chat at a vendor, which identifies the wire format. Undefined for a model without tools or with built-in
 * search.
 */
function wireOf({ name, provider }: BuiltInProvider, model: string): string | undefined {
  const request: ChatRequest = { model, messages: [{ role: 'user', content: 'Hi' }] };
  const sent = provider.chat?.request(request, { model, stream: false, created: 1, id: 'x', request });
  const needs = sent && effectsOf(provider.effects, { provider: name, model }, sent);
  return needs?.length === 0 ? sent?.path.replaceAll(encodeURIComponent(model), '').replaceAll(model, '') : undefined;
}

/** One model per wire format that has tools. */
function modelsOf(each: BuiltInProvider): readonly string[] {
  const { fields } = each.provider;
  const has = (own: NonNullable<typeof fields>['fields'] = {}) =>
    !/^(?:dropped|refused)$/.test({ ...fields?.fields, ...own }['tools']?.rule ?? '');
  const models = [
    ...(has() ? ['some-model'] : []),
    ...(fields?.variants ?? []).flatMap(({ example, fields: own }) => (has(own) ? [example.model] : [])),
  ];
  const byWire = new Map<string, string>();
  for (const model of models) {
    const wire = wireOf(each, model);
    if (wire !== undefined && !byWire.has(wire)) byWire.set(wire, model);
  }
  return [...byWire.values()];
}

describe('a caller’s own tool, without any permission for server tools', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream(respond);
    const entries = PROVIDERS.flatMap(({ name, provider }) => {
      const entry = { plugin: name, apiKey: 'k', baseUrl: `${vendor.url}/${name}/v1`, models: ['*'] };
      return [[name, entry], ...(provider.native ? [[`${name}-translated`, { ...entry, native: false }]] : [])];
    });
    gateway = await startGateway({ providers: Object.fromEntries(entries) });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  it('G21: the vendors with several APIs are all included', () => {
    expect(modelsOf(PROVIDERS.find(({ name }) => name === 'vertex') as BuiltInProvider)).to.include.members([
      'some-model',
      'claude-sonnet-4-5@20250929',
    ]);
    expect(modelsOf(PROVIDERS.find(({ name }) => name === 'bedrock') as BuiltInProvider)).to.have.length.above(1);
  });

  const TARGETS = PROVIDERS.flatMap((each) => {
    const names = each.provider.native ? [each.name, `${each.name}-translated`] : [each.name];
    return names.flatMap((name) => modelsOf(each).map((model) => [name, model] as const));
  });
  for (const [at, [name, model]] of TARGETS.entries())
    for (const way of partOf(Object.keys(WAYS), at))
      it(`G21: reaches ${name}/${model} by ${way}, with and without a stream`, async () => {
        for (const stream of [false, true]) {
          const [path, body] = (WAYS[way] as (typeof WAYS)[string])(`${name}/${model}`, stream);
          const response = await gateway.post(path, body);
          const text = await response.text();
          expect(response.status, text).to.equal(200);
          expect(text).to.not.match(/"error":\s*\{/);
          expect(vendor.requests.at(-1)?.body.toString()).to.include(`"${NAME}"`);
        }
      });
});
