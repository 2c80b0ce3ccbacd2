import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';

/** Operation of docs/plugins/10-operation.md, as a third party would have it. */
const code =
  readBlocks().find(({ page, text }) => page === 'docs/plugins/10-operation.md' && text.includes('definePlugin('))
    ?.text ?? '';

/** Provider of the operation, whose response says what the test sets as the number of documents. */
const ACME = `
import { definePlugin } from 'tollgate';
export default definePlugin({
  name: 'acme', kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', properties: { reports: {}, scores: {} } },
  setup(api, { reports, scores }) {
    api.offer('relevance', {
      specVersion: 1, vendor: 'acme', baseUrl: 'http://acme.invalid',
      models: [{ id: 'relevance', price: { input: 0, output: 0, fees: { documents: 0.001 } } }],
      error: (status, _body) => ({ class: 'upstream_error', message: String(status) }),
      codec: { request: (body) => ({ method: 'POST', path: '/scores', body }), response: (body) => body },
      async transport({ body }) {
        const seen = { scores: scores ?? body.documents.map((_, at) => at), usage: { documents: reports } };
        return {
          status: 200, headers: { 'content-type': 'application/json' },
          body: (async function* () { yield Buffer.from(JSON.stringify(seen)); })(),
        };
      },
    });
  },
});`;

describe('the operation of docs/plugins/10-operation.md', () => {
  let gateway: TestGateway;
  before(async () => {
    const provider = (options: object) => ({ plugin: './acme.ts', ...options });
    gateway = await startGateway(
      {
        operations: { relevance: { plugin: './relevance.ts' } },
        providers: {
          acme: provider({ reports: 1 }),
          silent: provider({}),
          absurd: provider({ reports: -5 }),
          broken: provider({ scores: 'none' }),
        },
        policies: { words: { words: ['orion'], action: 'block' } },
        billing: 'track',
      },
      { files: { 'relevance.ts': code, 'acme.ts': ACME } },
    );
  });
  after(() => gateway?.stop());

  const BODY = { query: 'tea', documents: ['black tea', 'chess'] };
  const score = (provider: string, body: object = BODY, path = '/v1/relevance') =>
    gateway.post(path, { model: `${provider}/relevance`, ...body });

  it('has at most 40 lines', () => {
    expect(code.trim().split('\n')).to.have.length.within(20, 40);
  });

  it('responds on both surfaces, and charges the reported units', async () => {
    const response = await score('acme');
    expect(response.status, await response.clone().text()).to.equal(200);
    expect(await response.json()).to.deep.include({ scores: [0, 1] });
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.001');
    const other = await gateway.post('/api/core/acme/relevance', { model: 'relevance', ...BODY });
    expect(other.status).to.equal(200);
  });

  for (const provider of ['silent', 'absurd'])
    it(`charges the maximum for the provider "${provider}"`, async () => {
      expect((await score(provider)).headers.get('x-tollgate-cost-usd')).to.equal('0.002');
    });

  it('rejects an invalid request, and a response that does not match its schema', async () => {
    expect((await score('acme', { query: 'tea' })).status).to.equal(400);
    const { error } = (await (await score('broken')).json()) as { readonly error: { readonly code: string } };
    expect(error.code).to.equal('provider_invalid_response');
  });

  it('has its texts checked by guardrails', async () => {
    expect((await score('acme', { ...BODY, documents: ['of orion'] })).status).to.equal(400);
  });
});
