import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const OK = respondWith(200, completion('x', { usage: usageOf(4, 6) }));

interface Rule {
  readonly billing: 'off' | 'track' | 'enforce';
  readonly unknownPrice?: 'allow';
  readonly budget?: string;
  readonly model: 'priced/m' | 'unpriced/m';
  readonly code?: string;
  readonly cost: string;
}

/** The account has no money. A call of the priced model reserves and costs 10 micro-dollars. */
const RULES: readonly Rule[] = [
  { billing: 'off', model: 'priced/m', cost: '0.00001' },
  { billing: 'track', model: 'priced/m', cost: '0.00001' },
  { billing: 'track', model: 'unpriced/m', cost: 'unknown' },
  { billing: 'track', budget: '0.00001', model: 'priced/m', cost: '0.00001' },
  { billing: 'track', budget: '0.000009', model: 'priced/m', code: 'insufficient_balance', cost: '' },
  { billing: 'track', budget: '1', model: 'unpriced/m', code: 'model_not_allowed', cost: '' },
  { billing: 'track', unknownPrice: 'allow', budget: '1', model: 'unpriced/m', cost: 'unknown' },
  { billing: 'enforce', model: 'priced/m', code: 'insufficient_balance', cost: '' },
  { billing: 'enforce', model: 'unpriced/m', code: 'model_not_allowed', cost: '' },
  { billing: 'enforce', unknownPrice: 'allow', model: 'unpriced/m', cost: 'unknown' },
];

describe('a gateway with billing rules', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway | undefined;
  before(async () => {
    upstream = await startScriptedUpstream(OK);
  });
  after(() => upstream.close());
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const start = async (billing: Rule['billing'], accounts: object): Promise<TestGateway> => {
    upstream.script(OK);
    gateway = await startGateway({
      billing,
      providers: { priced: openAiVendor(upstream, { prices: tokenPrices(1, 1) }), unpriced: openAiVendor(upstream) },
      policies: { accounts },
    });
    return gateway;
  };

  for (const { billing, unknownPrice, budget, model, code, cost } of RULES) {
    const who = `${budget ? `a key with a budget of $${budget}` : 'a key'} of an empty account`;
    const rule = `${billing}${unknownPrice ? ' and unknown prices allowed' : ''}`;
    it(`${code ? `refuses ${who} (${code})` : `serves ${who}`} on a model that is ${model.split('/')[0]}, with billing ${rule}`, async () => {
      const to = await start(billing, unknownPrice ? { unknownPrice } : {});
      const options = budget ? ['--budget', budget] : [];
      const { api_key: token } = await to.command<{ api_key: string }>('keys', 'create', '--user', 'poor', ...options);
      const seen = upstream.requests.length;
      const response = await to.post(
        '/v1/chat/completions',
        { model, max_tokens: 6, messages: [{ role: 'user', content: '' }] },
        { authorization: `Bearer ${token}` },
      );
      const body = (await response.json()) as { error?: { code: string } };
      expect(body.error?.code).to.equal(code);
      expect(response.headers.get('x-tollgate-cost-usd') ?? '').to.equal(cost);
      expect(upstream.requests.length - seen).to.equal(code ? 0 : 1);
      const spent = billing === 'off' || cost === '' || cost === 'unknown' ? 0 : 10;
      expect(await settledBooks(to.url, token)).to.include({ spent, balance: -spent });
    });
  }

  it('does not start if calls pass without a store although the balance is enforced', async () => {
    const error = await start('enforce', { onStoreFailure: 'open' }).then(
      () => 'it started',
      (thrown: Error) => thrown.message,
    );
    expect(error).to.include('accounts').and.include('Write closed, or billing: track');
  });
});
