import { expect } from 'chai';
import openrouter from '../../../plugins/providers/openrouter.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall } from '../../support/formats/codec.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

describe('openrouter', () => {
  it('D11: tells what a call cost in dollars, the bill behind the operator’s own key included', () => {
    const { chat } = setUpProvider(openrouter, {});
    const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
    const counts = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: 0.25 };
    const costOf = (more: object) =>
      chat?.response({ choices, usage: { ...counts, ...more } }, codecCall()).usage?.cost;
    expect(costOf({})).to.equal(0.25);
    expect(costOf({ is_byok: false, cost_details: { upstream_inference_cost: 2 } })).to.equal(0.25);
    expect(costOf({ is_byok: true, cost_details: { upstream_inference_cost: 2 } })).to.equal(2.25);
  });

  it('passes its own fields', () => {
    const own = { provider: { order: ['a'] }, reasoning: { effort: 'high' }, top_k: 4, plugins: [{ id: 'web' }] };
    expect(translate(openrouter, own).body).to.deep.include(own);
  });

  it('drops a fallback list: it would reach models that the caller’s key may not use', () => {
    expect(translate(openrouter, { models: ['openai/gpt-6-astra'], route: 'fallback' })).to.deep.include({
      dropped: ['models', 'route'],
    });
  });

  it('keeps developer for the models that know it', () => {
    const list = [{ role: 'developer', content: 'x' }];
    expect(messagesOf(openrouter, list, { model: 'openai/gpt-5' })[0]).to.include({ role: 'developer' });
    expect(messagesOf(openrouter, list, { model: 'meta-llama/llama-4-scout' })[0]).to.include({ role: 'system' });
  });

  it('sends reasoning and its details back unchanged', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'x' }];
    const turn = { role: 'assistant', content: 'a', reasoning_content: 'hm', reasoning_details: details };
    expect(messagesOf(openrouter, [turn])[0]).to.deep.equal({
      role: 'assistant',
      content: 'a',
      reasoning: 'hm',
      reasoning_details: details,
    });
  });

  it('keeps cache marks, which reach Anthropic’s models', () => {
    const content = [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }];
    expect(messagesOf(openrouter, [{ role: 'user', content }])[0]).to.deep.include({ content });
  });

  it('names the site it works for', () => {
    expect(setUpProvider(openrouter, { referer: 'https://acme.example', title: 'Acme' }).headers).to.deep.equal({
      'http-referer': 'https://acme.example',
      'x-openrouter-title': 'Acme',
    });
  });
});
