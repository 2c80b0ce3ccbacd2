/** Arguments of tools keep the text of their numbers in each client format and each vendor's format. */
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

describe('numbers in arguments of tools', () => {
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
