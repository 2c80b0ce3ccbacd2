import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

/**
 * Dollars per million input tokens of models in `/v1/models`, by the region that a provider calls. Sources:
 * plugins/providers/openai.ts and vertex.ts.
 */
describe('a more expensive region', () => {
  let gateway: TestGateway;
  before(async () => {
    const vertex = { plugin: 'vertex', apiKey: 'k', project: 'my-project' };
    const models = ['gemini-2.5-flash', 'gemini-3.8-flash', 'gemini-flash-latest'];
    gateway = await startGateway({
      providers: {
        openai: { apiKey: 'k', models: ['gpt-5.5', 'gpt-4.1'] },
        europe: {
          plugin: 'openai',
          apiKey: 'k',
          baseUrl: 'https://eu.api.openai.com/v1',
          models: ['gpt-5.5', 'gpt-4.1'],
        },
        everywhere: { ...vertex, models },
        frankfurt: { ...vertex, location: 'europe-west3', models },
        'own-price': { ...vertex, location: 'eu', models, prices: { '*': { input: 1, output: 1 } } },
      },
    });
  });
  after(() => gateway?.stop());

  it('is charged: regions of OpenAI and of Vertex cost a tenth more for newer models (E3)', async () => {
    const response = await gateway.get('/v1/models');
    const { data } = (await response.json()) as { data: { id: string; pricing?: { prompt: string } }[] };
    const priceOf = (id: string) => Number(data.find((one) => one.id === id)?.pricing?.prompt) * 1e6;
    const ratio = (dear: string, plain: string) => Math.round((priceOf(dear) / priceOf(plain)) * 1000) / 1000;
    expect(ratio('europe/gpt-5.5', 'openai/gpt-5.5')).to.equal(1.1);
    expect(ratio('europe/gpt-4.1', 'openai/gpt-4.1')).to.equal(1);
    expect(ratio('frankfurt/gemini-3.8-flash', 'everywhere/gemini-3.8-flash')).to.equal(1.1);
    expect(ratio('frankfurt/gemini-flash-latest', 'everywhere/gemini-flash-latest')).to.equal(1.1);
    expect(ratio('frankfurt/gemini-2.5-flash', 'everywhere/gemini-2.5-flash')).to.equal(1);
    expect(priceOf('own-price/gemini-3.8-flash')).to.equal(1);
  });
});
