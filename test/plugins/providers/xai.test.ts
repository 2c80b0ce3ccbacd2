import { expect } from 'chai';
import xai from '../../../plugins/providers/xai.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall } from '../../support/formats/codec.ts';
import { translate } from '../../support/formats/translate.ts';

describe('xai', () => {
  it('D11: reports the cost of a call in dollars', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost_in_usd_ticks: 5_000_000 };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
    const { chat } = setUpProvider(xai, {});
    expect(chat?.response({ choices, usage }, codecCall()).usage?.cost).to.equal(0.0005);
  });

  for (const [model, given, sent] of [
    ['grok-4.7', 'max', 'xhigh'],
    ['grok-4.7', 'none', 'low'],
    ['grok-4.7', 'minimal', 'low'],
    ['grok-4.5', 'xhigh', 'high'],
    ['grok-9-new', 'max', 'high'],
    ['grok-4.3', 'none', 'none'],
    ['grok-4.20-reasoning', 'low', undefined],
    ['grok-4.20-0309-non-reasoning', 'low', undefined],
  ] as const) {
    it(`sends the effort ${sent} to ${model} for ${given}`, () => {
      const { body, dropped } = translate(xai, { model, reasoning_effort: given });
      expect(body['reasoning_effort']).to.equal(sent);
      expect(dropped.includes('reasoning_effort')).to.equal(
        sent === undefined || (given === 'none' && sent !== 'none'),
      );
    });
  }

  it('sends penalties and stops to models that do not reason', () => {
    const fields = { stop: ['x'], frequency_penalty: 1, presence_penalty: 1 };
    expect(translate(xai, { model: 'grok-4.20-non-reasoning', ...fields }).body).to.deep.include(fields);
    expect(translate(xai, { model: 'grok-4.7', ...fields }).dropped).to.have.members(Object.keys(fields));
  });

  it('refuses more alternatives than it has', () => {
    expect(() => translate(xai, { logprobs: true, top_logprobs: 9 })).to.throw('between 0 and 8');
  });

  it('leaves out service tiers it does not have', () => {
    expect(translate(xai, { service_tier: 'priority' }).body).to.include({ service_tier: 'priority' });
    expect(translate(xai, { service_tier: 'flex' }).dropped).to.deep.equal(['service_tier']);
  });
});
