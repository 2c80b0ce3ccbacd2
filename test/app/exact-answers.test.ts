import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const MESSAGE = { role: 'assistant', content: 'Guten Tag, 世界', refusal: null };
const EXACT = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'm-2026',
  choices: [{ index: 0, message: MESSAGE, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11, prompt_tokens_details: { cached_tokens: 2 } },
  system_fingerprint: 'fp_1',
};

/** Changes a response in place and returns nothing, as a careless plugin may. */
const IN_PLACE = `export default { name: 'in-place', kind: 'policy', apiVersion: 1, setup(api) {
  api.hook('receive', (call, response) => { response.choices[0].message.content = 'changed'; });
} };`;

describe('a response of a vendor with OpenAI’s format', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let careless: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    const providers = { one: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] } };
    gateway = await startGateway({ providers });
    careless = await startGateway({ providers, plugins: ['./in-place.mjs'] }, { files: { 'in-place.mjs': IN_PLACE } });
  });
  after(() => Promise.all([gateway?.stop(), careless?.stop(), vendor?.close()]));

  const send = async (of: TestGateway, status = 200) => {
    const response = await fetch(`${of.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${of.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'one/m', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(response.status).to.equal(status);
    expect(response.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    return Buffer.from(await response.arrayBuffer());
  };

  it('is passed through completely, in any layout', async () => {
    const text = `\n${JSON.stringify(EXACT, undefined, 2)}\n`;
    vendor.script(respondWith(200, text, { 'content-type': 'application/json' }));
    expect(JSON.parse((await send(gateway)).toString())).to.deep.equal(EXACT);
  });

  it('is rewritten if a field is missing, spelled differently or meaningless', async () => {
    const { refusal: _, ...message } = MESSAGE;
    const choices = [{ ...EXACT.choices[0], message, finish_reason: 'eos' }];
    vendor.script(respondWith(200, { ...EXACT, choices, x_groq: { id: 'r' } }));
    expect(JSON.parse((await send(gateway)).toString())).to.deep.equal(EXACT);
  });

  it('is rewritten if its usage does not add up', async () => {
    vendor.script(respondWith(200, { ...EXACT, usage: { ...EXACT.usage, total_tokens: 12 } }));
    expect(JSON.parse((await send(gateway)).toString()).usage).to.deep.equal(EXACT.usage);
  });

  it('is repaired if its text is not valid UTF-8', async () => {
    const [before = '', after = ''] = JSON.stringify(EXACT).split('世界');
    const body = Buffer.concat([Buffer.from(before), Buffer.from([0xff]), Buffer.from(after)]);
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    vendor.script(Buffer.concat([Buffer.from(head), body]));
    expect(JSON.parse((await send(gateway)).toString()).choices[0].message.content).to.equal('Guten Tag, \ufffd');
    expect((await send(gateway)).includes(0xff)).to.equal(false);
  });

  it('is frozen for hooks: one that changes it in place fails the call, and the log names its plugin', async () => {
    vendor.script(respondWith(200, EXACT));
    expect(JSON.parse((await send(careless, 500)).toString()).error.code).to.equal('internal_error');
    expect(careless.logText()).to.include('in-place');
  });
});
