/** Names of reasoning: clients of chat completions read and send back its text under different names. */
import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, type Wire, wholeBody } from '../support/vendors/vendor-wires.ts';

const THOUGHT = 'They greet me.';
const SAID: ScriptedOutput = { pieces: [{ reasoning: THOUGHT, signature: 'c2ln' }, { text: 'Hello' }] };

/** Wires with a model on each. The last vendor names the text `reasoning`. */
const MODELS: readonly (readonly [wire: Wire | 'groq', model: string])[] = [
  ['deepseek', 'deepseek/deepseek-reasoner'],
  ['mistral', 'mistral/magistral-medium'],
  ['anthropic', 'anthropic/claude-opus-5'],
  ['gemini', 'gemini/gemini-3.8-flash'],
  ['groq', 'groq/qwen3-32b'],
];

const inGroqsWords = (text: string): string => text.replaceAll('"reasoning_content"', '"reasoning"');

describe('the names of reasoning in chat completions', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    upstream = await startScriptedUpstream(async (wire) => {
      const { path } = wire.request;
      const name = path.split('/')[1];
      const form = name === 'groq' ? 'deepseek' : (name as Wire);
      const isStream = path.includes('streamGenerate') || wire.request.body.includes('"stream":true');
      const text = isStream ? streamText(form, SAID) : JSON.stringify(wholeBody(form, SAID));
      const sent = name === 'groq' ? inGroqsWords(text) : text;
      if (!isStream) return wire.send(respondWith(200, sent, { 'content-type': 'application/json' }));
      await wire.send(SSE_HEAD);
      await wire.send(chunk(sent));
      return wire.send(LAST_CHUNK);
    });
    const vendor = (name: string) => ({ apiKey: 'sk-0123456789', baseUrl: `${upstream.url}/${name}`, models: ['*'] });
    gateway = await startGateway({
      providers: {
        ...Object.fromEntries(MODELS.map(([name]) => [name, { ...vendor(name), native: name !== 'deepseek' }])),
        passing: { ...vendor('deepseek'), plugin: 'deepseek' },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  async function send(model: string, more: object = {}, path = '/v1/chat/completions') {
    const messages = [{ role: 'user', content: 'Hi' }];
    const response = await gateway.post(path, { model, messages, ...more }, { authorization: `Bearer ${gateway.key}` });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return text;
  }

  for (const [wire, model] of MODELS) {
    it(`G23: a whole response has the text as \`reasoning\` too: ${wire}`, async () => {
      const { choices } = JSON.parse(await send(model)) as { choices: readonly { message: JsonObject }[] };
      expect(choices[0]?.message).to.include({ reasoning_content: THOUGHT, reasoning: THOUGHT, content: 'Hello' });
    });

    it(`G23: a stream has the text as \`reasoning\` too: ${wire}`, async () => {
      const text = await send(model, { stream: true });
      const chunks = text
        .split('\n')
        .flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6)) as JsonObject] : []));
      const deltas = chunks.flatMap(({ choices }) =>
        (choices as readonly { delta: JsonObject }[]).map(({ delta }) => delta),
      );
      const joined = (name: string): string => deltas.map((delta) => delta[name] ?? '').join('');
      expect(['reasoning_content', 'reasoning', 'content'].map(joined)).to.deep.equal([THOUGHT, THOUGHT, 'Hello']);
    });
  }

  it('G23: frames that pass as the vendor sent them keep its name alone', async () => {
    const text = await send('passing/deepseek-reasoner', { stream: true });
    expect(text).to.include('"reasoning_content":').and.not.include('"reasoning":');
  });

  it('G23: other formats have it once', async () => {
    const text = await send('deepseek/deepseek-reasoner', { max_tokens: 99 }, '/v1/messages');
    expect(text.split(THOUGHT)).to.have.length(2);
  });

  for (const [name, fields] of Object.entries<object>({
    reasoning_content: { reasoning_content: THOUGHT },
    reasoning: { reasoning: THOUGHT },
    'both names': { reasoning_content: THOUGHT, reasoning: THOUGHT },
    'an empty `reasoning_content`': { reasoning_content: '', reasoning: THOUGHT },
    reasoning_details: { reasoning_details: [{ type: 'reasoning.text', text: THOUGHT, index: 0, format: 'unknown' }] },
    thinking: { thinking: THOUGHT },
  }))
    it(`G23: is read back from ${name}`, async () => {
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello', ...fields },
        { role: 'user', content: 'More' },
      ];
      for (const [model, field] of [
        ['deepseek/deepseek-reasoner', 'reasoning_content'],
        ['groq/qwen3-32b', 'reasoning'],
      ] as const) {
        await send(model, { messages });
        const sent = upstream.requests.at(-1)?.json() as { messages: readonly JsonObject[] };
        expect(sent.messages[1], model).to.deep.equal({ role: 'assistant', content: 'Hello', [field]: THOUGHT });
      }
    });
});
