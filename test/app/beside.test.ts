import { expect } from 'chai';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { pluginFile, startError } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';

/** Guardrail whose verdict and time of response the test controls. */
const JUDGE = pluginFile({
  name: 'judge',
  setup: `api.hook('prepare', async (call, request) => {
    const verdict = await globalThis.verdictOfTest;
    if (verdict === 'refuse') throw new GatewayError('content_filtered', 'The judge refuses it.');
    if (verdict === 'break') throw new Error('the judge is broken');
    return verdict === 'change' ? { ...request, user: 'x' } : undefined;
  });`,
});

describe('a policy that runs in parallel to its calls', () => {
  let rig: IngressRig;
  let open: IngressRig;
  const files = { 'judge.mjs': JUDGE };
  const judge = (more: object) => ({ policies: { judge: { plugin: './judge.mjs', beside: true, ...more } } });
  before(async () => {
    rig = await startIngressRig(judge({}), { files });
    open = await startIngressRig(judge({ onFailure: 'open' }), { files });
    for (const each of [rig, open]) each.say('openai', { pieces: [{ text: 'What the model says.' }] });
  });
  after(async () => {
    await rig.stop();
    await open.stop();
  });

  /** Makes a call and delivers the verdict once the provider has the request. */
  const call = async (verdict: string, stream: boolean, of = rig) => {
    let give = (_verdict: string): void => {};
    const before = of.sent('openai').length;
    Object.assign(globalThis, { verdictOfTest: new Promise<string>((resolve) => (give = resolve)) });
    const body = { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content: 'Hi' }] };
    let hasResponse = false;
    const responding = of.gateway.post('/v1/chat/completions', body).then((response) => {
      hasResponse = true;
      return response;
    });
    await until('the provider has the request', () => of.sent('openai').length > before);
    expect(hasResponse).to.equal(false);
    give(verdict);
    const response = await responding;
    const text = await response.text();
    const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part = '']) => part).join('');
    return { status: response.status, text: `${text}\n${said}` };
  };

  for (const stream of [false, true]) {
    const what = stream ? ', streamed' : '';
    it(`lets the call reach its provider in the meantime, and its response pass${what}`, async () => {
      const { status, text } = await call('pass', stream);
      expect(status).to.equal(200);
      expect(text).to.include('What the model says.');
    });

    it(`stops the response of a call that it refuses${what}`, async () => {
      const seen = rig.gateway.logs.length;
      const { text } = await call('refuse', stream);
      expect(text).to.include('content_filtered').and.not.include('What the model says');
      const line = rig.gateway.logs.slice(seen).find(({ hooks }) => hooks !== undefined);
      expect(line?.['hooks']).to.equal(`judge ${stream ? 'stream' : 'receive'} refused`);
    });

    it(`ends a call whose request it changed too late, or for which it fails${what}`, async () => {
      for (const verdict of ['change', 'break']) {
        const { text } = await call(verdict, stream);
        expect(text, verdict).to.include('internal_error').and.not.include('What the model says');
      }
      expect(rig.gateway.logText()).to.include('can only reject calls');
    });

    it(`continues a call for which it fails with onFailure: open${what}`, async () => {
      expect((await call('break', stream, open)).text).to.include('What the model says.');
    });
  }

  it('counts its actions', async () => {
    await call('refuse', false);
    const metrics = await (await fetch(`${rig.gateway.url}/metrics`)).text();
    expect(metrics).to.match(/tollgate_plugin_verdicts_total\{plugin="judge",hook="receive",action="refused"\} [1-9]/);
  });

  it('is not an option of a policy without request hooks', async () => {
    const late = pluginFile({ name: 'late', setup: `api.hook('finish', () => undefined);` });
    const started = startIngressRig(
      { policies: { late: { plugin: './late.mjs', beside: true } } },
      { files: { 'late.mjs': late } },
    );
    expect(await startError(started.then(({ gateway }) => gateway))).to.include(
      'has no effect: this plugin registers no "prepare" hook',
    );
  });
});
