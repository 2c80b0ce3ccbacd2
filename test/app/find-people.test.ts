import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { eventually } from '../support/wait.ts';

const ids = (body: { data: readonly { id: string }[] }): readonly string[] => body.data.map(({ id }) => id);

describe('the operators’ search', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({
      billing: 'track',
      providers: { echo: { prices: { '*': { input: 0, output: 2000 } } } },
      plans: {
        free: { budgets: [{ name: 'daily', amount_usd: 4, every: 'day' }] },
        pro: { budgets: [{ name: 'monthly', amount_usd: 4, every: 'month' }] },
      },
      defaultPlan: 'free',
      budgets: [{ name: 'everyone', amount_usd: 1000, every: 'month' }],
    });
  });
  after(() => operator.gateway.stop());

  const make = async (user_id: string, more: object = {}): Promise<{ key: string; id: string }> => {
    const { body } = await operator.call('POST', '/keys', { user_id, ...more });
    return { key: body.api_key, id: body.api_key_info.id };
  };
  const spend = async (key: string, dollars: number): Promise<void> => {
    const messages = [{ role: 'user', content: 'word '.repeat(dollars * 700) }];
    const body = { model: 'echo/echo', max_tokens: dollars * 500, messages };
    const response = await operator.gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    expect(response.status, await response.text()).to.equal(200);
  };

  it('finds a key by its name, tag, plan, role and state, in pages too', async () => {
    const { call } = operator;
    const laptop = await make('ann', { name: 'Ann’s laptop', tags: ['team=search'] });
    const server = await make('bob', { name: 'build server', plan: 'pro' });
    const viewer = await make('eve', { name: 'wallboard', role: 'viewer' });
    await call('POST', `/keys/${server.id}/block`);
    const old = await make('bob', { name: 'old laptop' });
    await call('POST', `/keys/${old.id}/revoke`);
    for (const [query, found] of [
      ['name=LAPTOP', [laptop.id, old.id]],
      ['name=laptop&state=active', [laptop.id]],
      ['tag=team%3Dsearch', [laptop.id]],
      ['plan=pro', [server.id]],
      ['state=blocked', [server.id]],
      ['role=viewer', [viewer.id]],
      ['user=ann&name=server', []],
    ] as const)
      expect([query, ids((await call('GET', `/keys?${query}`)).body)]).to.deep.equal([query, found]);
    const first = (await call('GET', '/keys?name=laptop&limit=1')).body;
    expect([ids(first), first.has_more]).to.deep.equal([[laptop.id], true]);
    const second = (await call('GET', `/keys?name=laptop&limit=1&after=${first.next}`)).body;
    expect(ids(second)).to.deep.equal([old.id]);
    const listed = await operator.gateway.command<{ data: { id: string }[] }>('keys', 'list', '--tag', 'team=search');
    expect(ids(listed)).to.deep.equal([laptop.id]);
    expect((await call('GET', '/keys?state=gone')).status).to.equal(400);
  });

  it('finds an account by a part of its id and by its plan', async () => {
    const { call } = operator;
    for (const id of ['acme-berlin', 'acme-rome', 'other'])
      await call('POST', `/accounts/${id}/credit`, { amount_usd: 5 });
    await call('PUT', '/accounts/acme-rome/plan', { plan: 'pro' });
    expect(ids((await call('GET', '/accounts?name=ACME')).body)).to.deep.equal(['acme-berlin', 'acme-rome']);
    expect(ids((await call('GET', '/accounts?plan=pro')).body)).to.deep.equal(['acme-rome']);
    const first = (await call('GET', '/accounts?name=acme&limit=1')).body;
    const second = (await call('GET', `/accounts?name=acme&limit=1&after=${first.next}`)).body;
    expect([...ids(first), ...ids(second)]).to.deep.equal(['acme-berlin', 'acme-rome']);
  });

  it('finds the rest of an account’s plan budgets, and the accounts closest to their limit (E46)', async () => {
    const { call, gateway } = operator;
    const [zoe, max] = [await make('zoe'), await make('max')];
    await spend(zoe.key, 3);
    await spend(max.key, 1);
    await eventually(async () => {
      const [budget] = (await call('GET', '/accounts/zoe')).body.budgets;
      expect(budget).to.include({ name: 'daily', of: 'plan', amount_usd: '4.00', spent_usd: '3.00', left_usd: '1.00' });
    });
    const { data } = (await call('GET', '/near-budgets')).body as { data: Record<string, unknown>[] };
    const rows = data.map(({ budget, of, whose, used, left_usd }) => [budget, of, whose, used, left_usd]);
    expect(rows.slice(0, 2)).to.deep.equal([
      ['daily', 'account', 'zoe', 0.75, '1.00'],
      ['daily', 'account', 'max', 0.25, '3.00'],
    ]);
    expect(rows).to.deep.include(['everyone', 'all', 'all', 0.004, '996.00']);
    const listed = await gateway.command<{ data: { whose: string }[] }>('budgets', 'near');
    expect(listed.data.map(({ whose }) => whose).slice(0, 2)).to.deep.equal(['zoe', 'max']);
  });

  it('lists the budget of a plan that a key names, though its account has another plan (G42)', async () => {
    const { call, gateway } = operator;
    const { key } = await make('kim', { plan: 'pro' });
    await spend(key, 2);
    const budgets = async (): Promise<readonly Record<string, unknown>[]> =>
      (await call('GET', '/accounts/kim')).body.budgets;
    await eventually(async () => expect(await budgets()).to.have.length(2));
    expect((await budgets()).map(({ name, plan, spent_usd }) => [name, plan, spent_usd])).to.deep.equal([
      ['daily', 'free', '0.00'],
      ['monthly', 'pro', '2.00'],
    ]);
    const { data } = (await call('GET', '/near-budgets')).body as { data: Record<string, unknown>[] };
    const ofKim = data.filter(({ whose }) => whose === 'kim');
    expect(ofKim.map(({ budget, plan, used, left_usd }) => [budget, plan, used, left_usd])).to.deep.equal([
      ['monthly', 'pro', 0.5, '2.00'],
      ['daily', 'free', 0, '4.00'],
    ]);
    expect(data.filter(({ whose, plan }) => whose === 'max' && plan === 'pro')).to.deep.equal([]);
    const near = await gateway.command<{ data: { whose: string; plan?: string }[] }>('budgets', 'near');
    expect(near.data.filter(({ whose, plan }) => whose === 'kim' && plan === 'pro')).to.have.length(1);
  });

  it('reveals a typo in a credited account: the response marks it as new, with similar names (E50)', async () => {
    const { call } = operator;
    await call('POST', '/accounts/annabel/credit', { amount_usd: 5 });
    const typo = (await call('POST', '/accounts/anabel/credit', { amount_usd: 50 })).body;
    expect(typo).to.deep.include({ is_new: true, similar: ['annabel'], credited: true });
    const back = (await call('POST', '/accounts/anabel/credit', { amount_usd: -50 })).body;
    expect(back).to.deep.include({ is_new: false, similar: [] });
    expect(back.account.balance_usd).to.equal('0.00');
    expect((await call('POST', '/accounts/annabel/credit', { amount_usd: 1 })).body).to.include({ is_new: false });
  });
});
