import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type OpenIdProvider, startOpenIdProvider } from '../support/identity/openid-provider.ts';
import { eventually } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
type Loose = any;

const today = () => new Date().toISOString().slice(0, 10);
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

/** Echo of `hi`: 5 tokens in and 1 out, at one dollar per million each. */
const CALL = { model: 'echo/echo', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };

describe('accounts over HTTP and on the command line', () => {
  let provider: OpenIdProvider;
  let gateway: TestGateway;
  let users = 0;

  before(async () => {
    provider = await startOpenIdProvider({ users: { ann: {}, bob: {} }, audience: 'tollgate' });
    gateway = await startGateway({
      billing: 'enforce',
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      auth: { 'api-key': {}, jwt: { issuer: provider.issuer, audience: 'tollgate' } },
      plans: { free: { rpm: 20 }, pro: { rpm: 600, tpm: 100_000, providers: { echo: { rpm: 300 } } } },
      defaultPlan: 'free',
    });
  });
  after(async () => {
    await gateway?.stop();
    await provider?.stop();
  });

  const get = async (
    where: string,
    credential?: string,
  ): Promise<{ status: number; headers: Headers; body: Loose }> => {
    const headers: Record<string, string> = credential ? { authorization: `Bearer ${credential}` } : {};
    const response = await fetch(gateway.url + where, { headers });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const run = (...words: readonly string[]): Promise<Loose> => gateway.command<Loose>('accounts', ...words);
  const createKey = async (user: string, ...options: readonly string[]): Promise<string> =>
    (await gateway.command<Loose>('keys', 'create', '--user', user, ...options)).api_key;
  const newUser = () => `user-${users++}`;
  const fails = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'it did not fail',
      (error: Error) => error.message,
    );
  const call = async (key: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(CALL),
    });
  /** Returns the reported cost of a call, in micro-dollars. */
  const spend = async (key: string): Promise<number> => {
    const response = await call(key);
    expect(response.status, await response.clone().text()).to.equal(200);
    return Math.round(Number(response.headers.get('x-tollgate-cost-usd')) * 1_000_000);
  };

  describe('a balance', () => {
    it('is zero for an unused account', async () => {
      const user = newUser();
      const { status, headers, body } = await get('/api/core/balance', await createKey(user));
      expect(status).to.equal(200);
      expect(headers.get('cache-control')).to.equal('no-store');
      expect(body).to.deep.equal({
        user_id: user,
        plan: 'free',
        currency: 'USD',
        balance: '0.00',
        held: '0.00',
        spent: '0.00',
        credited: '0.00',
        limits: { rpm: 20 },
        budgets: [],
        updated_at: null,
      });
    });

    it('grows by a credit while the gateway runs, once per id', async () => {
      const user = newUser();
      const key = await createKey(user);
      const credit = async (...words: readonly string[]) => {
        const { credited, account } = await run('credit', user, ...words);
        return [credited, account.balance_usd];
      };
      expect(await credit('25', '--id', 'invoice-1')).to.deep.equal([true, '25.00']);
      expect(await credit('25', '--id', 'invoice-1')).to.deep.equal([false, '25.00']);
      expect(await credit('0.000001')).to.deep.equal([true, '25.000001']);
      expect((await get('/api/core/balance', key)).body).to.include({ balance: '25.000001', credited: '25.000001' });
    });

    it('shrinks by a negative credit, below zero too, and then covers no call', async () => {
      const user = newUser();
      const key = await createKey(user);
      await run('credit', user, '1');
      expect((await run('credit', user, '-1.5', '--reason', 'refund')).account).to.include({ balance_usd: '-0.50' });
      const response = await call(key);
      const { error } = (await response.json()) as Loose;
      expect(response.status).to.equal(402);
      expect(response.headers.get('x-should-retry')).to.equal('false');
      expect(error).to.include({ code: 'insufficient_balance', type: 'insufficient_quota' });
    });

    it('is not changed by a credit with an invalid amount', async () => {
      for (const amount of ['0', 'ten', '1.0000000001', '1e3', ''])
        expect(await fails(run('credit', 'ann', amount)), amount).to.match(/amount/);
    });

    it('contains the limits of the plan and of the key', async () => {
      const user = newUser();
      expect(await run('plan', user, 'pro')).to.include({ id: user, plan: 'pro' });
      const key = await createKey(user, '--rpm', '7', '--budget', '3');
      const { body } = await get('/api/core/balance', key);
      expect(body.plan).to.equal('pro');
      expect(body.limits).to.deep.equal({
        rpm: 600,
        tpm: 100_000,
        providers: { echo: { rpm: 300 } },
        key_rpm: 7,
        key_budget_usd: '3.00',
      });
      expect(await fails(run('plan', user, 'gold')))
        .to.include('There is no plan "gold"')
        .and.include('free, pro');
    });
  });

  it('are shown with their ledger entries, newest first', async () => {
    const user = newUser();
    const key = await createKey(user);
    await run('credit', user, '2', '--reason', 'welcome');
    const cost = await spend(key);
    await settledBooks(gateway.url, key);
    const shown = await run('show', user);
    expect(shown).to.include({ id: user, plan: 'free', held_usd: '0.00', credited_usd: '2.00' });
    expect(shown.entries.map(({ kind, amount_usd }: Loose) => [kind, Number(amount_usd)])).to.deep.equal([
      ['charge', -cost / 1_000_000],
      ['credit', 2],
    ]);
    expect(shown.entries[1].reason).to.equal('welcome');
  });

  describe('usage', () => {
    it('is grouped by day, model, provider, key and operation; a key sees its own, a token the whole account', async () => {
      await run('credit', 'ann', '10');
      const keys = [await createKey('ann'), await createKey('ann')] as const;
      const costs = [await spend(keys[0]), await spend(keys[0]), await spend(keys[1])] as const;
      const token = await provider.token('ann', 'keys:write');
      await settledBooks(gateway.url, keys[0]);
      const usage = async (credential: string, group: string) =>
        (await get(`/api/core/usage?group_by=${group}`, credential)).body;

      const whole = await eventually(async () => {
        const body = await usage(token, 'day,provider,model,operation');
        expect(body.data[0].requests).to.equal(3);
        return body;
      });
      expect(whole).to.include({ object: 'list', currency: 'USD', to: `${tomorrow()}T00:00:00.000Z` });
      expect(whole.data).to.have.lengthOf(1);
      expect(whole.data[0]).to.include({ day: today(), provider: 'echo', model: 'echo', operation: 'chat' });
      expect(Number(whole.data[0].cost_usd) * 1e6).to.be.closeTo(costs[0] + costs[1] + costs[2], 0.001);
      expect((await usage(token, 'key')).data.map(({ requests }: Loose) => requests).sort()).to.deep.equal([1, 2]);
      expect((await usage(keys[0], 'day')).data)
        .to.have.lengthOf(1)
        .and.to.have.nested.property('[0].requests', 2);
      expect((await usage(keys[1], 'day')).data[0].requests).to.equal(1);
    });

    it('is refused with the problem of the query', async () => {
      const key = await createKey(newUser());
      const wrong: readonly (readonly [string, string])[] = [
        ['from=2026-02-30', 'from'],
        ['from=yesterday', 'from'],
        ['from=2026-03-02&to=2026-03-01', 'from'],
        ['from=2020-01-01&to=2026-03-01', 'by'],
        ['to=2026-13-01', 'to'],
        ['group_by=colour', 'group_by'],
        ['account=bob', 'account'],
      ];
      for (const [query, param] of wrong) {
        const { status, body } = await get(`/api/core/usage?${query}`, key);
        expect([status, body.error.code], query).to.deep.equal([400, 'invalid_request']);
        expect(String(body.error.param), query).to.include(param);
      }
    });
  });

  describe('of two tenants', () => {
    it('are never visible to the other, by key or by token', async () => {
      await run('credit', 'bob', '5');
      const key = await createKey('bob');
      await spend(key);
      await settledBooks(gateway.url, key);
      const [ann, bob] = await Promise.all(['ann', 'bob'].map((user) => provider.token(user, 'keys:write')));
      for (const credential of [bob, key]) {
        const { body } = await get('/api/core/balance', credential);
        expect(body).to.include({ user_id: 'bob', credited: '5.00' });
      }
      const mine = (await get('/api/core/usage?group_by=key', bob)).body.data.map((row: Loose) => row.key);
      const theirs = (await get('/api/core/usage?group_by=key', ann)).body.data.map((row: Loose) => row.key);
      expect(mine).to.have.lengthOf(1);
      expect(theirs).not.to.include(mine[0]);
      expect((await get('/api/core/balance?user_id=bob', ann)).status).to.equal(400);
    });

    it('need a credential, and a token needs the permission', async () => {
      for (const where of ['/api/core/balance', '/api/core/usage']) {
        expect((await get(where)).body.error.code, where).to.equal('missing_api_key');
        const { status, body } = await get(where, await provider.token('ann', 'keys:read'));
        expect([status, body.error.code], where).to.deep.equal([403, 'permission_denied']);
      }
    });
  });
});
