import { expect } from 'chai';
import { type FailureRig, startFailureRig } from '../support/gateways/failure-rig.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Does not look like a key. */
const PLAIN_KEY = 'correct horse battery/staple';
const HEADER_VALUE = 'wintermute-tessier';
const SECRETS = [PLAIN_KEY, HEADER_VALUE, encodeURIComponent(PLAIN_KEY), 'Correct Horse'];

describe('a secret in requests to a provider', () => {
  let vendor: ScriptedUpstream;
  let rig: FailureRig;
  before(async () => {
    vendor = await startScriptedUpstream();
    rig = await startFailureRig({
      providers: {
        own: {
          plugin: 'openai-compatible',
          baseUrl: vendor.url,
          apiKey: PLAIN_KEY,
          headers: { 'x-auth': HEADER_VALUE },
          models: ['*'],
          prices: { '*': { input: 1, output: 1 } },
        },
      },
      models: { twice: ['own/m', 'own/n'] },
    });
  });
  after(async () => {
    await rig?.stop();
    await vendor?.close();
  });

  const words = `got key "${PLAIN_KEY}" (${encodeURIComponent(PLAIN_KEY)}), CORRECT HORSE BATTERY/STAPLE and x-auth ${HEADER_VALUE}`;
  const error = {
    error: { message: words, type: 'invalid_request_error', param: `headers.${HEADER_VALUE}`, code: words },
  };
  const FORMS = [
    ['a refusal', respondWith(400, error)],
    ['a refusal as text', respondWith(400, words)],
    ['a refusal that is long', respondWith(400, { error: { ...error.error, message: 'x'.repeat(1990) + words } })],
    ['a model that it does not have', respondWith(404, { error: { ...error.error, code: 'model_not_found' } })],
    ['a bad key', respondWith(401, error)],
    ['a failure of its own', respondWith(500, error)],
    ['an error inside a good status', respondWith(200, error)],
    ['an error in a stream', sse(error)],
    ['an error after content in a stream', sse(delta('one'), error)],
  ] as const;
  for (const [title, script] of FORMS)
    for (const stream of [false, true])
      it(`is never visible to a caller or in a log, by ${title}${stream ? ' on a stream' : ''}`, async () => {
        vendor.script(script);
        for (const model of ['own/m', 'twice']) {
          const heard = await rig.send({ model, stream });
          const seen = `${JSON.stringify(heard.headers)}${heard.text}${rig.gateway.logText()}`.toLowerCase();
          for (const secret of SECRETS) expect(seen).not.to.include(secret.toLowerCase());
        }
      });

  it('is not passed on as a limit of the provider', async () => {
    const headers = {
      'x-ratelimit-limit-requests': HEADER_VALUE,
      'x-ratelimit-remaining-requests': '12',
      'x-ratelimit-reset-requests': '6m0.5s',
      'x-ratelimit-limit-tokens': '1, 2',
      'x-ratelimit-remaining-tokens': '<b>1</b>',
    };
    vendor.script(respondWith(200, completion(), headers));
    const heard = await rig.send({ model: 'own/m' });
    const reported = Object.entries(heard.headers).filter(([name]) => name.startsWith('x-ratelimit'));
    expect(Object.fromEntries(reported)).to.deep.equal({
      'x-ratelimit-remaining-requests': '12',
      'x-ratelimit-reset-requests': '6m0.5s',
    });
  });
});
