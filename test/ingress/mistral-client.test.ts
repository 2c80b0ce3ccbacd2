/** Mistral's SDKs, which check each frame by the schema of Mistral's API. The SDK itself runs in `npm run clients`. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { type IngressRig, MODEL_OF, startIngressRig, type Wire } from '../support/gateways/ingress-rig.ts';
import type { ScriptedOutput } from '../support/vendors/vendor-wires.ts';

const AGENT = 'mistral-client-typescript/2.7.0';
const THOUGHT = 'Both cities.';
const SAID: ScriptedOutput = {
  pieces: [
    { reasoning: THOUGHT, signature: 'c2ln' },
    { text: 'Looking.' },
    { call: 'weather', id: 'call00001', arguments: '{"city":"Rome"}' },
    { call: 'weather', id: 'call00002', arguments: '{"city":"Oslo"}' },
  ],
};
const THINKING = { type: 'thinking', thinking: [{ type: 'text', text: THOUGHT }] };
const REQUEST = {
  messages: [{ role: 'user', content: 'The weather in Rome and Oslo?' }],
  tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
};

/** `ContentChunk` and `ToolCall` of the SDK. */
const CONTENT = {
  type: ['string', 'array', 'null'],
  items: {
    oneOf: [
      { required: ['type', 'text'], properties: { type: { const: 'text' }, text: { type: 'string' } } },
      { required: ['type', 'thinking'], properties: { type: { const: 'thinking' }, thinking: { type: 'array' } } },
    ],
  },
};
const CALLS = {
  type: ['array', 'null'],
  items: {
    required: ['function'],
    properties: {
      id: { type: 'string' },
      index: { type: 'integer' },
      function: {
        required: ['name', 'arguments'],
        properties: { name: { type: 'string' }, arguments: { type: ['string', 'object'] } },
      },
    },
  },
};
/** `CompletionChunk` of the SDK, with a choice in each chunk, as its examples read it. */
const isChunk = new Ajv2020({ strict: false }).compile({
  type: 'object',
  required: ['id', 'model', 'choices'],
  properties: {
    usage: { type: 'object', required: ['prompt_tokens', 'completion_tokens', 'total_tokens'] },
    choices: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['index', 'delta', 'finish_reason'],
        properties: { delta: { type: 'object', properties: { content: CONTENT, tool_calls: CALLS } } },
      },
    },
  },
});

const WIRES: readonly Wire[] = ['mistral', 'deepseek', 'openai', 'anthropic', 'gemini'];
const modelOf = (wire: Wire): string => (wire === 'openai' ? 'openai/gpt-4o' : MODEL_OF[wire]);

describe('Mistral’s SDK', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  async function send(body: object, agent = AGENT): Promise<string> {
    const headers = { authorization: `Bearer ${rig.gateway.key}`, 'user-agent': agent };
    const response = await rig.gateway.post('/v1/chat/completions', { ...REQUEST, ...body }, headers);
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return text;
  }

  const chunksOf = (text: string) =>
    text.split('\n').flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6)) as JsonObject] : []));

  for (const wire of WIRES) {
    it(`G25: streams tool calls, thinking and usage in Mistral’s form: ${wire}`, async () => {
      rig.say(wire, SAID);
      const chunks = chunksOf(await send({ model: modelOf(wire), stream: true }));
      for (const one of chunks) expect(isChunk(one), JSON.stringify([one, isChunk.errors])).to.equal(true);
      const choices = chunks.flatMap(
        (one) => one['choices'] as readonly { delta: JsonObject; finish_reason: string }[],
      );
      const calls = choices.flatMap(({ delta }) => (delta['tool_calls'] ?? []) as readonly { function: object }[]);
      expect(calls.map((call) => call.function)).to.deep.equal([
        { name: 'weather', arguments: '{"city":"Rome"}' },
        { name: 'weather', arguments: '{"city":"Oslo"}' },
      ]);
      const parts = choices.flatMap(({ delta }) => (Array.isArray(delta['content']) ? delta['content'] : []));
      const thoughts = (parts as readonly { thinking?: readonly { text: string }[] }[]).flatMap(
        ({ thinking = [] }) => thinking,
      );
      expect(thoughts.map(({ text }) => text).join('')).to.equal(THOUGHT);
      expect(chunks.at(-1)?.['usage']).to.include({ prompt_tokens: 20, completion_tokens: 5 });
      expect(choices.at(-1)?.finish_reason).to.equal('tool_calls');
    });

    it(`G25: gets thinking as a part of a whole response: ${wire}`, async () => {
      rig.say(wire, SAID);
      const { choices } = JSON.parse(await send({ model: modelOf(wire) })) as { choices: { message: JsonObject }[] };
      expect(choices[0]?.message['content']).to.deep.equal([THINKING, { type: 'text', text: 'Looking.' }]);
      expect(choices[0]?.message['tool_calls']).to.have.length(2);
    });
  }

  it('G25: sends thinking back as a part, which a vendor gets under its own name', async () => {
    rig.say('deepseek', SAID);
    const messages = [
      ...REQUEST.messages,
      { role: 'assistant', content: [THINKING, { type: 'text', text: 'Looking.' }] },
      { role: 'user', content: 'And?' },
    ];
    await send({ model: MODEL_OF.deepseek, messages });
    expect(rig.lastBody<{ messages: unknown[] }>('deepseek').messages[1]).to.deep.equal({
      role: 'assistant',
      content: [{ type: 'text', text: 'Looking.' }],
      reasoning_content: THOUGHT,
    });
  });

  it('G25: differs from other clients, whose frames pass as the vendor sent them', async () => {
    rig.say('deepseek', SAID);
    const text = await send({ model: MODEL_OF.deepseek, stream: true }, 'OpenAI/JS 7.57.0');
    expect(text).to.include('"reasoning_content":').and.not.include('"type":"thinking"').and.not.include('"usage"');
  });
});
