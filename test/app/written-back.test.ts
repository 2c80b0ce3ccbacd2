import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';

describe('data read by operators', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      plans: { free: { rpm: 100, budgets: [{ amount_usd: 4, every: 'day' }] }, pro: { rpm: 1000 } },
      defaultPlan: 'free',
      budgets: [{ name: 'ours', amount_usd: 5, every: 'week', starts_on: 'sunday' }],
    });
    const { call, chat } = operator;
    const budgets = [{ amount_usd: '2.00', every: 'day', timezone: 'Europe/Berlin', soft_usd: '1.00' }];
    const made = await call('POST', '/keys', { user_id: 'ann', name: 'laptop', models: ['echo/*'], budgets, rpm: 60 });
    await chat(made.body.api_key);
    key = made.body.api_key_info.id;
    await call('POST', '/accounts/ann/credit', { amount_usd: 25 });
    await call('PUT', '/plans/team', { rpm: 5, budgets: [{ amount_usd: 1, every: 'month', starts_on: 15 }] });
    await call('PUT', '/budgets/search', { amount_usd: 3, every: 'day', soft_usd: 2, tag: 'team=search' });
    const until = new Date(Date.now() + 3_600_000).toISOString();
    for (const name of ['search', 'ours']) await call('POST', `/budgets/${name}/raises`, { amount_usd: 1.5, until });
    await call('PUT', '/teams/team=search', { owners: { users: ['ann'] }, budget: { amount_usd: 5, every: 'month' } });
    await call('POST', '/users/bob/block', { reason: 'left' });
  });
  after(() => operator.gateway.stop());
  let key = '';

  const THINGS: readonly (readonly [what: string, method: string, path: () => string])[] = [
    ['a user', 'PATCH', () => '/users/ann'],
    ['a user who is blocked', 'PATCH', () => '/users/bob'],
    ['a user of whom nothing is stored', 'PATCH', () => '/users/missing'],
    ['an account', 'PATCH', () => '/accounts/ann'],
    ['a plan of the file', 'PUT', () => '/plans/free'],
    ['a plan of the store', 'PUT', () => '/plans/team'],
    ['a budget of the file', 'PUT', () => '/budgets/ours'],
    ['a budget of the store', 'PUT', () => '/budgets/search'],
    ['a key', 'PATCH', () => `/keys/${key}`],
    ['a team', 'PUT', () => '/teams/team=search'],
  ];

  for (const [what, method, path] of THINGS)
    it(`can be written back byte for byte, and nothing changes (E49): ${what}`, async () => {
      const { call, gateway, key: bearer } = operator;
      const read = async () => {
        const response = await gateway.get(`/api/core/admin${path()}`, { authorization: `Bearer ${bearer}` });
        return { etag: response.headers.get('etag') ?? '', text: await response.text() };
      };
      const before = await read();
      const written = await fetch(`${gateway.url}/api/core/admin${path()}`, {
        method,
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', 'if-match': before.etag },
        body: before.text,
      });
      const body = await written.text();
      expect([written.status, body]).to.deep.equal([200, before.text]);
      expect(written.headers.get('etag')).to.equal(before.etag);
      expect(await read()).to.deep.equal(before);
      const { data } = (await call('GET', '/audit?limit=1')).body;
      expect(data[0].action).to.equal('user.block');
    });

  it('has read-only fields, and a change of one is refused with its name (E49)', async () => {
    const { call } = operator;
    for (const [method, path, field, value] of [
      ['PATCH', '/users/ann', 'spent_this_month_usd', '0.00'],
      ['PATCH', '/users/ann', 'keys', 7],
      ['PATCH', '/accounts/ann', 'balance_usd', '1000.00'],
      ['PUT', '/plans/team', 'owner', 'file'],
      ['PUT', '/budgets/search', 'left_usd', '1000.00'],
      ['PATCH', `/keys/${key}`, 'user_id', 'root'],
      ['PATCH', `/keys/${key}`, 'spent_usd', '1000.00'],
    ] as const) {
      const { body } = await call('GET', path);
      const { status, body: refused } = await call(method, path, { ...body, [field]: value });
      expect([status, refused.error.param], path).to.deep.equal([400, field]);
      expect(refused.error.message).to.match(/read-only.*Remove it/);
    }
    const { body } = await call('GET', `/keys/${key}`);
    const budgets = [{ ...body.budgets[0], left_usd: '1000.00' }];
    expect((await call('PATCH', `/keys/${key}`, { budgets })).body.error.param).to.equal('budgets[0].left_usd');
  });

  it('can be changed in one field and written back with the others unchanged (E49)', async () => {
    const { call } = operator;
    const change = async (method: string, path: string, alter: (body: never) => object): Promise<object> => {
      const { body, headers } = await call('GET', path);
      const sent = { ...body, ...alter(body as never) };
      const { status, body: reported } = await call(method, path, sent, { 'if-match': headers.get('etag') ?? '' });
      expect(status, JSON.stringify(reported)).to.equal(200);
      return (await call('GET', path)).body;
    };
    expect(await change('PATCH', '/users/ann', () => ({ name: 'Ann' }))).to.include({ name: 'Ann', blocked: false });
    const blocked = await change('PATCH', '/users/ann', () => ({ blocked: true, blocked_reason: 'left' }));
    expect(blocked).to.include({ name: 'Ann', blocked: true, blocked_reason: 'left' });
    expect(await change('PATCH', '/users/ann', () => ({ blocked: false }))).to.include({ blocked_reason: null });
    expect(await change('PATCH', '/accounts/ann', () => ({ plan: 'pro' }))).to.include({ plan: 'pro' });
    expect(await change('PUT', '/plans/team', () => ({ rpm: 6 }))).to.include({ rpm: 6, owner: 'store' });
    const budget = await change('PUT', '/budgets/search', () => ({ amount_usd: '4.00' }));
    expect(budget).to.include({ amount_usd: '4.00', soft_usd: '2.00', raised_usd: '1.50', tag: 'team=search' });
    const more = (body: { budgets: object[] }) => ({ budgets: [{ ...body.budgets[0], amount_usd: '3.00' }] });
    const changed = (await change('PATCH', `/keys/${key}`, more)) as { budgets: object[]; name: string };
    expect(changed.name).to.equal('laptop');
    expect(changed.budgets[0]).to.include({ amount_usd: '3.00', soft_usd: '1.00', timezone: 'Europe/Berlin' });
  });

  it('is printed by a command with --json as in the API: one bare, several in a list (E49)', async () => {
    const { call, gateway } = operator;
    for (const [words, path] of [
      [['users', 'show', 'bob'], '/users/bob'],
      [['users', 'list'], '/users'],
      [['accounts', 'show', 'ann'], '/accounts/ann'],
      [['accounts', 'list'], '/accounts'],
      [['plans', 'show', 'team'], '/plans/team'],
      [['plans', 'list'], '/plans'],
      [['budgets', 'list'], '/budgets'],
      [['keys', 'show', key], `/keys/${key}`],
      [['keys', 'list'], '/keys'],
    ] as const)
      expect(await gateway.command(...words), words.join(' ')).to.deep.equal((await call('GET', path)).body);
  });

  for (const [what, path, body] of [
    ['budget', '/budgets/nights', { amount_usd: 1, every: 'day' }],
    ['plan', '/plans/nights', { rpm: 1 }],
    ['team', '/teams/team=ads', { owners: { users: ['ann'] } }],
  ] as const)
    it(`is created, and never replaced, with If-None-Match: ${what}`, async () => {
      const { call } = operator;
      const create = () => call('PUT', path, body, { 'if-none-match': '*' });
      expect((await create()).status).to.equal(200);
      const again = await create();
      expect([again.status, again.body.error.code]).to.deep.equal([412, 'precondition_failed']);
      expect(again.body.error.message).to.include('This name is taken');
      expect((await call('PUT', path, body)).status).to.equal(200);
    });
});
