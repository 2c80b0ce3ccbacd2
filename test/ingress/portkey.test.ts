import { expect } from 'chai';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';

describe('clients of Portkey', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      models: { 'pc-main': 'anthropic/claude-sonnet-4-5', 'pc-any/*': 'openai/*' },
    });
    rig.say('openai', { pieces: [{ text: 'From OpenAI' }] });
    rig.say('anthropic', { pieces: [{ text: 'From Anthropic' }] });
  });
  after(() => rig.stop());

  /** Sends a request as the Portkey SDK does: the gateway's key twice, everything else in headers. */
  const post = (headers: Readonly<Record<string, string>>, more: object = {}) =>
    rig.gateway.post(
      '/portkey/v1/chat/completions',
      { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }], ...more },
      { 'x-portkey-api-key': rig.gateway.key, 'x-portkey-package-version': 'portkey-3.1.0', ...headers },
    );
  const textOf = async (response: Response) => {
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    return choices[0]?.message.content;
  };

  const SERVED: readonly (readonly [headers: Readonly<Record<string, string>>, more: object, text: string])[] = [
    [{ 'x-portkey-virtual-key': 'openai' }, {}, 'From OpenAI'],
    [{ 'x-portkey-provider': '@anthropic' }, { model: 'claude-sonnet-4-5' }, 'From Anthropic'],
    [{}, { model: '@openai/gpt-5' }, 'From OpenAI'],
    [{ 'x-portkey-config': 'pc-main' }, {}, 'From Anthropic'],
    [{ 'x-portkey-config': 'pc-any' }, {}, 'From OpenAI'],
    [{ 'x-portkey-config': '{"virtual_key":"openai","override_params":{"temperature":1}}' }, {}, 'From OpenAI'],
    [{ 'x-portkey-config': '{"strategy":{"mode":"single"},"targets":[{"virtualKey":"openai"}]}' }, {}, 'From OpenAI'],
  ];
  for (const [headers, more, text] of SERVED)
    it(`is served by ${JSON.stringify({ ...headers, ...more })}`, async () => {
      const response = await post(headers, more);
      expect(response.status).to.equal(200);
      expect(await textOf(response)).to.equal(text);
    });

  const REFUSED: readonly (readonly [headers: Readonly<Record<string, string>>, words: RegExp])[] = [
    [{ 'x-portkey-config': 'pc-missing' }, /Alias "pc-missing".*tollgate config import portkey/],
    [{ 'x-portkey-config': '{oops' }, /name of an alias or a JSON object/],
    [
      { 'x-portkey-config': '{"strategy":{"mode":"conditional"},"targets":[{"provider":"a"},{"provider":"b"}]}' },
      /"conditional" is not supported/,
    ],
    [{ 'x-portkey-config': '{"provider":"openai","override_params":{"tools":5}}' }, /override_params\.tools/],
    [{ 'x-portkey-config': '{"provider":"openai","override_params":{"temperature":9}}' }, /out of range/],
    [{ 'x-portkey-config': '{"provider":"openai","api_key":"sk-own"}' }, /`api_key`.*the operator configures it/],
    [{ 'x-portkey-provider': 'openai', 'x-portkey-custom-host': 'https://x.example' }, /x-portkey-custom-host/],
  ];
  for (const [headers, words] of REFUSED)
    it(`is refused with an explanation by ${JSON.stringify(headers)}`, async () => {
      const response = await post(headers);
      const { error } = (await response.json()) as { error: { message: string } };
      expect([response.status, words.test(error.message)], error.message).to.deep.equal([400, true]);
      expect(error.message).to.not.include('sk-own');
    });

  it('rejects an unknown provider, and needs a key of the gateway', async () => {
    expect((await post({ 'x-portkey-virtual-key': 'missing' })).status).to.equal(404);
    const own = await fetch(`${rig.gateway.url}/portkey/v1/models`, {
      headers: { 'x-portkey-api-key': rig.gateway.key },
    });
    expect(own.status).to.equal(200);
    expect((await fetch(`${rig.gateway.url}/portkey/v1/models`)).status).to.equal(401);
  });

  it('creates embeddings with a virtual key', async () => {
    const headers = { 'x-portkey-virtual-key': 'echo' };
    const response = await rig.gateway.post(
      '/portkey/v1/embeddings',
      { model: 'echo-embedding', input: 'Hi' },
      headers,
    );
    expect(response.status).to.equal(200);
  });
});
