import { expect } from 'chai';
import {
  type IngressRig,
  MODEL_OF,
  type ScriptedOutput,
  startIngressRig,
  WIRES,
} from '../support/gateways/ingress-rig.ts';

const SAID: ScriptedOutput = {
  pieces: [
    { reasoning: 'Hm, so.' },
    { text: 'Looking é.' },
    { call: 'look', id: 'call00001', arguments: '{"at":"x"}' },
  ],
  usage: { prompt: 30, completion: 9, cached: 10 },
};
const TOOLS = [
  { type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: {} } } },
];

/** Bytes per chunk of a vendor's response. */
const CUTS = [1, 7, 65_536] as const;

describe('the scripted vendors of the client formats', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  for (const wire of WIRES) {
    for (const cut of CUTS) {
      it(`with the format ${wire}, sending ${cut} bytes at a time, return the same with and without a stream`, async () => {
        const request = { model: MODEL_OF[wire], messages: [{ role: 'user' as const, content: 'Hi' }], tools: TOOLS };
        rig.say(wire, SAID, cut);
        const whole = await rig.gateway.openai().chat.completions.create(request);
        const streamed = await rig.gateway
          .openai()
          .chat.completions.stream({ ...request, stream_options: { include_usage: true } })
          .finalChatCompletion();
        for (const { choices, usage } of [whole, streamed]) {
          const { message, finish_reason } = choices[0] ?? expect.fail('no choice');
          const [call] = message.tool_calls ?? [];
          expect([message.content, finish_reason]).to.deep.equal(['Looking é.', 'tool_calls']);
          expect(JSON.parse((call && 'function' in call && call.function.arguments) || '')).to.deep.equal({ at: 'x' });
          expect(usage).to.include({ prompt_tokens: 30, completion_tokens: 9 });
          expect(usage?.prompt_tokens_details?.cached_tokens).to.equal(10);
        }
      });
    }
  }
});
