import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { sayScript } from '../support/gateways/ingress-rig.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { type Template, templateError } from '../support/vendors/chat-templates.ts';
import { sendResponses } from '../support/vendors/responses-wire.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

type Json = Readonly<Record<string, unknown>>;

/** Rejects every request in which a hook saw an empty list. */
const WATCHER = pluginFile({
  name: 'watcher',
  kind: 'policy',
  setup: `
    api.hook('prepare', ({ request }) => {
      if (/:\\[\\]/.test(JSON.stringify(request))) throw new Error('a hook sees an empty list');
      return request;
    });`,
});

const TOOL = { name: 'look', input_schema: { type: 'object', properties: {} } };

describe('a self-hosted model behind the gateway', () => {
  let template: Template | undefined;
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream((wire) => {
      // Only chat completions have these rules: vendors' own formats accept empty lists.
      const isChat = wire.request.path.endsWith('/chat/completions');
      const refused = isChat && templateError(template, wire.request.json() as Json);
      if (refused) return wire.send(respondWith(400, refused));
      const isMessages = wire.request.path.endsWith('/messages');
      if (wire.request.path.endsWith('/responses')) return sendResponses({ pieces: [{ text: 'Yes.' }] })(wire);
      return sayScript(isMessages ? 'anthropic' : 'openai', { pieces: [{ text: 'Yes.' }] })(wire);
    });
    const baseUrl = `${vendor.url}/v1`;
    const models = ['*'];
    gateway = await startGateway(
      {
        providers: {
          vllm: { baseUrl, models },
          mistral: { baseUrl, models, apiKey: 'k' },
          openai: { baseUrl, models, apiKey: 'k' },
          anthropic: { baseUrl: vendor.url, models, apiKey: 'k' },
          strict: {
            plugin: 'anthropic',
            baseUrl: vendor.url,
            models,
            apiKey: 'k',
            turnOrder: { systemMessages: 'first' },
          },
        },
        plugins: ['./watcher.mjs'],
      },
      { files: { 'watcher.mjs': WATCHER } },
    );
  });

  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const post = async (path: string, body: Json) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return {
      status: response.status,
      dropped: response.headers.get('x-tollgate-dropped'),
      lane: response.headers.get('x-tollgate-lane'),
      text,
    };
  };
  const lastMessages = () => {
    const { messages } = (vendor.requests.at(-1)?.json() ?? {}) as { readonly messages?: readonly Json[] };
    return messages ?? [];
  };

  const CONVERSATIONS: readonly (readonly [title: string, path: string, body: Json])[] = [
    [
      'Messages with a system message amid the conversation',
      '/v1/messages',
      {
        max_tokens: 50,
        system: 'Be brief.',
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'system', content: 'Agents: none.' },
        ],
      },
    ],
    [
      'a tool’s result and a system message after it',
      '/v1/messages',
      {
        max_tokens: 50,
        tools: [TOOL],
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
          { role: 'system', content: 'Agents: none.' },
        ],
      },
    ],
    [
      'Responses with instructions and a developer item',
      '/v1/responses',
      {
        instructions: 'Be brief.',
        input: [
          { role: 'developer', content: 'No jokes.' },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    [
      'chat with two system messages',
      '/v1/chat/completions',
      {
        messages: [
          { role: 'system', content: 'A' },
          { role: 'user', content: 'Hi' },
          { role: 'system', content: 'B' },
        ],
      },
    ],
  ];

  for (const [name, model] of [
    ['qwen', 'vllm/qwen3.5-27b'],
    ['mistral', 'mistral/mistral-large-4'],
    ['mistral', 'vllm/mistral-small-4'],
  ] as const)
    for (const [title, path, body] of CONVERSATIONS)
      for (const stream of [false, true])
        it(`G1: ${model} accepts ${title}${stream ? ', streamed' : ''}`, async () => {
          template = name;
          const { status, text, dropped } = await post(path, { ...body, model, stream });
          expect(status, text).to.equal(200);
          expect(text).to.match(/Yes\.|"Y/);
          expect(dropped ?? '').to.equal(path === '/v1/responses' ? '' : 'messages.system');
        });

  it('G1: Claude gets the body of Messages unchanged, unless the operator has set an order', async () => {
    template = undefined;
    const [[, path, body] = ['', '', {}]] = CONVERSATIONS;
    const asIs = await post(path, { ...body, model: 'anthropic/claude-opus-5-5' });
    expect(asIs).to.deep.include({ status: 200, lane: 'native', dropped: null });
    expect(lastMessages().map(({ role }) => role)).to.deep.equal(['user', 'system']);
    const ordered = await post(path, { ...body, model: 'strict/claude-opus-5-5' });
    expect(ordered).to.deep.include({ status: 200, lane: 'translated', dropped: 'messages.system' });
    expect(lastMessages().map(({ role }) => role)).to.deep.equal(['user']);
  });

  const EMPTY: readonly (readonly [path: string, body: Json])[] = [
    [
      '/v1/chat/completions',
      {
        tools: [],
        functions: [],
        stop: [],
        tool_choice: 'auto',
        messages: [
          { role: 'system', content: [] },
          { role: 'assistant', content: 'A', tool_calls: [] },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    [
      '/v1/messages',
      {
        max_tokens: 50,
        tools: [],
        stop_sequences: [],
        system: [],
        messages: [
          { role: 'user', content: [] },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    [
      '/v1/responses',
      {
        tools: [],
        include: [],
        input: [
          { role: 'developer', content: [] },
          { role: 'user', content: 'Hi' },
        ],
      },
    ],
    [
      '/v1beta/models/MODEL:generateContent',
      { tools: [], generationConfig: { stopSequences: [] }, contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    ],
    [
      '/api/chat',
      {
        tools: [],
        stream: false,
        options: { stop: [] },
        messages: [{ role: 'user', content: 'Hi', tool_calls: [], images: [] }],
      },
    ],
    ['/v1/completions', { prompt: 'Hi', stop: [] }],
  ];
  for (const model of ['openai/gpt-4o', 'vllm/qwen3.5-27b', 'mistral/mistral-large-4'])
    for (const [path, body] of EMPTY)
      it(`G2: ${model} gets no empty list of ${path}, and hooks see none`, async () => {
        template = undefined;
        const { status, text } = await post(path.replace('MODEL', model), { ...body, model });
        expect(status, text).to.equal(200);
      });

  for (const [path, body, param] of [
    [
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: 'Hi' }], tool_choice: 'required', tools: [] },
      'tool_choice',
    ],
    [
      '/v1/messages',
      { max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }], tool_choice: { type: 'any' }, tools: [] },
      'tool_choice',
    ],
    ['/v1/responses', { input: 'Hi', tool_choice: 'required', tools: [] }, 'tool_choice'],
  ] as const)
    it(`G2: ${path} refuses a forced choice without tools, and no vendor is called`, async () => {
      const before = vendor.requests.length;
      const { status, text } = await post(path, { ...body, model: 'openai/gpt-4o' });
      expect({ status, text }).to.deep.include({ status: 400 });
      expect(text).to.include(param);
      expect(vendor.requests.length).to.equal(before);
    });
});
