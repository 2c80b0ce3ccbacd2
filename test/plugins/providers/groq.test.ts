import { expect } from 'chai';
import groq from '../../../plugins/providers/groq.ts';
import { translate } from '../../support/formats/translate.ts';

const TOOLS = [{ type: 'function', function: { name: 'f' } }];

describe('groq', () => {
  for (const [model, given, sent] of [
    ['openai/gpt-oss-120b', 'minimal', 'low'],
    ['openai/gpt-oss-120b', 'xhigh', 'high'],
    ['qwen/qwen3.6-27b', 'none', 'none'],
    ['qwen/qwen3.6-27b', 'high', 'default'],
    ['qwen/qwen3.8-27b', 'high', 'high'],
    ['qwen/qwen3.8-27b', 'none', 'none'],
  ] as const) {
    it(`sends the effort ${sent} to ${model} for ${given}`, () => {
      expect(translate(groq, { model, reasoning_effort: given }).body).to.include({ reasoning_effort: sent });
    });
  }

  it('sends an effort to models that are known to take one only (E14)', () => {
    for (const model of ['llama-3.3-70b-versatile', 'a-new-model']) {
      const { body, dropped } = translate(groq, { model, reasoning_effort: 'high' });
      expect([body['reasoning_effort'], dropped], model).to.deep.equal([undefined, ['reasoning_effort']]);
    }
  });

  it('refuses JSON together with tools, and accepts text together with them', () => {
    const json = { type: 'json_object' };
    expect(() => translate(groq, { tools: TOOLS, response_format: json }))
      .to.throw('not with tools')
      .that.includes({ param: 'response_format' });
    expect(translate(groq, { tools: TOOLS, response_format: { type: 'text' } }).body).to.have.property(
      'response_format',
    );
    expect(translate(groq, { response_format: json }).body).to.deep.include({ response_format: json });
  });

  it('calls the default tier on_demand and leaves out tiers it does not have', () => {
    expect(translate(groq, { service_tier: 'default' }).body).to.include({ service_tier: 'on_demand' });
    expect(translate(groq, { service_tier: 'priority' }).dropped).to.deep.equal(['service_tier']);
  });

  it('accepts one choice but not two', () => {
    expect(translate(groq, { n: 1 }).body).not.to.have.property('n');
    expect(() => translate(groq, { n: 2 })).to.throw('one choice');
  });
});
