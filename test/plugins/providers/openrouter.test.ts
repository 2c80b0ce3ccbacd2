import { expect } from 'chai';
import openrouter from '../../../plugins/providers/openrouter.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall } from '../../support/formats/codec.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

describe('openrouter', () => {
  it('D11: reports the cost of a call in dollars, including the bill of the operator’s own key', () => {
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

  it('reads the prices of its list: tiers by length of prompt, the highest of the day, none for routers (E16)', () => {
    const { listModels } = setUpProvider(openrouter, {});
    const pricing = {
      prompt: '0.00000125',
      completion: '1e-5',
      input_cache_read: '0',
      request: '0',
      web_search: '0.01',
    };
    const overrides = [
      { min_prompt_tokens: 200_000, prompt: '0.0000025' },
      { utc_start: 0, utc_end: 6, completion: '0.000011' },
    ];
    const [priced, router, free] =
      listModels?.response({
        data: [
          { id: 'a/one', pricing: { ...pricing, overrides } },
          { id: 'openrouter/auto', pricing: { prompt: '-1', completion: '-1' } },
          { id: 'a/one:free', pricing: { prompt: '0', completion: '0' } },
        ],
      }) ?? [];
    expect(priced?.price).to.deep.equal({
      ...{ input: 1.25, output: 11 },
      tiers: [{ input: 2.5, output: 11, input_tokens_above: 200_000 }],
      fees: { web_search_requests: 0.01 },
    });
    expect(router).to.deep.equal({ id: 'openrouter/auto' });
    expect(free?.price).to.deep.equal({ input: 0, output: 0 });
  });
});
