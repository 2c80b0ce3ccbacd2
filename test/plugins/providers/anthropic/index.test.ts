import { expect } from 'chai';
import anthropic from '../../../../plugins/providers/anthropic.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';

describe('the anthropic provider', () => {
  it('sends its key in x-api-key and the API version that it was written for', () => {
    const provider = setUpProvider(anthropic, { apiKey: 'k' });
    expect(provider.credential).to.deep.equal({
      header: 'x-api-key',
      value: 'k',
      required: true,
      env: 'ANTHROPIC_API_KEY',
    });
    expect(provider.headers).to.deep.equal({ 'anthropic-version': '2023-06-01' });
  });

  for (const baseUrl of ['https://proxy.test', 'https://proxy.test/v1', 'https://proxy.test/v1/']) {
    it(`does not double /v1 for the base URL ${baseUrl}`, () => {
      expect(setUpProvider(anthropic, { baseUrl }).baseUrl).to.equal('https://proxy.test');
    });
  }

  it('lists the vendor’s models', () => {
    const { listModels } = setUpProvider(anthropic, {});
    expect(listModels?.request()).to.deep.equal({ method: 'GET', path: '/v1/models?limit=1000' });
    const listed = { type: 'model', id: 'claude-opus-5', max_input_tokens: 1_000_000, max_tokens: 128_000 };
    expect(listModels?.response({ data: [listed, {}], has_more: false })).to.deep.equal([
      { id: 'claude-opus-5', contextWindow: 1_000_000, maxOutput: 128_000 },
    ]);
  });
});
