import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createOpenaiRules } from '../support/vendors/openai-rules.ts';
import { sendResponses } from '../support/vendors/responses-wire.ts';
import { type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const TOOL = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } };
const OPENAI = ['openai', 'azure'];

/** Features that only the Responses API of these vendors has. */
const NEEDS_RESPONSES: readonly (readonly [what: string, vendors: readonly string[], body: JsonObject])[] = [
  ['tools with reasoning', OPENAI, { model: 'gpt-6-sol', tools: [TOOL], reasoning_effort: 'high' }],
  ['tools on a model that always reasons', OPENAI, { model: 'gpt-6-astra', tools: [TOOL] }],
  ['the effort `max`', OPENAI, { model: 'gpt-6-astra', reasoning_effort: 'max' }],
  ['a codex model', OPENAI, { model: 'gpt-5.3-codex' }],
  ['a pro model', OPENAI, { model: 'gpt-5.5-pro' }],
  ['a model of several agents', ['xai'], { model: 'grok-4.20-multi-agent' }],
];

/** Features that only chat completions have: conditions on the response, and preferences. */
const CONDITIONS: readonly JsonObject[] = [
  { n: 2 },
  { audio: { voice: 'alloy', format: 'mp3' }, modalities: ['text', 'audio'] },
  { web_search_options: {} },
];
const WISHES: readonly JsonObject[] = [
  { stop: ['END'] },
  { seed: 7 },
  { presence_penalty: 0.5 },
  { frequency_penalty: 0.5 },
  { logprobs: true },
  { prediction: { type: 'content', content: 'x' } },
];
/** Condition that xAI supports on neither of its APIs. */
const BIAS: JsonObject = { logit_bias: { '50256': -100 } };

describe('features of one API of a vendor combined with features of another', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    const rules = createOpenaiRules();
    vendor = await startScriptedUpstream((wire) =>
      wire.request.path.startsWith('/xai') ? sendResponses({ pieces: [{ text: 'fine' }] })(wire) : rules(wire),
    );
    const names = [...OPENAI, 'xai'];
    const providers = names.map((name) => [
      name,
      { apiKey: 'sk-test-0123456789', baseUrl: `${vendor.url}/${name}`, models: ['*'] },
    ]);
    gateway = await startGateway({
      providers: Object.fromEntries(providers),
      plans: { all: { serverTools: ['web_search'] } },
      defaultPlan: 'all',
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const send = async (provider: string, body: JsonObject, field: JsonObject, stream: boolean) => {
    const seen = vendor.requests.length;
    const response = await gateway.post('/v1/chat/completions', {
      ...{ messages: [{ role: 'user', content: 'Hi' }], ...body, ...field, stream },
      model: `${provider}/${String(body['model'])}`,
    });
    const dropped = response.headers.get('x-tollgate-dropped')?.split(', ') ?? [];
    const text = await response.text();
    return { status: response.status, text, dropped, sent: vendor.requests.slice(seen) };
  };
  const namesOf = (field: JsonObject): string => Object.keys(field).join(', ');

  for (const [what, vendors, body] of NEEDS_RESPONSES)
    for (const provider of vendors) {
      for (const field of CONDITIONS)
        it(`are refused for a condition (E13): ${what} at ${provider}, with ${namesOf(field)}`, async () => {
          for (const stream of [false, true]) {
            const { status, text, sent } = await send(provider, body, field, stream);
            expect([status, sent.length], text).to.deep.equal([400, 0]);
            expect(Object.keys(field).some((name) => text.includes(name))).to.equal(true);
          }
        });
      for (const field of provider === 'xai' ? WISHES : [...WISHES, BIAS])
        it(`are dropped and reported for a preference (E13): ${what} at ${provider}, with ${namesOf(field)}`, async () => {
          for (const stream of [false, true]) {
            const { status, text, dropped, sent } = await send(provider, body, field, stream);
            expect([status, sent.length], text).to.deep.equal([200, 1]);
            expect(sent[0]?.path).to.match(/\/responses$/);
            for (const name of Object.keys(field)) {
              expect(dropped).to.include(name);
              expect(sent[0]?.json()).to.not.have.property(name);
            }
          }
        });
    }
});
