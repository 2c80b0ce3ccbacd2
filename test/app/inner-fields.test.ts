/** Names below the top level of a chat request follow the rules of those at the top: known, dropped and reported, passed. */
import { expect } from 'chai';
import { type ChatRequest, isGatewayError } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { wholeBody } from '../support/vendors/vendor-wires.ts';

const HELLO = [{ role: 'user', content: 'Hi' }];
const FUNCTION = { name: 'pay', description: 'Pays', parameters: { type: 'object', properties: {} } };
const SCHEMA = { name: 'a', schema: { type: 'object', properties: {} } };
const PICTURE = { url: 'data:image/png;base64,iVBORw0KGgo=' };

/** Conversation with a call of a tool. */
const historyWith = (call: object): object => ({
  messages: [
    ...HELLO,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'done' },
  ],
  tools: [{ type: 'function', function: FUNCTION }],
});

/** Requests with an unknown name, by its path in `x-tollgate-dropped`. */
const REQUESTS: Readonly<Record<string, object>> = {
  'messages.content.wish': { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', wish: 'canary' }] }] },
  'messages.content.image_url.wish': {
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { ...PICTURE, wish: 'canary' } }] }],
  },
  'messages.wish': { messages: [{ role: 'user', content: 'Hi', wish: 'canary' }] },
  'messages.tool_calls.wish': historyWith({
    ...{ id: 'c', type: 'function', wish: 'canary' },
    function: { name: 'pay', arguments: '{}' },
  }),
  'messages.tool_calls.function.wish': historyWith({
    ...{ id: 'c', type: 'function' },
    function: { name: 'pay', arguments: '{}', wish: 'canary' },
  }),
  'tool_choice.wish': {
    ...{ messages: HELLO, tools: [{ type: 'function', function: FUNCTION }] },
    tool_choice: { type: 'function', function: { name: 'pay' }, wish: 'canary' },
  },
  'stream_options.wish': { messages: HELLO, stream: true, stream_options: { wish: 'canary' } },
  'tools.wish': { messages: HELLO, tools: [{ type: 'function', wish: 'canary', function: FUNCTION }] },
  'tools.function.wish': { messages: HELLO, tools: [{ type: 'function', function: { ...FUNCTION, wish: 'canary' } }] },
  'response_format.json_schema.wish': {
    messages: HELLO,
    response_format: { type: 'json_schema', json_schema: { ...SCHEMA, wish: 'canary' } },
  },
};

const MODELS: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['claude-opus-4-5'],
  bedrock: ['amazon.nova-pro-v1:0', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
  gemini: ['gemini-3-pro'],
  openai: ['gpt-4.1', 'gpt-6.1-sol'],
  vertex: ['gemini-3-pro', 'claude-sonnet-4-5@20250929'],
};

const providers = await loadProviders();

describe('names below the top level of a chat request', () => {
  for (const { name, provider } of providers) {
    const { chat, fields } = provider;
    if (!chat || name === 'echo') continue;
    const isPassed = fields?.unknown === 'passed';

    it(`${isPassed ? 'pass' : 'are dropped and reported'} at ${name} if unknown (G3)`, () => {
      for (const model of MODELS[name] ?? ['m'])
        for (const [path, request] of Object.entries(REQUESTS)) {
          const input = { model, ...request } as ChatRequest;
          try {
            const { body, dropped = [] } = chat.request(input, {
              model,
              stream: input.stream === true,
              created: 1,
              id: 'i',
              request: input,
            });
            expect(JSON.stringify(body).includes('canary'), `${model}: ${path} is sent`).to.equal(isPassed);
            if (!isPassed) expect(dropped, model).to.include(path);
          } catch (error) {
            // A provider without this feature refuses it.
            if (!isGatewayError(error)) throw error;
          }
        }
    });
  }

  it('are sent to vendors that have them: `eager_input_streaming` to Claude (G3)', () => {
    const tools = [{ type: 'function', eager_input_streaming: true, function: FUNCTION }];
    let count = 0;
    for (const { name, provider } of providers)
      for (const model of (MODELS[name] ?? []).filter((each) => each.includes('claude'))) {
        const input = { model, messages: HELLO, tools } as unknown as ChatRequest;
        const sent = provider.chat?.request(input, { model, stream: false, created: 1, id: 'i', request: input });
        expect(JSON.stringify(sent?.body), model).to.include('"eager_input_streaming":true');
        expect(sent?.dropped ?? [], model).to.deep.equal([]);
        count += 1;
      }
    expect(count).to.equal(3);
  });

  describe('at a running gateway', () => {
    let vendor: ScriptedUpstream;
    let gateway: TestGateway;

    before(async () => {
      vendor = await startScriptedUpstream();
      const own = { baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
      gateway = await startGateway({ providers: { mistral: own, anthropic: own } });
    });
    after(() => Promise.all([gateway?.stop(), vendor?.close()]));

    /** Requests of other client formats with unknown names, by their paths in `x-tollgate-dropped`. */
    const WAYS: Readonly<Record<string, readonly [path: string, body: object, dropped: readonly string[]]>> = {
      messages: [
        '/v1/messages',
        {
          ...{ model: 'mistral/m', max_tokens: 10 },
          messages: [{ role: 'user', wish: 'canary', content: [{ type: 'text', text: 'Hi', hope: 'canary' }] }],
          tools: [{ name: 'pay', input_schema: FUNCTION.parameters, plea: 'canary' }],
        },
        ['messages.wish', 'messages.content.hope', 'tools.plea'],
      ],
      responses: [
        '/v1/responses',
        {
          ...{ model: 'mistral/m', store: false },
          input: [
            {
              ...{ type: 'message', role: 'user', wish: 'canary' },
              content: [{ type: 'input_text', text: 'Hi', hope: 'canary' }],
            },
          ],
          tools: [{ type: 'function', ...FUNCTION, plea: 'canary' }],
        },
        ['input.wish', 'input.content.hope', 'tools.plea'],
      ],
      gemini: [
        '/v1beta/models/mistral/m:generateContent',
        {
          contents: [{ role: 'user', wish: 'canary', parts: [{ text: 'Hi', hope: 'canary' }] }],
          tools: [{ functionDeclarations: [{ ...FUNCTION, plea: 'canary' }] }],
        },
        ['contents.wish', 'contents.parts.hope', 'tools.functionDeclarations.plea'],
      ],
      interactions: [
        '/v1beta/interactions',
        {
          ...{ model: 'mistral/m', store: false },
          input: [{ type: 'user_input', wish: 'canary', content: [{ type: 'text', text: 'Hi', hope: 'canary' }] }],
          tools: [{ type: 'function', ...FUNCTION, plea: 'canary' }],
        },
        ['input.wish', 'input.content.hope', 'tools.plea'],
      ],
      ollama: [
        '/api/chat',
        {
          ...{ model: 'mistral/m', stream: false },
          messages: [{ role: 'user', content: 'Hi', wish: 'canary' }],
          tools: [{ type: 'function', function: { ...FUNCTION, plea: 'canary' } }],
        },
        ['messages.wish', 'tools.function.plea'],
      ],
    };

    for (const [way, [path, body, expected]] of Object.entries(WAYS))
      it(`are named in x-tollgate-dropped for callers of ${way} (G3)`, async () => {
        vendor.script(respondWith(200, wholeBody('mistral', { pieces: [{ text: 'Hello' }] })));
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        expect(response.status, await response.text()).to.equal(200);
        expect(response.headers.get('x-tollgate-dropped')?.split(', ') ?? []).to.include.members([...expected]);
        expect(vendor.requests.at(-1)?.body.toString()).not.to.include('canary');
      });

    it('are named in x-tollgate-dropped (G3)', async () => {
      const body = {
        messages: [{ role: 'user', note: 'canary', content: [{ type: 'text', text: 'Hi', cid: 'canary' }] }],
        tools: [{ type: 'function', eager_input_streaming: true, function: FUNCTION }],
      };
      const reported: Record<string, string | null> = {};
      for (const wire of ['mistral', 'anthropic'] as const) {
        vendor.script(respondWith(200, wholeBody(wire, { pieces: [{ text: 'Hello' }] })));
        const response = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: `${wire}/claude-opus-4-5`, ...body }),
        });
        expect(response.status, await response.text()).to.equal(200);
        reported[wire] = response.headers.get('x-tollgate-dropped');
        expect(vendor.requests.at(-1)?.body.toString()).not.to.include('canary');
      }
      expect(reported).to.deep.equal({
        mistral: 'messages.note, messages.content.cid, tools.eager_input_streaming',
        anthropic: 'messages.note, messages.content.cid',
      });
    });
  });
});
