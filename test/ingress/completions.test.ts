import { expect } from 'chai';
import type OpenAI from 'openai';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';

describe('OpenAI’s completions, read by its SDK', () => {
  let rig: IngressRig;
  let client: OpenAI;
  before(async () => {
    rig = await startIngressRig();
    client = rig.gateway.openai();
  });
  after(() => rig.stop());

  for (const wire of ['openai', 'anthropic'] as const) {
    it(`are text of ${wire}, without a stream`, async () => {
      rig.say(wire, { pieces: [{ text: ' upon a time' }], finish: 'length' });
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

    it(`are text of ${wire}, streamed`, async () => {
      rig.say(wire, { pieces: [{ text: ' upon a time' }] });
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
});
