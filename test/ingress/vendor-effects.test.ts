import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { openResponses } from '../support/clients/responses-client.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { responsesBody, responsesEvents, responsesText } from '../support/vendors/responses-wire.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, wholeBody } from '../support/vendors/vendor-wires.ts';

/**
 * Effects that a caller can trigger at vendors, according to their own documents and written without the tables of the
 * plugins. `needs` is the required entry in a key's `serverTools`. Without `needs` no part of the field may reach the
 * vendor.
 *
 * Sources: OAI github.com/openai/openai-openapi (2026-08) · OR OpenRouter's OpenAPI document (2026-08) and
 * openrouter.ai/docs/guides · XAI docs.x.ai, vercel/ai `packages/xai` 4.0 · GROQ `CompletionCreateParams` of groq-sdk
 * 1.6, console.groq.com/docs/compound · TOG togethercomputer/openapi · AZ
 * learn.microsoft.com/azure/ai-foundry/openai/reference · ANT platform.claude.com/docs/en/api/messages · GEM
 * ai.google.dev/api.
 */
const CHAT: readonly (readonly [source: string, model: string, field: JsonObject, needs?: string])[] = [
  ['OAI', 'openai/gpt-5.4', { web_search_options: {} }, 'web_search'],
  ['OAI', 'openai/gpt-4o-search-preview', {}, 'web_search'],
  ['OAI', 'openai/gpt-5-search-api', {}, 'web_search'],
  ['OAI', 'openai/o3-deep-research', {}, 'web_search'],
  ['OAI', 'openai/gpt-4o', { background: true }],
  ['OAI', 'openai/gpt-4o', { conversation: 'conv_1' }],
  ['OAI', 'openai/gpt-4o', { mcp_servers: [{ url: 'https://x.example' }] }],
  ['OAI', 'openai/gpt-4o', { previous_response_id: 'resp_1' }],
  ['OAI', 'openai/gpt-4o', { prompt: { id: 'pmpt_1' } }],
  ['OAI', 'openai/gpt-4o', { tools: [{ type: 'web_search' }] }, 'web_search'],
  ['AZ', 'azure/gpt-4o', { web_search_options: {} }, 'web_search'],
  ['AZ', 'azure/gpt-4o', { data_sources: [{ type: 'azure_search', parameters: { endpoint: 'https://x' } }] }],
  ['OR', 'openrouter/openai/gpt-4o:online', {}, 'web_search'],
  ['OR', 'openrouter/openai/gpt-4o@preset/mine', {}, 'preset'],
  ['OR', 'openrouter/@preset/mine', {}, 'preset'],
  ['OR', 'openrouter/openai/gpt-4o', { web_search_options: { search_context_size: 'high' } }, 'web_search'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'web' }] }, 'web_search'],
  ['OR', 'openrouter/openai/gpt-4o', { extra_body: { plugins: [{ id: 'web', max_results: 9 }] } }, 'web_search'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'web-fetch' }] }, 'web-fetch'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'file-parser' }] }, 'file-parser'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'fusion' }] }, 'fusion'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'auto-router' }] }, 'auto-router'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'auto-beta-router' }] }, 'auto-beta-router'],
  ['OR', 'openrouter/openai/gpt-4o', { plugins: [{ id: 'pareto-router' }] }, 'pareto-router'],
  ['OR', 'openrouter/openai/gpt-4o', { tools: [{ type: 'openrouter:web_search' }] }, 'openrouter:web_search'],
  ['OR', 'openrouter/openai/gpt-4o', { preset: 'mine' }, 'preset'],
  ['OR', 'openrouter/openai/gpt-4o', { models: ['openai/o3-pro'] }],
  ['OR', 'openrouter/openai/gpt-4o', { route: 'fallback' }],
  ['OR', 'openrouter/openai/gpt-4o', { debug: { echo_upstream_body: true } }],
  ['XAI', 'xai/grok-4.7', { search_parameters: { mode: 'on' } }, 'web_search'],
  ['XAI', 'xai/grok-4.7', { deferred: true }],
  ['XAI', 'xai/grok-4.7', { tools: [{ type: 'live_search' }] }, 'live_search'],
  ['GROQ', 'groq/groq/compound', {}, 'compound'],
  ['GROQ', 'groq/compound-beta-mini', {}, 'compound'],
  ['GROQ', 'groq/openai/gpt-oss-120b', { compound_custom: { tools: { enabled_tools: ['web_search'] } } }, 'compound'],
  ['GROQ', 'groq/openai/gpt-oss-120b', { search_settings: { country: 'france' } }, 'web_search'],
  ['GROQ', 'groq/openai/gpt-oss-120b', { tools: [{ type: 'browser_search' }] }, 'browser_search'],
  ['TOG', 'together/m', { safety_model: 'meta-llama/Llama-Guard-4-12B' }],
  ['any', 'together/m', { plugins: [{ id: 'web' }] }],
  ['any', 'deepseek/deepseek-flash', { search_parameters: {} }],
  ['any', 'hyperbolic/m', { models: ['dear'] }],
  ['any', 'ollama/m', { preset: 'mine' }],
  ['any', 'mistral/mistral-large-4', { made_up: 1 }],
  ['any', 'relay/m', { plugins: [{ id: 'web' }] }, 'web_search'],
  ['any', 'relay/m', { web_search_options: {} }, 'web_search'],
  ['any', 'relay/m', { search_parameters: {} }, 'web_search'],
  ['any', 'relay/m:online', {}, 'web_search'],
  ['any', 'closed/m', { made_up: 1 }],
];

/** Effects in vendors' own formats. */
const NATIVE: readonly (readonly [path: string, body: JsonObject, needs: string])[] = [
  [
    '/v1/responses',
    { model: 'openai/gpt-5.4', input: 'Hi', tools: [{ type: 'mcp', server_url: 'https://x.example' }] },
    'mcp',
  ],
  ['/v1/responses', { model: 'openai/o4-mini-deep-research', input: 'Hi' }, 'web_search'],
  ['/v1/responses', { model: 'xai/grok-4.7', input: 'Hi', search_parameters: { mode: 'on' } }, 'web_search'],
  [
    '/v1/messages',
    { model: 'anthropic/claude-opus-5', tools: [{ type: 'web_search_20250305', name: 'w' }] },
    'web_search',
  ],
  [
    '/v1/messages',
    { model: 'shared/claude-opus-5', mcp_servers: [{ type: 'url', url: 'https://x.example', name: 'x' }] },
    'mcp',
  ],
  ['/v1/messages', { model: 'openrouter/openai/gpt-4o:online' }, 'web_search'],
  ['/v1beta/models/gemini/gemini-3.8-flash:generateContent', { tools: [{ google_search: {} }] }, 'google_search'],
  ['/v1beta/models/gemini/gemini-3.8-flash:generateContent', { tools: [{ codeExecution: {} }] }, 'codeExecution'],
  ['/v1beta/models/openrouter/openai%2Fgpt-4o:online:generateContent', {}, 'web_search'],
  ['/v1/completions', { model: 'openai/gpt-4o-search-preview', prompt: 'Hi' }, 'web_search'],
  ['/v1/embeddings', { model: 'openrouter/m:online', input: 'Hi' }, 'web_search'],
  ['/reach', { model: 'openai/gpt-5.4', web_search_options: {} }, 'web_search'],
];

/** Agent that passes its callers' messages on. */
const AGENT = pluginFile({
  name: 'reach',
  kind: 'agent',
  setup: `
    api.route({
      ...{ method: 'POST', path: '/reach', summary: 'Passes on.', auth: ['key'], body: { type: 'object' }, responses: { 200: 'A chat.' } },
      async handler(ctx) {
        const { requestId, principal, signal, body } = ctx.state;
        ctx.body = await api.chat({ messages: [{ role: 'user', content: 'Hi' }], ...body }, { requestId, principal, signal });
      },
    });`,
});

const said = { pieces: [{ text: 'Hello' }] };
const BASES: Readonly<Record<string, object>> = {
  ...Object.fromEntries(
    [
      'openai',
      'azure',
      'openrouter',
      'xai',
      'groq',
      'together',
      'deepseek',
      'hyperbolic',
      'ollama',
      'mistral',
      'gemini',
    ].map((name) => [name, {}]),
  ),
  anthropic: {},
  shared: { plugin: 'anthropic', native: { references: 'allow' } },
  relay: { plugin: 'openai-compatible' },
  closed: { plugin: 'openai-compatible', unknownFields: 'drop' },
};

describe('effects that a caller can trigger at a vendor', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  const keys = new Map<string, string>();

  before(async () => {
    upstream = await startScriptedUpstream(async (wire) => {
      const { path, body } = wire.request;
      const streams = path.includes('stream') || /"stream":true/.test(body.toString());
      const form = path.includes('/messages') ? 'anthropic' : path.includes('generateContent') ? 'gemini' : 'openai';
      if (path.includes('/embeddings'))
        await wire.send(respondWith(200, { data: [{ embedding: [1] }], usage: { prompt_tokens: 1, total_tokens: 1 } }));
      else if (!streams)
        await wire.send(respondWith(200, path.includes('/responses') ? responsesBody(said) : wholeBody(form, said)));
      else {
        await wire.send(SSE_HEAD);
        await wire.send(
          chunk(path.includes('/responses') ? responsesText(responsesEvents(said)) : streamText(form, said)),
        );
        await wire.send(LAST_CHUNK);
      }
    });
    const providers = Object.entries(BASES).map(([name, rest]) => [
      name,
      { apiKey: 'sk-test-0123456789', baseUrl: `${upstream.url}/${name}`, models: ['*'], ...rest },
    ]);
    gateway = await startGateway(
      { providers: Object.fromEntries(providers), agents: { reach: { plugin: './reach.mjs' } } },
      { files: { 'reach.mjs': AGENT } },
    );
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  /** Creates a key with these options. */
  async function keyWith(...options: readonly string[]): Promise<string> {
    const name = options.join(' ');
    const known = keys.get(name);
    if (known !== undefined) return known;
    const made = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options);
    keys.set(name, made.api_key);
    return made.api_key;
  }

  async function send(path: string, body: JsonObject, key: string) {
    const before = upstream.requests.length;
    const response = await gateway.post(path, body, { authorization: `Bearer ${key}` });
    const sent = upstream.requests.slice(before).map(({ body: bytes }) => bytes.toString());
    return { status: response.status, headers: response.headers, text: await response.text(), sent };
  }

  const MESSAGES = { messages: [{ role: 'user', content: 'Hi' }] };
  const words = (field: JsonObject) =>
    JSON.stringify(field)
      .slice(1, -1)
      .replace(/^"extra_body":\{(.*)\}$/, '$1');

  for (const [source, model, field, needs] of CHAT)
    for (const stream of [false, true])
      it(`${needs ? `needs serverTools ${needs}` : 'is not sent'} (E1): ${model} ${words(field)} (${source}${stream ? ', streamed' : ''})`, async () => {
        const body = { ...MESSAGES, model, ...field, ...(stream && { stream }) };
        const plain = await send('/v1/chat/completions', body, await keyWith());
        const [name = ''] = Object.keys(field);
        if (!needs) {
          expect(plain.sent.join(), 'the vendor').to.not.include(`"${name}"`);
          expect(plain.headers.get('x-tollgate-dropped') ?? plain.text).to.include(name);
          return;
        }
        expect([plain.status, plain.sent], plain.text).to.deep.equal([403, []]);
        expect(plain.text).to.include('permission_denied').and.include('serverTools');
        const allowed = await send('/v1/chat/completions', body, await keyWith('--server-tools', needs));
        expect(allowed.status, allowed.text).to.equal(200);
        expect(allowed.sent.join()).to.include(field['tools'] ? '"tools"' : words(field));
      });

  for (const [path, body, needs] of NATIVE)
    it(`needs serverTools ${needs} (E1): ${path} ${JSON.stringify(body).slice(0, 90)}`, async () => {
      const text = { role: 'user', content: 'Hi' };
      const rest = path.startsWith('/v1/messages')
        ? { max_tokens: 20, messages: [text] }
        : path.startsWith('/v1beta')
          ? { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }
          : {};
      const plain = await send(path, { ...rest, ...body }, await keyWith());
      const isOmitted = plain.status === 200 && /x-tollgate|mcp/.test(plain.headers.get('x-tollgate-dropped') ?? '');
      if (isOmitted) expect(plain.sent.join()).to.not.include('server_url');
      else expect([plain.status, plain.sent], plain.text).to.deep.equal([403, []]);
      const allowed = await send(path, { ...rest, ...body }, await keyWith('--server-tools', needs));
      expect([allowed.status, allowed.sent.length], allowed.text).to.deep.equal([200, 1]);
    });

  it('apply on the Responses websocket too (E1)', async () => {
    const client = await openResponses(gateway, await keyWith());
    const before = upstream.requests.length;
    const events = await client.create({ model: 'openai/o3-deep-research', input: 'Hi', store: false });
    client.socket.close();
    expect(JSON.stringify(events)).to.include('permission_denied');
    expect(upstream.requests).to.have.length(before);
  });

  it('may name only models that the key may use, also as the vendor’s own texts (E1, E6)', async () => {
    const listed = await keyWith(
      '--models',
      'anthropic/claude-haiku-4-5,relay/m,openrouter/openai/gpt-4o',
      '--server-tools',
      'preset',
    );
    const body = { model: 'anthropic/claude-haiku-4-5', max_tokens: 20, ...MESSAGES };
    for (const fallbacks of ['default', [{ model: 'claude-opus-5' }], ['claude-opus-5']]) {
      const refused = await send('/v1/messages', { ...body, fallbacks }, listed);
      expect([refused.status, refused.sent], JSON.stringify(fallbacks)).to.deep.equal([403, []]);
    }
    expect((await send('/v1/messages', { ...body, fallbacks: 'default' }, await keyWith())).status).to.equal(200);
    const relayed = { ...MESSAGES, model: 'relay/m', models: ['relay-dear'] };
    expect((await send('/v1/chat/completions', relayed, listed)).status).to.equal(403);
    const preset = { ...MESSAGES, model: 'openrouter/openai/gpt-4o', preset: 'mine' };
    expect((await send('/v1/chat/completions', preset, listed)).status).to.equal(403);
  });

  it('are unlimited for free plugins and the caller’s own tools', async () => {
    const plugins = [{ id: 'response-healing' }, { id: 'context-compression' }];
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    const body = {
      ...MESSAGES,
      model: 'openrouter/openai/gpt-4o',
      plugins,
      tools,
      provider: { sort: 'price' },
      top_k: 3,
    };
    const { status, sent } = await send('/v1/chat/completions', body, await keyWith());
    expect(status).to.equal(200);
    expect(JSON.parse(sent[0] ?? '')).to.deep.include({ plugins, provider: { sort: 'price' }, top_k: 3 });
  });
});
