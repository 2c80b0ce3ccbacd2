/**
 * A conversation that began at Gemini continues elsewhere when Gemini is down. Its signed ids are too long for other
 * vendors.
 */
import { expect } from 'chai';
import type OpenAI from 'openai';
import { jsonFixture } from '../support/formats/codec.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const QUESTION = { role: 'user', content: 'Weather in Paris and Rome?' } as const;
const TOOLS: OpenAI.ChatCompletionTool[] = ['get_weather', 'get_time'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}));
/** As long as the signature of a model after some thinking. */
const SIGNATURE = Buffer.from('signature'.repeat(200)).toString('base64');
const DOWN = respondWith(503, { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } });

/** Gemini's response with parallel calls; the first one is signed. */
function signedCalls(): object {
  const text = JSON.stringify(jsonFixture('gemini/chat-parallel-tools.json'));
  return JSON.parse(text.replace('CiQBcsjafG1wX3Fib/rY+0pQk3s=', SIGNATURE)) as object;
}

/** Fallback vendors of a conversation: the place of their ids, and the ids that they accept. */
const FALLBACKS: readonly (readonly [vendor: string, model: string, takes: RegExp])[] = [
  ['openai', 'gpt-4o', /^.{1,40}$/],
  ['azure', 'gpt-4o', /^.{1,40}$/],
  ['mistral', 'mistral-large-2512', /^[a-zA-Z0-9]{9}$/],
  ['anthropic', 'claude-sonnet-5', /^[a-zA-Z0-9_-]{1,64}$/],
  ['groq', 'openai/gpt-oss-120b', /^.{1,64}$/],
  ['openrouter', 'openai/gpt-4o', /^.{1,64}$/],
];

describe('a conversation that Gemini began', () => {
  let gemini: ScriptedUpstream;
  let other: ScriptedUpstream;
  let gateway: TestGateway;
  let client: OpenAI;
  let turn: OpenAI.ChatCompletionMessage;

  /** History that a client sends back: the turn it received, and a result for each call. */
  const history = (): OpenAI.ChatCompletionMessageParam[] => [
    QUESTION,
    turn,
    ...(turn.tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }) as const),
  ];

  before(async () => {
    gemini = await startScriptedUpstream();
    other = await startScriptedUpstream();
    const there = { apiKey: 'k', baseUrl: `${other.url}/v1`, models: ['*'] };
    gateway = await startGateway({
      providers: {
        gemini: { apiKey: 'k', baseUrl: `${gemini.url}/v1beta` },
        ...Object.fromEntries(FALLBACKS.map(([vendor]) => [vendor, there])),
      },
      models: Object.fromEntries(
        FALLBACKS.map(([vendor, model]) => [`to-${vendor}`, ['gemini/gemini-3.8-flash', `${vendor}/${model}`]]),
      ),
    });
    client = gateway.openai();
    gemini.script(respondWith(200, signedCalls()));
    const { choices } = await client.chat.completions.create({
      model: 'to-openai',
      messages: [QUESTION],
      tools: TOOLS,
    });
    turn = choices[0]?.message ?? expect.fail('no answer');
    expect(turn.tool_calls?.[0]?.id).to.have.length.above(1000);
  });
  after(async () => {
    await gateway.stop();
    await gemini.close();
    await other.close();
  });

  for (const [vendor, , takes] of FALLBACKS) {
    it(`continues at ${vendor}, with valid ids, the same in call and result`, async () => {
      gemini.script(DOWN);
      other.script(respondWith(200, jsonFixture(`${vendor}/chat.json`)));
      await client.chat.completions.create({ model: `to-${vendor}`, messages: history(), tools: TOOLS });
      const sent = other.requests.at(-1)?.body.toString() ?? '';
      const ids = [...sent.matchAll(/"(?:id|tool_call_id|tool_use_id)":"([^"]+)"/g)].map((match) => match[1] ?? '');
      expect(ids).to.have.length(6);
      expect(ids.slice(3)).to.deep.equal(ids.slice(0, 3));
      expect(new Set(ids)).to.have.property('size', 3);
      for (const id of ids) expect(id).to.match(takes);
      expect(sent).not.to.include(SIGNATURE.slice(0, 200)).and.not.to.include('thought_signature');
    });
  }

  it('returns to Gemini with its signature', async () => {
    gemini.script(respondWith(200, jsonFixture('gemini/chat.json')));
    await client.chat.completions.create({ model: 'to-openai', messages: history(), tools: TOOLS });
    const { contents } = gemini.requests.at(-1)!.json() as { contents: { parts: object[] }[] };
    expect(contents[1]?.parts[0]).to.deep.include({ thoughtSignature: SIGNATURE });
    expect(contents[1]?.parts[1]).to.deep.equal({
      functionCall: { id: 'fc_2', name: 'get_weather', args: { city: 'Rome' } },
    });
  });
});
