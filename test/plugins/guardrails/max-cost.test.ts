import { expect } from 'chai';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';

/**
 * One dollar per million input tokens, a hundred per million output tokens: a thousand output tokens cost ten cents.
 */
const prices = { '*': { input: 1, output: 100 } };

describe('the guardrail max-cost', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      policies: { 'max-cost': { usd: '0.10' } },
      providers: { echo: { prices } },
    });
  });
  after(() => rig.stop());

  const chat = (rest: object, stream = false) =>
    rig.gateway.post('/v1/chat/completions', {
      ...{ model: 'echo/echo', stream, messages: [{ role: 'user', content: 'Hello there' }] },
      ...rest,
    });

  for (const stream of [false, true]) {
    it(`passes a call up to the maximum cost${stream ? ', streamed' : ''}`, async () => {
      const response = await chat({ max_tokens: 900 }, stream);
      expect(response.status).to.equal(200);
      expect(response.headers.get('x-tollgate-max-tokens')).to.equal(null);
      expect(await response.text()).to.include('there');
    });

    it(`limits the output if the caller sets no limit${stream ? ', streamed' : ''}`, async () => {
      const response = await chat({}, stream);
      expect(response.status).to.equal(200);
      expect(Number(response.headers.get('x-tollgate-max-tokens'))).to.be.within(900, 1000);
    });

    it(`refuses more, with the allowed amount${stream ? ', streamed' : ''}`, async () => {
      const response = await chat({ max_tokens: 5000 }, stream);
      expect(response.status).to.equal(400);
      const { error } = (await response.json()) as { readonly error: { message: string; param: string; code: string } };
      expect(error).to.include({ code: 'invalid_request', param: 'max_tokens' });
      const most = Number(/Limit the output to (\d+) tokens/.exec(error.message)?.[1]);
      expect(error.message).to.include('0.10 USD');
      expect((await chat({ max_tokens: most }, stream)).status).to.equal(200);
      expect((await chat({ max_tokens: most + 1 }, stream)).status).to.equal(400);
    });
  }

  it('refuses input that costs more than all of it', async () => {
    const response = await chat({ messages: [{ role: 'user', content: 'word '.repeat(150_000) }] });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.include('Send less');
  });

  it('treats the caller’s limit in Messages, which is mandatory, as none', async () => {
    const body = { model: 'echo/echo', max_tokens: 60_000, messages: [{ role: 'user', content: 'Hello there' }] };
    const response = await rig.gateway.post('/v1/messages', body);
    expect(response.status).to.equal(200);
    expect(Number(response.headers.get('x-tollgate-max-tokens'))).to.be.within(900, 1000);
  });

  it('refuses a model with an unknown price, without calling a provider', async () => {
    const response = await chat({ model: 'openai/of-no-known-price' });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.include('price of this model is unknown');
    expect(rig.sent('openai')).to.have.length(0);
  });

  it('passes such a model if so configured', async () => {
    const other = await startIngressRig({ policies: { 'max-cost': { usd: 0.1, unknown: 'allow' } } });
    other.say('openai', { pieces: [{ text: 'Fine.' }] });
    try {
      const messages = [{ role: 'user', content: 'Hm?' }];
      for (const model of ['openai/of-no-known-price', MODEL_OF.openai])
        expect((await other.gateway.post('/v1/chat/completions', { model, messages })).status).to.equal(200);
    } finally {
      await other.stop();
    }
  });
});
