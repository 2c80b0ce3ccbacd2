import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const FALLBACK = 'x-tollgate-budget-fallback';
const MESSAGES = [{ role: 'user', content: 'Hi there, how are you?' }];
/** The expensive model costs 100 times as much as the cheap one. */
const PROVIDERS = {
  dear: { plugin: 'echo', prices: { '*': { input: 1000, output: 1000 } } },
  cheap: { plugin: 'echo', prices: { '*': { input: 10, output: 10 } } },
};
const WHEN = { smart: 'cheap/echo' };

interface CallRow {
  readonly requested: string;
  readonly provider: string;
  readonly cost_usd: string;
  readonly hooks: readonly { readonly plugin: string; readonly hook: string; readonly action: string }[];
}

/** Converts an amount from a header or command to nano-dollars. */
const nanos = (usd: string | null | undefined): bigint => {
  const [whole = '0', rest = ''] = (usd ?? '0').split('.');
  return BigInt(whole + rest.padEnd(9, '0'));
};

describe('a call that its budget does not cover', () => {
  let gateway: TestGateway | undefined;
  afterEach(() => gateway?.stop());

  const start = async (usd: number, more: Record<string, unknown> = {}): Promise<TestGateway> => {
    gateway = await startGateway({
      providers: PROVIDERS,
      models: { smart: 'dear/echo' },
      budgets: [{ name: 'daily', amount_usd: usd, every: 'day' }],
      policies: { accounts: { whenBudgetEnds: WHEN } },
      ...more,
    });
    return gateway;
  };
  const chat = ({ post }: TestGateway, rest: object = {}, headers = {}): Promise<Response> =>
    post('/v1/chat/completions', { model: 'smart', max_tokens: 100, messages: MESSAGES, ...rest }, headers);
  const lastCall = async ({ command }: TestGateway): Promise<CallRow> => {
    const { data } = await command<{ data: readonly CallRow[] }>('calls', '--limit', '1');
    return data[0] as CallRow;
  };

  it('goes to the configured cheaper model, which is in the response, the log and the record', async () => {
    const target = await start(0.05);
    const response = await chat(target);
    expect(response.status, await response.text()).to.equal(200);
    expect(response.headers.get(FALLBACK)).to.equal('cheap/echo');
    expect(response.headers.get('x-tollgate-provider')).to.equal('cheap');
    const line = target.logs.find(({ msg }) => /sent to a cheaper model/.test(String(msg)));
    expect(line).to.include({
      requested: 'smart',
      model: 'cheap/echo',
      request_id: response.headers.get('x-request-id'),
    });
    const call = await lastCall(target);
    expect(call).to.include({ requested: 'smart', provider: 'cheap' });
    expect(nanos(call.cost_usd)).to.equal(nanos(response.headers.get('x-tollgate-cost-usd')));
    expect(call.hooks.map(({ plugin, hook, action }) => `${plugin} ${hook} ${action}`)).to.include(
      'accounts route routed',
    );
  });

  it('goes there as a stream, and in the Messages format', async () => {
    const target = await start(0.05);
    const streamed = await chat(target, { stream: true });
    expect(await streamed.text()).to.include('[DONE]');
    expect(streamed.headers.get(FALLBACK)).to.equal('cheap/echo');
    const body = { model: 'smart', max_tokens: 100, messages: MESSAGES };
    const messages = await target.post('/v1/messages', body);
    expect([messages.status, messages.headers.get(FALLBACK)]).to.deep.equal([200, 'cheap/echo']);
  });

  it('goes to the requested model while the budget covers it', async () => {
    const response = await chat(await start(1));
    expect([response.status, response.headers.get(FALLBACK)]).to.deep.equal([200, null]);
    expect(response.headers.get('x-tollgate-provider')).to.equal('dear');
  });

  it('is refused (402) if the cheaper one is not covered either', async () => {
    const response = await chat(await start(0.0001));
    expect([response.status, response.headers.get(FALLBACK)]).to.deep.equal([402, null]);
    expect(((await response.json()) as { error: { message: string } }).error.message).to.include('budget "daily"');
  });

  it('is refused (402), not rerouted, if its key may not use the cheaper one', async () => {
    const target = await start(0.05);
    const { api_key: key } = await target.command<{ api_key: string }>(
      ...['keys', 'create', '--user', 'ann', '--models', 'smart'],
    );
    const response = await chat(target, {}, { authorization: `Bearer ${key}` });
    expect([response.status, response.headers.get(FALLBACK)]).to.deep.equal([402, null]);
  });

  it('also goes there from an empty balance, by the name of a provider’s model or a pattern', async () => {
    const target = await start(1, {
      ...{ budgets: [], billing: 'enforce' },
      policies: { accounts: { whenBudgetEnds: { 'dear/*': 'cheap/echo' } } },
    });
    await target.command('accounts', 'credit', 'local', '0.05');
    for (const model of ['smart', 'dear/echo']) {
      const response = await chat(target, { model });
      expect([response.status, response.headers.get(FALLBACK)]).to.deep.equal([200, 'cheap/echo']);
    }
  });

  it('charges the calls of both models to the nano-dollar, and never more than the budget', async () => {
    const target = await start(0.4);
    let sum = 0n;
    const providers = new Set<string | null>();
    let refused = 0;
    // With random output lengths the route changes to and from the expensive model as the reservation fits.
    for (let turn = 0; turn < 60; turn += 1) {
      const response = await chat(target, { max_tokens: 1 + ((turn * 7919) % 400) });
      await response.text();
      if (response.status === 402) refused += 1;
      else expect(response.status).to.equal(200);
      providers.add(response.headers.get('x-tollgate-provider'));
      sum += nanos(response.headers.get('x-tollgate-cost-usd'));
    }
    expect([...providers]).to.include.members(['dear', 'cheap']);
    const { data } = await target.command<{ data: readonly { readonly name: string; readonly spent_usd: string }[] }>(
      ...['budgets', 'list'],
    );
    expect(nanos(data[0]?.spent_usd)).to.equal(sum);
    expect(sum <= nanos('0.4'), String(sum)).to.equal(true);
    expect(refused).to.be.below(60);
  });

  it('is a problem at the start if no provider has the cheaper model', async () => {
    const error = await start(1, { policies: { accounts: { whenBudgetEnds: { smart: 'smart' } } } }).catch(
      (thrown: unknown) => thrown,
    );
    expect(String(error)).to.match(/whenBudgetEnds.*not a model of a configured provider/s);
  });
});
