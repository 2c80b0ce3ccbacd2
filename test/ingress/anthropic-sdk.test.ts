import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import {
  cutScript,
  type IngressRig,
  MODEL_OF,
  type ScriptedOutput,
  startIngressRig,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const TOOLS: Anthropic.Tool[] = [
  { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: { at: { type: 'string' } } } },
];
const CALLING: ScriptedOutput = {
  pieces: [
    { reasoning: 'Hm.', signature: 'Eq+/=' },
    { text: 'Looking.' },
    { call: 'look', id: 'toolu_1', arguments: '{"at":"x"}' },
  ],
  usage: { prompt: 30, completion: 9, cached: 10 },
};
const bodyOf = (model: string, rest: object = {}) => ({
  ...{ model, max_tokens: 1000, messages: [{ role: 'user' as const, content: 'Hi there' }], ...rest },
});

describe('the official anthropic client', () => {
  let rig: IngressRig;
  let client: Anthropic;

  before(async () => {
    rig = await startIngressRig();
    client = new Anthropic({ apiKey: rig.gateway.key, baseURL: rig.gateway.url, maxRetries: 0 });
  });
  after(() => rig.stop());

  it('gets a message, with the request’s id', async () => {
    const { data, response } = await client.messages.create(bodyOf('echo/echo')).withResponse();
    expect(data.content).to.deep.equal([{ type: 'text', text: 'Hi there' }]);
    expect(data).to.include({ type: 'message', role: 'assistant', stop_reason: 'end_turn', stop_sequence: null });
    expect(data.usage).to.include({ input_tokens: 2, output_tokens: 2 });
    expect(response.headers.get('x-request-id')).to.match(/^req_/);
  });

  it('streams a message', async () => {
    const stream = client.messages.stream(bodyOf('echo/echo'));
    const texts: string[] = [];
    stream.on('text', (text) => texts.push(text));
    const message = await stream.finalMessage();
    expect(texts.join('')).to.equal('Hi there');
    expect(message.usage).to.include({ input_tokens: 2, output_tokens: 2 });
    expect(message.stop_reason).to.equal('end_turn');
  });

  it('throws the gateway’s error where a vendor breaks off after content, so that no short response looks complete', async () => {
    let texts = 0;
    for (const wire of ['openai', 'anthropic', 'gemini'] as const)
      for (const read of [
        async (model: string): Promise<void> => {
          for await (const _event of await client.messages.create({ ...bodyOf(model), stream: true })) texts += 1;
        },
        async (model: string) => await client.messages.stream(bodyOf(model)).finalMessage(),
      ] as const) {
        rig.script(wire, cutScript(wire, { pieces: [{ text: 'half a response' }] }, 4));
        const error: unknown = await read(MODEL_OF[wire]).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(error, wire).to.be.instanceOf(Anthropic.APIError);
        expect(String(error), wire).to.include('interrupted the response before its end');
      }
    expect(texts).to.be.greaterThan(0);
  });

  for (const wire of ['anthropic', 'openai', 'gemini', 'mistral', 'deepseek'] as readonly Wire[]) {
    it(`completes a streamed tool loop with thinking at ${wire}`, async () => {
      rig.say(wire, [CALLING, { pieces: [{ text: 'It is x.' }] }]);
      const model = MODEL_OF[wire];
      const thinking = { type: 'enabled' as const, budget_tokens: 1024 };
      const question = bodyOf(model, { tools: TOOLS, thinking, max_tokens: 4000 });
      const turn = await client.messages.stream(question).finalMessage();
      expect(turn.content.map(({ type }) => type)).to.deep.equal(['thinking', 'text', 'tool_use']);
      expect(turn.stop_reason).to.equal('tool_use');
      expect(turn.usage).to.include({ input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 9 });
      const call = turn.content.find((block) => block.type === 'tool_use') ?? expect.fail('no call');
      expect(call).to.deep.include({ name: 'look', input: { at: 'x' } });
      const messages: Anthropic.MessageParam[] = [
        ...question.messages,
        { role: 'assistant', content: turn.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'x it is' }] },
      ];
      const last = await client.messages.create({ ...question, messages });
      expect(last.content).to.deep.equal([{ type: 'text', text: 'It is x.' }]);
      const sent = rig.sent(wire).at(-1)?.body.toString() ?? '';
      expect(sent).to.include('x it is');
      if (wire === 'anthropic') expect(sent).to.include('"signature":"Eq+/="');
    });
  }

  it('raises the class of each error', async () => {
    const errorOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
      Promise.resolve(promise).then(
        () => expect.fail('no error'),
        (error: unknown) => error,
      );
    const stranger = new Anthropic({ apiKey: 'tg_nonsense', baseURL: rig.gateway.url, maxRetries: 0 });
    expect(await errorOf(stranger.messages.create(bodyOf('echo/echo')))).to.be.instanceOf(
      Anthropic.AuthenticationError,
    );
    expect(await errorOf(client.messages.create(bodyOf('missing/x')))).to.be.instanceOf(Anthropic.NotFoundError);
    const bad = await errorOf(client.messages.create({ ...bodyOf('echo/echo'), max_tokens: 'x' as never }));
    expect(bad).to.be.instanceOf(Anthropic.BadRequestError);
    rig.script('openai', respondWith(429, { error: { message: 'Rate limit reached', code: 'rate_limit_exceeded' } }));
    expect(await errorOf(client.messages.create(bodyOf(MODEL_OF.openai)))).to.be.instanceOf(Anthropic.RateLimitError);
    rig.script('openai', respondWith(503, { error: { message: 'The server is overloaded', code: 'overloaded' } }));
    const failed = await errorOf(client.messages.create(bodyOf(MODEL_OF.openai)));
    expect(failed).to.be.instanceOf(Anthropic.InternalServerError);
    expect((failed as InstanceType<typeof Anthropic.APIError>).error)
      .to.have.property('request_id')
      .that.matches(/^req_/);
  });

  it('raises on an interrupted stream, after the text before it', async () => {
    rig.script('openai', cutScript('openai', { pieces: [{ text: 'half an answer' }] }, 4));
    let text = '';
    const stream = client.messages.stream(bodyOf(MODEL_OF.openai)).on('text', (bit) => {
      text += bit;
    });
    const error = await stream.finalMessage().catch((failure: unknown) => failure);
    expect(error).to.be.instanceOf(Anthropic.APIError);
    expect(text).to.equal('half an a');
  });
});
