import { expect } from 'chai';
import { cutScript, type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { readText } from '../support/read-text.ts';

describe('a stream whose vendor breaks off after content', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const messages = [{ role: 'user', content: 'Hi' }];
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  /** Ways in: the request, and what the last frame has. */
  const WAYS: readonly (readonly [
    name: string,
    path: (model: string) => string,
    body: (model: string) => object,
    says: RegExp,
  ])[] = [
    ['chat', () => '/v1/chat/completions', (model) => ({ model, messages, stream: true }), /"error":\{/],
    ['Messages', () => '/v1/messages', (model) => ({ model, messages, max_tokens: 99, stream: true }), /event: error/],
    ['Gemini', (m) => `/v1beta/models/${m}:streamGenerateContent?alt=sse`, () => ({ contents }), /"error":\{/],
    ['Gemini’s array', (m) => `/v1beta/models/${m}:streamGenerateContent`, () => ({ contents }), /"error":\{/],
    ['Responses', () => '/v1/responses', (model) => ({ model, input: 'Hi', stream: true }), /response\.failed/],
  ];

  for (const wire of WIRES)
    for (const [name, path, body, says] of WAYS) {
      // Its Responses API has a wire of its own.
      if (wire === 'openai' && name === 'Responses') continue;
      it(`of ${wire} ends for ${name} with an error, not as a short response`, async () => {
        rig.script(wire, cutScript(wire, { pieces: [{ text: 'half a response' }] }, 4));
        const model = MODEL_OF[wire];
        const { text, isComplete } = await readText(await rig.gateway.post(path(model), body(model)));
        expect(text).to.match(/"hal/).and.match(says);
        expect(text).not.to.match(/\[DONE\]|message_stop|"finishReason"|response\.completed/);
        // Some of Google's clients look for no error in a stream.
        expect(isComplete).to.equal(!name.startsWith('Gemini'));
      });
    }
});
