import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

describe('G13: embeddings', () => {
  let gateway: TestGateway;
  let vendor: ScriptedUpstream;
  let vectors = 0;
  before(async () => {
    const listOf = () => ({
      object: 'list',
      model: 'm',
      data: Array.from({ length: vectors }, (_, index) => ({ object: 'embedding', index, embedding: [0.1, 0.2] })),
      usage: { prompt_tokens: 4, total_tokens: 4 },
    });
    vendor = await startScriptedUpstream((wire) => wire.send(respondWith(200, listOf())));
    gateway = await startGateway({
      providers: {
        echo: {},
        vendor: { plugin: 'openai-compatible', apiKey: 'sk-1', baseUrl: `${vendor.url}/v1`, models: ['*'] },
      },
      models: { fast: ['vendor/m', 'echo/echo-embedding'] },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const embed = (model: string, input: unknown, path = '/v1/embeddings', rest: object = { input }) =>
    gateway.post(path, { model, ...rest });

  for (const count of [0, 1, 3])
    it(`are an error of the provider if there are ${count} for two inputs, and the next target serves`, async () => {
      vectors = count;
      const response = await embed('vendor/m', ['a', 'b']);
      expect(response.status).to.equal(503);
      expect(await response.json()).to.have.nested.property('error.code', 'provider_invalid_response');
      const other = await embed('fast', ['a', 'b']);
      expect([other.status, other.headers.get('x-tollgate-provider')]).to.deep.equal([200, 'echo']);
      const cohere = await embed('vendor/m', undefined, '/v2/embed', { texts: ['a', 'b'], input_type: 'search_query' });
      expect(cohere.status).to.equal(503);
    });

  for (const [title, input, count] of [
    ['a text', 'a', 1],
    ['token numbers of one text', [1, 2, 3], 1],
    ['token numbers of two texts', [[1, 2], [3]], 2],
    ['two texts', ['a', 'b'], 2],
  ] as const)
    it(`are returned for ${title}`, async () => {
      vectors = count;
      const response = await embed('vendor/m', input);
      expect(response.status).to.equal(200);
      expect(((await response.json()) as { data: object[] }).data).to.have.length(count);
    });
});
