import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/** A model of which 1,000 output tokens cost 2 dollars, and prompts nothing. */
const PROVIDERS = { echo: { prices: { '*': { input: 0, output: 2000 } } } };
const ask = (dollars: number) => ({
  model: 'echo/echo',
  max_tokens: dollars * 500,
  messages: [{ role: 'user', content: 'word '.repeat(dollars * 500) }],
});

describe('budgets in calendar windows', () => {
  let gateway: TestGateway;
  afterEach(() => gateway.stop());

  const start = async (config: object): Promise<void> => {
    gateway = await startGateway({ store: 'memory:', providers: PROVIDERS, ...config });
  };
  const chat = (dollars: number, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.post('/v1/chat/completions', ask(dollars), headers);

  it('refuse a call that one of them does not cover, and say which, what is left and when it begins anew', async () => {
    await start({
      budgets: [
        { name: 'week', amount_usd: 100, every: 'week' },
        { name: 'daily', amount_usd: 2, every: 'day', timezone: 'Europe/Berlin' },
      ],
    });
    expect((await chat(1)).status).to.equal(200);
    const refused = await chat(2);
    const { error } = (await refused.json()) as { error: { message: string; code: string } };
    expect(refused.status).to.equal(402);
    expect(error.code).to.equal('insufficient_balance');
    expect(error.message).to.match(
      /^The budget "daily" of 2\.00 USD a day does not cover the call: \d\.\d+ USD are left, and the call may cost 2\.00 USD\. It begins anew at \d{4}-\d\d-\d\dT2[23]:00:00Z\./,
    );
    expect(refused.headers.get('x-should-retry')).to.equal('false');
    const wait = Number(refused.headers.get('retry-after'));
    const resets = Date.parse(/anew at (\S+)\. /.exec(error.message)?.[1] ?? '');
    expect(Math.abs(resets - Date.now() - wait * 1000)).to.be.below(5000);
  });
});
