import { expect } from 'chai';
import gemini from '../../../../plugins/providers/gemini.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';

describe('the gemini provider', () => {
  it('sends its key in x-goog-api-key, to Google’s host', () => {
    const provider = setUpProvider(gemini, { apiKey: 'k' });
    expect(provider.credential).to.deep.equal({
      header: 'x-goog-api-key',
      value: 'k',
      required: true,
      env: 'GEMINI_API_KEY',
    });
    expect(provider.baseUrl).to.equal('https://generativelanguage.googleapis.com/v1beta');
  });

  it('lists the models that chat or embed', () => {
    const { listModels } = setUpProvider(gemini, {});
    expect(listModels?.request()).to.deep.equal({ method: 'GET', path: '/models?pageSize=1000' });
    const models = [
      {
        name: 'models/gemini-3.8-flash',
        supportedGenerationMethods: ['generateContent', 'countTokens'],
        inputTokenLimit: 1_048_576,
        outputTokenLimit: 65_536,
      },
      { name: 'models/gemini-embedding-001', supportedGenerationMethods: ['embedContent'] },
      { name: 'models/imagen-4', supportedGenerationMethods: ['predict'] },
      null,
    ];
    expect(listModels?.response({ models })).to.deep.equal([
      { id: 'gemini-3.8-flash', contextWindow: 1_048_576, maxOutput: 65_536 },
      { id: 'gemini-embedding-001' },
    ]);
  });
});
