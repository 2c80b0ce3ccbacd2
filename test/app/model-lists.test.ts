import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('the lists of models', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration
      providers: { echo: {}, openai: { apiKey: '${OPENAI_API_KEY}' }, local: { plugin: 'echo', models: ['small'] } },
      models: { smart: ['openai/gpt-5', 'echo/echo'], big: ['openai/gpt-5'] },
    });
  });
  after(() => gateway?.stop());

  const idsOf = async (path: string): Promise<readonly string[]> => {
    const { data } = (await (await gateway.get(path)).json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  };

  it('D47 contain only callable models: no provider without its key, an alias if one of its targets is callable', async () => {
    expect(await idsOf('/v1/models')).to.deep.equal(['smart', 'echo/echo', 'echo/echo-embedding', 'local/small']);
    expect(await idsOf('/api/core/openai/models')).to.deep.equal([]);
    expect(await idsOf('/api/core/local/models')).to.deep.equal(['small']);
    for (const path of ['/v1/models/big', '/v1/models/openai/gpt-5', '/api/core/openai/models/gpt-5'])
      expect((await gateway.get(path)).status, path).to.equal(404);
  });

  it('contain every model for the operator', () => {
    expect(gateway.models.list('openai')).to.include('gpt-5');
  });

  it('contain context, price, modalities and shutdown of a model, in fields that OpenAI’s SDKs ignore (E16)', async () => {
    const rich = await startGateway({
      providers: {
        openai: {
          apiKey: 'sk-test-of-lists',
          models: ['gpt-6.1-sol'],
          prices: { 'gpt-6.1-sol': { input: 2.5, output: 0.000001 } },
        },
        anthropic: { apiKey: 'sk-ant-test-of-lists' },
      },
      models: { smart: ['openai/gpt-6.1-sol'] },
    });
    try {
      const known = {
        context_length: 272000,
        max_completion_tokens: 128000,
        architecture: { input_modalities: ['text', 'image'], output_modalities: ['text'] },
        pricing: { prompt: '0.0000025', completion: '0.000000000001', web_search: '0.01' },
      };
      for (const path of ['/v1/models/openai/gpt-6.1-sol', '/v1/models/smart', '/api/core/openai/models/gpt-6.1-sol'])
        expect(await (await rich.get(path)).json(), path).to.deep.include(known);
      const models = (await rich.openai().models.list()).data;
      expect(models.find(({ id }) => id === 'smart')).to.include({ object: 'model', owned_by: 'tollgate' });
      const claude = await (await rich.get('/v1/models/anthropic/claude-opus-5-5')).json();
      expect(claude).to.have.nested.property('pricing.input_cache_write_1h', '0.000008');
    } finally {
      await rich.stop();
    }
  });
});
