import { expect } from 'chai';
import type OpenAI from 'openai';
import { readSse } from '../support/formats/codec.ts';
import { CUTS, type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { answer } from '../support/vendors/scripted-upstream.ts';

describe('OpenAI’s completions in front of five vendors', function () {
  this.timeout(30_000);
  let rig: IngressRig;
  let client: OpenAI;
  before(async () => {
    rig = await startIngressRig();
    client = rig.gateway.openai();
  });
  after(() => rig.stop());

  const post = (body: object) =>
    rig.gateway.post('/v1/completions', { model: MODEL_OF.openai, prompt: 'Once', ...body });

  for (const wire of WIRES)
    for (const cut of CUTS) {
      it(`are text of ${wire}, whole, sent ${cut} bytes at a time`, async () => {
        rig.say(wire, { pieces: [{ text: ' upon a time' }], finish: 'length' }, cut);
        const { object, choices, usage } = await client.completions.create({
          model: MODEL_OF[wire],
          prompt: 'Once',
          max_tokens: 5,
        });
        expect(object).to.equal('text_completion');
        expect(choices).to.deep.equal([{ text: ' upon a time', index: 0, logprobs: null, finish_reason: 'length' }]);
        expect(usage).to.include({ prompt_tokens: 20, completion_tokens: 5 });
        expect(JSON.stringify(rig.lastBody(wire))).to.include('Once');
      });

      it(`are text of ${wire}, streamed, sent ${cut} bytes at a time`, async () => {
        rig.say(wire, { pieces: [{ text: ' upon a time' }] }, cut);
        const stream = await client.completions.create({
          ...{ model: MODEL_OF[wire], prompt: 'Once', echo: true, stream: true },
          stream_options: { include_usage: true },
        });
        let text = '';
        const ends: unknown[] = [];
        let tokens = 0;
        for await (const { choices, usage } of stream) {
          text += choices[0]?.text ?? '';
          if (choices[0]?.finish_reason) ends.push(choices[0].finish_reason);
          tokens += usage?.total_tokens ?? 0;
        }
        expect([text, ends, tokens]).to.deep.equal(['Once upon a time', ['stop'], 25]);
      });
    }

  it('have no usage chunk in a stream that did not ask for one, and one [DONE]', async () => {
    rig.say('openai', { pieces: [{ text: 'x' }] });
    const events = readSse(Buffer.from(await (await post({ stream: true })).arrayBuffer()));
    expect(events.at(-1)?.data).to.equal('[DONE]');
    expect(events.filter(({ data }) => data.includes('usage'))).to.deep.equal([]);
  });

  it('ask for what belongs between a prompt and a suffix in words', async () => {
    rig.say('openai', { pieces: [{ text: 'return 1' }] });
    expect((await post({ prompt: 'def f():', suffix: 'f()' })).status).to.equal(200);
    const { messages } = rig.lastBody<{ messages: { role: string; content: string }[] }>('openai');
    expect(messages).to.have.length(2);
    expect(messages[1]?.content).to.equal('<prefix>def f():</prefix><suffix>f()</suffix>');
  });

  it('tell the probabilities of tokens in the form of before', async () => {
    const token = (text: string) => ({
      token: text,
      logprob: -1,
      bytes: null,
      top_logprobs: [{ token: text, logprob: -1 }],
    });
    const message = { role: 'assistant', content: 'ab', refusal: null };
    const choice = { index: 0, message, finish_reason: 'stop', logprobs: { content: [token('a'), token('b')] } };
    rig.script(
      'openai',
      answer(200, { ...{ id: 'x', object: 'chat.completion', created: 1, model: 'm' }, choices: [choice] }),
    );
    const { choices } = (await (await post({ model: 'openai/gpt-4.1', logprobs: 1 })).json()) as {
      choices: { logprobs: object }[];
    };
    expect(choices[0]?.logprobs).to.deep.equal({
      ...{ tokens: ['a', 'b'], token_logprobs: [-1, -1], text_offset: [0, 1] },
      top_logprobs: [{ a: -1 }, { b: -1 }],
    });
    expect(rig.lastBody('openai')).to.include({ logprobs: true, top_logprobs: 1 });
  });

  for (const [title, body, param] of [
    ['no prompt', { prompt: undefined }, 'prompt'],
    ['several prompts', { prompt: ['a', 'b'] }, 'prompt'],
    ['tokens as a prompt', { prompt: [1, 2, 3] }, 'prompt'],
    ['the best of more than are wanted', { best_of: 3, n: 2 }, 'best_of'],
    ['probabilities of a prompt', { logprobs: 1, echo: true }, 'logprobs'],
    ['too hot a temperature', { temperature: 9 }, 'temperature'],
  ] as const)
    it(`refuse ${title} by its name`, async () => {
      const response = await post(body);
      const { error } = (await response.json()) as { error: { code: string; param: string } };
      expect([response.status, error.code, error.param]).to.deep.equal([400, 'invalid_request', param]);
    });
});
