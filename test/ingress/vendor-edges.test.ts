/** Peculiarities of vendors that callers of chat completions notice (G29). */
import { expect } from 'chai';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { responsesBody } from '../support/vendors/responses-wire.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const MESSAGES = [{ role: 'user', content: 'Hi' }];
const SAID = { pieces: [{ text: 'Hello' }] };
const CHAT = '/v1/chat/completions';

describe('peculiarities of vendors', () => {
  let rig: IngressRig;
  let server: ScriptedUpstream;
  before(async () => {
    server = await startScriptedUpstream();
    rig = await startIngressRig({
      providers: { vllm: { baseUrl: server.url, models: ['*'] } },
    });
  });
  after(async () => {
    await rig.stop();
    await server.close();
  });

  const headOf = { id: 'c', created: 1_790_000_000, model: 'm' };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

  it('G29: vLLM’s `stop_reason` keeps its name, whole and streamed', async () => {
    const end = { index: 0, finish_reason: 'stop', stop_reason: 'END' };
    const message = { role: 'assistant', content: 'Hello' };
    const choices = [{ ...end, message, logprobs: null }];
    server.script(respondWith(200, { ...headOf, object: 'chat.completion', choices, usage }));
    const request = { model: 'vllm/m', messages: MESSAGES, stop: ['END'] };
    const whole = (await (await rig.gateway.post(CHAT, request)).json()) as { choices: object[] };
    expect(whole.choices[0]).to.include(end);
    const object = 'chat.completion.chunk';
    server.script(
      sse(
        { ...headOf, object, choices: [{ index: 0, delta: message, logprobs: null, finish_reason: null }] },
        { ...headOf, object, choices: [{ ...end, delta: {}, logprobs: null }] },
        { ...headOf, object, choices: [], usage },
        '[DONE]',
      ),
    );
    const streamed = await (await rig.gateway.post(CHAT, { ...request, stream: true })).text();
    expect(streamed).to.include('"stop_reason":"END"');
  });

  for (const name of ['thinking_config', 'thinkingConfig'])
    it(`G29: Gemini gets \`${name}\``, async () => {
      rig.say('gemini', SAID);
      const config = { thinkingBudget: 0, includeThoughts: false };
      for (const fields of [{ [name]: config }, { extra_body: { google: { [name]: config } } }]) {
        const response = await rig.gateway.post(CHAT, {
          ...{ model: 'gemini/gemini-2.5-flash', messages: MESSAGES },
          ...fields,
        });
        expect([response.status, response.headers.get('x-tollgate-dropped')]).to.deep.equal([200, null]);
        expect(rig.lastBody('gemini')['generationConfig']).to.deep.include({ thinkingConfig: config });
      }
    });

  it('G29: penalties are dropped and reported for Gemini’s models that refuse them', async () => {
    rig.say('gemini', SAID);
    const penalties = { frequency_penalty: 1, presence_penalty: 1 };
    const send = async (model: string) => {
      const response = await rig.gateway.post(CHAT, { model: `gemini/${model}`, messages: MESSAGES, ...penalties });
      return [response.headers.get('x-tollgate-dropped'), JSON.stringify(rig.lastBody('gemini')).includes('Penalty')];
    };
    expect(await send('gemini-4-hydrogen')).to.deep.equal(['frequency_penalty, presence_penalty', false]);
    expect(await send('gemini-2.0-flash')).to.deep.equal([null, true]);
  });

  it('G29: images that only `tool_usage` counts are not free', async () => {
    const cost = async (more: object) => {
      rig.script('openai', respondWith(200, { ...responsesBody(SAID), ...more }));
      const response = await rig.gateway.post('/v1/responses', { model: 'openai/gpt-5', input: 'Hi' });
      expect(response.status).to.equal(200);
      return response.headers.get('x-tollgate-cost-usd');
    };
    const plain = await cost({});
    const drawn = await cost({ tool_usage: { image_gen: { output_tokens: 7024 } } });
    expect(Number(plain)).to.be.greaterThan(0);
    expect(drawn === 'unknown' || Number(drawn) > Number(plain), `${drawn}, and ${plain} without images`).to.equal(
      true,
    );
  });
});
