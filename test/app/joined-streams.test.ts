/** A vendor that streams without a request for it: callers get the whole response that they requested. */
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, WIRES } from '../support/vendors/vendor-wires.ts';

const SAID = {
  pieces: [
    { reasoning: 'The user greets.' },
    { text: 'Guten Tag' },
    { call: 'pay', id: 'call_1', arguments: '{"price":1}' },
    { call: 'look', id: 'call_2', arguments: '{"at":"x"}' },
  ],
};

const WAYS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  chat: ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
  messages: ['/v1/messages', { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }],
  responses: ['/v1/responses', { input: 'Hi', store: false }],
};

describe('a vendor that sends a stream for a request without `stream`', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    const own = { baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    gateway = await startGateway({
      providers: {
        openai: { ...own, plugin: 'openai-compatible' },
        anthropic: own,
        gemini: own,
        mistral: own,
        deepseek: own,
        vllm: own,
      },
    });
  });
  after(() => Promise.all([gateway?.stop(), vendor?.close()]));

  async function send(way: string, model: string) {
    const [path, body] = WAYS[way] ?? ['', {}];
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...body }),
    });
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  }

  for (const wire of [...WIRES, 'vllm'] as const)
    for (const way of Object.keys(WAYS))
      it(`answers ${way} as a whole from ${wire} (G6)`, async () => {
        const events = streamText(wire === 'vllm' ? 'openai' : wire, SAID);
        vendor.script((to) => to.send(`${SSE_HEAD}${chunk(events)}${LAST_CHUNK}`));
        const { status, type, text } = await send(way, `${wire}/m`);
        expect(status, text).to.equal(200);
        expect(type).to.equal('application/json; charset=utf-8');
        expect(text).to.include('Guten Tag').and.include('pay').and.include('look');
        expect(text.match(/price\\?":\s?1/g)).to.have.length(1);
        const { usage, choices } = JSON.parse(text);
        expect(usage.prompt_tokens ?? usage.input_tokens).to.equal(20);
        expect(usage.completion_tokens ?? usage.output_tokens).to.equal(5);
        if (way !== 'chat') return;
        const { message, finish_reason: reason } = choices[0];
        expect(reason).to.equal('tool_calls');
        expect(message.content).to.equal('Guten Tag');
        expect(message.reasoning_content).to.equal('The user greets.');
        const calls = message.tool_calls as { id: string; type: string; function: object }[];
        expect(calls.map((call) => [call.type, call.function])).to.deep.equal([
          ['function', { name: 'pay', arguments: '{"price":1}' }],
          ['function', { name: 'look', arguments: '{"at":"x"}' }],
        ]);
      });

  it('ends the response at the end of the stream, not of the socket (G6)', async () => {
    vendor.script((to) => to.send(`${SSE_HEAD}${chunk(streamText('openai', SAID))}`));
    const { status, text } = await send('chat', 'openai/m');
    expect(status, text).to.equal(200);
    expect(text).to.include('Guten Tag');
  });

  it('fails if the stream breaks off (G6)', async () => {
    const events = streamText('openai', SAID).split('\n\n').slice(0, 4).join('\n\n');
    vendor.script((to) => to.send(`${SSE_HEAD}${chunk(`${events}\n\n`)}${LAST_CHUNK}`));
    const { status, text } = await send('chat', 'openai/m');
    expect(status, text).to.equal(503);
  });
});
