import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('the lists of models', function () {
  this.timeout(20_000);
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

  it('D47 name what can be called alone: no provider without its key, an alias when one of its targets can', async () => {
    expect(await idsOf('/v1/models')).to.deep.equal(['smart', 'echo/echo', 'echo/echo-embedding', 'local/small']);
    expect(await idsOf('/api/core/openai/models')).to.deep.equal([]);
    expect(await idsOf('/api/core/local/models')).to.deep.equal(['small']);
    for (const path of ['/v1/models/big', '/v1/models/openai/gpt-5', '/api/core/openai/models/gpt-5'])
      expect((await gateway.get(path)).status, path).to.equal(404);
  });

  it('keep for the operator every model there is', () => {
    expect(gateway.models.list('openai')).to.include('gpt-5');
  });
});
