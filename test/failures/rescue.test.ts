/**
 * A failing provider as the first target of an alias: the next target responds, and the caller pays only for that
 * response.
 */
import { expect } from 'chai';
import { formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { type FailureRig, OPERATOR_KEY, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { BREAKS, FAILED_RESPONSES } from './upstream-cases.ts';

/** Failures before any content was sent that the request did not cause. */
const RESCUED = [...BREAKS, ...FAILED_RESPONSES].filter(({ text, isOfRequest }) => text === undefined && !isOfRequest);

const fine = (wire: Wire): unknown =>
  (wire.request.json() as { stream?: boolean }).stream
    ? events([delta('rescued', 'stop', { usage: completion().usage }), '[DONE]'])(wire)
    : wire.send(respondWith(200, completion('rescued')));

describe('a call with a second target', () => {
  let rig: FailureRig;
  let vendor: ScriptedUpstream;
  before(async () => {
    vendor = await startScriptedUpstream();
    const first = {
      ...{ plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: OPERATOR_KEY, models: ['*'] },
      prices: { '*': { input: 1, output: 2 } },
      timeouts: { connect: '300ms', firstByte: '300ms', firstToken: '300ms', idle: '300ms', total: '1s' },
    };
    rig = await startFailureRig({
      // Separate providers, so that one failure does not open the circuit of the next case.
      providers: Object.fromEntries(RESCUED.map((_, at) => [`first-${at}`, first])),
      models: Object.fromEntries(RESCUED.map((_, at) => [`alias-${at}`, [`first-${at}/m`, 'two/m']])),
    });
  });
  after(async () => {
    await rig?.stop();
    await vendor?.close();
  });

  // `upstream-breaks.test.ts` and `upstream-answers.test.ts` run each failure in the quick tests.
  for (const [row, [at, { title, script, stream }]] of partOf([...RESCUED.entries()]).entries())
    it(`${title} costs the caller nothing, in every format`, async () => {
      const mark = await rig.mark();
      const forms = partOf(formsOf(stream), row);
      const seen = vendor.requests.length;
      vendor.script(script);
      rig.second.script(fine);
      const heard = await Promise.all(forms.map((form) => rig.sendAs(form, `alias-${at}`)));
      for (const [each, form] of forms.entries()) {
        const own = heard[each] as Heard;
        expect(form.text(own), form.name).to.equal('rescued');
        expect(own.headers['x-tollgate-provider'], form.name).to.equal('two');
      }
      expect(vendor.requests.length, 'the first target was asked').to.be.greaterThan(seen);
      await rig.expectOrder(mark, forms.length, 10 * USAGE_COST * forms.length, 1);
    });
});
