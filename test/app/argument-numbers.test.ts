/** Arguments and schemas of tools keep the text of their numbers in each client format and each vendor's format. */
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, WIRES, wholeBody } from '../support/vendors/vendor-wires.ts';

const EXACT = '{"id":12345678901234567890,"price":1.10,"list":[-0.50,1e5]}';
/** The same after `JSON.parse` and `JSON.stringify`. */
const ROUNDED = JSON.stringify(JSON.parse(EXACT));
const SAID = { pieces: [{ call: 'pay', id: 'toolu_1', arguments: EXACT }] };

const TOOL = { name: 'pay', description: 'Pays', parameters: { type: 'object', properties: {} } };

/** Schema of a number whose bounds a double would change. */
const AMOUNT = '"minimum":1.10,"maximum":12345678901234567890';
const AMOUNT_SCHEMA = {
  type: 'object',
  properties: { amount: { type: 'number', ...(JSON.parse(`{${AMOUNT}}`) as object) } },
  required: ['amount'],
};
const AMOUNT_TOOL = { ...TOOL, parameters: AMOUNT_SCHEMA };

/** Path and body of each client format, with a tool or a response format that has this schema. */
const SCHEMAS: Readonly<Record<string, (model: string) => readonly [path: string, tool: object, format?: object]>> = {
  chat: (model) => [
    '/v1/chat/completions',
    { model, messages: [{ role: 'user', content: 'Hi' }], tools: [{ type: 'function', function: AMOUNT_TOOL }] },
    {
      ...{ model, messages: [{ role: 'user', content: 'Hi' }] },
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: AMOUNT_SCHEMA } },
    },
  ],
  messages: (model) => [
    '/v1/messages',
    {
      ...{ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
      tools: [{ name: 'pay', input_schema: AMOUNT_SCHEMA }],
    },
    {
      ...{ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
      output_config: { format: { type: 'json_schema', schema: AMOUNT_SCHEMA } },
    },
  ],
  responses: (model) => [
    '/v1/responses',
    { model, store: false, input: 'Hi', tools: [{ type: 'function', ...AMOUNT_TOOL }] },
    {
      ...{ model, store: false, input: 'Hi' },
      text: { format: { type: 'json_schema', name: 'a', schema: AMOUNT_SCHEMA } },
    },
  ],
  gemini: (model) => [
    `/v1beta/models/${model}:generateContent`,
    { contents: [{ parts: [{ text: 'Hi' }] }], tools: [{ functionDeclarations: [AMOUNT_TOOL] }] },
    {
      contents: [{ parts: [{ text: 'Hi' }] }],
      generationConfig: { responseMimeType: 'application/json', responseSchema: AMOUNT_SCHEMA },
    },
  ],
  ollama: (model) => [
    '/api/chat',
    {
      model,
      stream: false,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: AMOUNT_TOOL }],
    },
    { model, stream: false, messages: [{ role: 'user', content: 'Hi' }], format: AMOUNT_SCHEMA },
  ],
  interactions: (model) => [
    '/v1beta/interactions',
    { model, store: false, input: 'Hi', tools: [{ type: 'function', ...AMOUNT_TOOL }] },
  ],
};

/** Path and body of each client format, with a call in the history. */
const WAYS: Readonly<Record<string, (model: string, stream: boolean) => readonly [path: string, body: string]>> = {
  chat: (model, stream) => [
    '/v1/chat/completions',
    JSON.stringify({
      ...{ model, stream, tools: [{ type: 'function', function: TOOL }] },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'pay', arguments: EXACT } }] },
        { role: 'tool', tool_call_id: 'c', content: 'done' },
      ],
    }),
  ],
  messages: (model, stream) => [
    '/v1/messages',
    JSON.stringify({
      ...{ model, stream, max_tokens: 100, tools: [{ name: 'pay', input_schema: TOOL.parameters }] },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'pay', input: JSON.parse(EXACT) }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'done' }] },
      ],
    }),
  ],
  gemini: (model, stream) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    JSON.stringify({
      tools: [{ functionDeclarations: [TOOL] }],
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { id: 'c', name: 'pay', args: JSON.parse(EXACT) } }] },
        { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'pay', response: { result: 'done' } } }] },
      ],
    }),
  ],
  ollama: (model, stream) => [
    '/api/chat',
    JSON.stringify({
      ...{ model, stream, tools: [{ type: 'function', function: TOOL }] },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: '', tool_calls: [{ function: { name: 'pay', arguments: JSON.parse(EXACT) } }] },
        { role: 'tool', content: 'done' },
      ],
    }),
  ],
  interactions: (model, stream) => [
    '/v1beta/interactions',
    JSON.stringify({
      ...{ model, stream, store: false, tools: [{ type: 'function', ...TOOL }] },
      input: [
        { type: 'user_input', content: [{ type: 'text', text: 'Hi' }] },
        { type: 'function_call', id: 'c', name: 'pay', arguments: JSON.parse(EXACT) },
        { type: 'function_result', call_id: 'c', name: 'pay', result: 'done' },
      ],
    }),
  ],
};

/** Puts the exact numbers into a text that `JSON.stringify` wrote. */
const exactIn = (json: string): string => json.replaceAll(ROUNDED, EXACT);

/** Arguments in a text of any format: an object, a text, or pieces of a text. */
function argumentsIn(text: string): string {
  const pieces = [...text.matchAll(/"(?:arguments|partial_json)":\s?("(?:[^"\\]|\\.)*")/g)].map(
    ([, piece = '""']) => JSON.parse(piece) as string,
  );
  return `${pieces.join('')}\n${text}`;
}

const CONVERSE = JSON.stringify({
  output: {
    message: { role: 'assistant', content: [{ toolUse: { toolUseId: 't', name: 'pay', input: JSON.parse(EXACT) } }] },
  },
  stopReason: 'tool_use',
  usage: { inputTokens: 20, outputTokens: 5, totalTokens: 25 },
});

const WHOLE: Readonly<Record<string, string>> = {
  bedrock: JSON.stringify({
    ...{ output: { message: { role: 'assistant', content: [{ text: '{}' }] } }, stopReason: 'end_turn' },
    usage: { inputTokens: 20, outputTokens: 5, totalTokens: 25 },
  }),
  cohere: JSON.stringify({
    ...{ id: 'c', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [{ type: 'text', text: '{}' }] } },
    usage: { tokens: { input_tokens: 20, output_tokens: 5 } },
  }),
  responses: JSON.stringify({
    ...{ id: 'r', object: 'response', status: 'completed', model: 'gpt-6.1-sol', created_at: 1 },
    output: [
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: '{}' }],
      },
    ],
    usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
  }),
};

describe('numbers in arguments and schemas of tools', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    const own = { baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    gateway = await startGateway({
      providers: {
        openai: { ...own, plugin: 'openai-compatible' },
        anthropic: { ...own, plugin: 'anthropic' },
        gemini: { ...own, plugin: 'gemini' },
        mistral: { ...own, plugin: 'mistral' },
        deepseek: { ...own, plugin: 'deepseek' },
        bedrock: { ...own, plugin: 'bedrock' },
        cohere: { ...own, plugin: 'cohere' },
        gpt: { ...own, plugin: 'openai' },
      },
    });
  });
  after(() => Promise.all([gateway?.stop(), vendor?.close()]));

  async function send(way: string, model: string, stream: boolean): Promise<string> {
    const [path, body] = WAYS[way]?.(model, stream) ?? ['', ''];
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: exactIn(body),
    });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return text;
  }

  /** Sends a request with bounds as they are written, and returns all that the vendor was sent. */
  async function sendSchema(way: string, model: string, at: 1 | 2): Promise<string | undefined> {
    const { [at]: body, 0: path } = SCHEMAS[way]?.(model) ?? [''];
    if (!body) return undefined;
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body).replaceAll(JSON.stringify(JSON.parse(`{${AMOUNT}}`)).slice(1, -1), AMOUNT),
    });
    expect(response.status, await response.text()).to.equal(200);
    return vendor.requests.at(-1)?.body.toString();
  }

  const sent = (): string => argumentsIn(vendor.requests.at(-1)?.body.toString() ?? '');

  for (const way of Object.keys(WAYS)) {
    for (const wire of WIRES) {
      it(`keep their text from ${way} to ${wire} and back (G9)`, async () => {
        vendor.script(respondWith(200, exactIn(JSON.stringify(wholeBody(wire, SAID)))));
        expect(argumentsIn(await send(way, `${wire}/claude-opus-5-5`, false)), 'response').to.include(EXACT);
        expect(sent(), 'request').to.include(EXACT);
        const events = exactIn(streamText(wire, SAID));
        vendor.script((to) => to.send(`${SSE_HEAD}${chunk(events)}${LAST_CHUNK}`));
        expect(argumentsIn(await send(way, `${wire}/claude-opus-5-5`, true)), 'stream').to.include(EXACT);
      });
    }

    it(`keep their text from ${way} to Bedrock and back (G9)`, async () => {
      vendor.script(respondWith(200, exactIn(CONVERSE)));
      expect(argumentsIn(await send(way, 'bedrock/amazon.nova-pro-v1:0', false))).to.include(EXACT);
      expect(sent()).to.include(EXACT);
    });
  }

  const SCHEMA_MODELS = [
    ...WIRES.map((wire) => [wire, wire === 'openai' ? 'openai/gpt-4.1' : `${wire}/claude-opus-5-5`] as const),
    ['bedrock', 'bedrock/amazon.nova-pro-v1:0'] as const,
    ['cohere', 'cohere/command-a-03-2025'] as const,
    ['responses', 'gpt/gpt-6.1-sol'] as const,
  ];
  for (const way of Object.keys(SCHEMAS))
    for (const [wire, model] of SCHEMA_MODELS)
      it(`keep their text in schemas from ${way} to ${wire} (G9)`, async () => {
        const completion = wholeBody(WIRES.find((name) => name === wire) ?? 'openai', { pieces: [{ text: '{}' }] });
        for (const at of [1, 2] as const) {
          vendor.script((to) => {
            const isCompletion = to.request.path.endsWith('/chat/completions');
            return to.send(respondWith(200, (isCompletion ? undefined : WHOLE[wire]) ?? completion));
          });
          const body = await sendSchema(way, model, at);
          if (body === undefined) continue;
          const numbers = [...body.matchAll(/m(?:in|ax)imum\\?"?: ?([\d.e+]+)/g)].map(([, number]) => number);
          expect(numbers, `${at === 1 ? 'tool' : 'format'}: ${body}`).to.deep.equal(['1.10', '12345678901234567890']);
        }
      });

  /** Requests with a result of a tool that is an object. */
  const RESULTS: Readonly<Record<string, (model: string) => readonly [path: string, body: object]>> = {
    gemini: (model) => [
      `/v1beta/models/${model}:generateContent`,
      {
        tools: [{ functionDeclarations: [TOOL] }],
        contents: [
          { role: 'user', parts: [{ text: 'Hi' }] },
          { role: 'model', parts: [{ functionCall: { name: 'pay' } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'pay', response: JSON.parse(EXACT) } }] },
        ],
      },
    ],
    interactions: (model) => [
      '/v1beta/interactions',
      {
        ...{ model, store: false, tools: [{ type: 'function', ...TOOL }] },
        input: [
          { type: 'user_input', content: [{ type: 'text', text: 'Hi' }] },
          { type: 'function_call', id: 'c', name: 'pay', arguments: {} },
          { type: 'function_result', call_id: 'c', name: 'pay', result: JSON.parse(EXACT) },
        ],
      },
    ],
  };
  for (const [way, bodyOf] of Object.entries(RESULTS))
    it(`keep their text in results of tools from ${way} (G9)`, async () => {
      for (const wire of WIRES) {
        vendor.script(respondWith(200, wholeBody(wire, { pieces: [{ text: 'Hello' }] })));
        const [path, body] = bodyOf(`${wire}/claude-opus-5-5`);
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: exactIn(JSON.stringify(body)),
        });
        expect(response.status, await response.text()).to.equal(200);
        expect(sent().replaceAll('\\', ''), wire).to.include(EXACT);
      }
    });

  it('keep their text in streamed arguments of a call (G9)', async () => {
    const pieces = [
      { willContinue: true, name: 'pay', id: 'g' },
      { willContinue: true, partialArgs: [{ jsonPath: '$.id', numberValue: 'ID' }] },
      { willContinue: true, partialArgs: [{ jsonPath: '$.list[0]', numberValue: 'PRICE' }] },
      { partialArgs: [{ jsonPath: '$.note', stringValue: 'x' }] },
    ];
    const events = [...pieces.map((functionCall) => ({ parts: [{ functionCall }] })), { parts: [{ text: '' }] }].map(
      (content, at) => ({ candidates: [{ index: 0, content, ...(at === 4 && { finishReason: 'STOP' }) }] }),
    );
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    const exact = text.replaceAll('"ID"', '12345678901234567890').replaceAll('"PRICE"', '1.10');
    for (const way of Object.keys(WAYS)) {
      vendor.script((to) => to.send(`${SSE_HEAD}${chunk(exact)}${LAST_CHUNK}`));
      const got = argumentsIn(await send(way, 'gemini/gemini-3-pro', true));
      if (way === 'gemini')
        expect(got).to.include('"numberValue":12345678901234567890').and.include('"numberValue":1.10');
      else expect(got, way).to.include('{"id":12345678901234567890,"list":[1.10],"note":"x"}');
    }
  });

  it('keep their text if the first event of a call has them (G9)', async () => {
    const start = { type: 'tool_use', id: 't', name: 'pay', input: JSON.parse(EXACT) };
    const events = streamText('anthropic', SAID)
      .split('\n\n')
      .filter((event) => !event.includes('input_json_delta'))
      .map((event) => event.replace(/"content_block":\{[^}]*\}\}/, `"content_block":${JSON.stringify(start)}`))
      .join('\n\n');
    for (const way of ['chat', 'messages']) {
      vendor.script((to) => to.send(`${SSE_HEAD}${chunk(exactIn(events))}${LAST_CHUNK}`));
      expect(argumentsIn(await send(way, 'anthropic/claude-opus-5-5', true)), way).to.include(EXACT);
    }
  });
});
