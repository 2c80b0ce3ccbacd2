import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';

describe('the admin API for accounts and plans', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ defaultPlan: 'free' });
  });
  after(() => operator.gateway.stop());

  it('lists accounts in pages, each once, with balances', async () => {
    const { call } = operator;
    const names = Array.from({ length: 7 }, (_, n) => `list/${n}`);
    for (const name of names)
      await call('POST', `/accounts/${encodeURIComponent(name)}/credit`, { amount_usd: '1.50', reason: 'gift' });
    const seen: string[] = [];
    for (let after = ''; ; ) {
      const { body } = await call('GET', `/accounts?limit=2${after && `&after=${encodeURIComponent(after)}`}`);
      expect(body.data.length).to.be.at.most(2);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      if (!body.has_more) break;
      after = body.next;
    }
    expect(seen.filter((name) => name.startsWith('list/'))).to.have.members(names);
    expect(new Set(seen).size).to.equal(seen.length);
  });

  it('credits once per id, however often it is sent, and writes one audit entry', async () => {
    const { call } = operator;
    const credit = { amount_usd: '25.00', id: 'invoice-1', reason: 'first payment' };
    const all = await Promise.all(Array.from({ length: 5 }, () => call('POST', '/accounts/ann/credit', credit)));
    expect(all.map(({ body }) => body.credited).filter(Boolean)).to.have.lengthOf(1);
    const { body } = await call('GET', '/accounts/ann');
    expect(body).to.deep.include({ object: 'account', id: 'ann', balance_usd: '25.00', plan: 'free' });
    expect(body.entries).to.have.lengthOf(1);
    const { data } = (await call('GET', '/audit?action=account.credit&subject=ann')).body;
    expect(data).to.have.lengthOf(1);
    expect(data[0].after).to.include({ amount_usd: '25.00', id: 'invoice-1', reason: 'first payment' });
    expect(data[0].actor).to.include({ via: 'api', user_id: 'root', address: '127.0.0.1' });
  });

  it('refuses amounts, ids and pages that are not valid', async () => {
    const { call } = operator;
    for (const body of [
      {},
      { amount_usd: 'x' },
      { amount_usd: '0' },
      { amount_usd: 1e300 },
      { amount_usd: '1', id: '' },
      { amount_usd: '1', reason: 'a\nb' },
      { amount_usd: '1', extra: 1 },
    ])
      expect((await call('POST', '/accounts/ann/credit', body)).body.error.code, JSON.stringify(body)).to.equal(
        'invalid_request',
      );
    for (const path of ['/accounts?limit=1e9', '/accounts?limit=0', `/accounts/${'x'.repeat(400)}`, '/accounts/a%00b'])
      expect((await call('GET', path)).status, path.slice(0, 40)).to.equal(400);
    expect((await call('GET', '/accounts/ann')).body.balance_usd).to.equal('25.00');
  });

  it('assigns plans to accounts, immediately on this node, and refuses unknown plans', async () => {
    const { call, chat } = operator;
    const key = (await call('POST', '/keys', { user_id: 'planned' })).body.api_key;
    expect((await call('PUT', '/plans/tight', { rpm: 1 })).status).to.equal(200);
    expect((await chat(key)).status).to.equal(200);
    const changed = await call('PUT', '/accounts/planned/plan', { plan: 'tight' });
    expect(changed.headers.get('etag')).to.equal('"1"');
    expect(changed.body).to.include({ plan: 'tight' });
    expect((await chat(key)).status).to.equal(200);
    const refused = await chat(key);
    expect(refused.code).to.equal('rate_limited');
    expect(refused.message).to.include('plan "tight"');
    await call('PUT', '/plans/tight', { rpm: 1000 });
    expect((await chat(key)).status).to.equal(200);
    expect((await call('PUT', '/accounts/planned/plan', { plan: 'nope' })).body.error).to.include({ param: 'plan' });
    expect((await call('PUT', '/accounts/planned/plan', { plan: null }, { 'if-match': '"7"' })).status).to.equal(412);
    expect((await call('PUT', '/accounts/planned/plan', { plan: null }, { 'if-match': '"1"' })).body.plan).to.equal(
      'free',
    );
    const { data } = (await call('GET', '/audit?action=account.plan&subject=planned')).body;
    expect(data.map(({ before, after }: { before: object; after: object }) => [before, after])).to.deep.equal([
      [{ plan: 'tight' }, { plan: null }],
      [{ plan: null }, { plan: 'tight' }],
    ]);
  });

  it('lists the plans of the file and of the store, and changes only those of the store', async () => {
    const { call } = operator;
    for (const method of ['PUT', 'DELETE']) {
      const { status, body } = await call(method, '/plans/free', method === 'PUT' ? { rpm: 1 } : undefined);
      expect(status).to.equal(409);
      expect(body.error.message).to.include('configuration file');
    }
    const put = await call('PUT', '/plans/team', { rpm: 5, providers: { echo: { rpm: 2 } } });
    expect(put.body).to.deep.include({ name: 'team', owner: 'store', rpm: 5, providers: { echo: { rpm: 2 } } });
    const etag = put.headers.get('etag') ?? '';
    expect((await call('PUT', '/plans/team', { rpm: 6 }, { 'if-match': '"1"' })).status).to.equal(412);
    expect((await call('PUT', '/plans/team', { rpm: 6 }, { 'if-match': etag })).status).to.equal(200);
    expect((await call('PUT', '/plans/team', { rpm: 7 }, { 'if-match': etag })).status).to.equal(412);
    const { data } = (await call('GET', '/plans')).body;
    expect(data.map(({ name, owner }: { name: string; owner: string }) => `${owner} ${name}`)).to.include.members([
      'file free',
      'file pro',
      'store team',
    ]);
    expect((await call('DELETE', '/plans/team')).body).to.include({ name: 'team', rpm: 6 });
    expect((await call('DELETE', '/plans/team')).status).to.equal(404);
    expect((await call('GET', '/plans/team')).status).to.equal(404);
  });

  it('refuses plans whose limits would have no effect', async () => {
    const { call } = operator;
    const wrong: readonly object[] = [
      { rmp: 1 },
      { rpm: -1 },
      { rpm: '5' },
      { providers: { nope: { rpm: 1 } } },
      { providers: { echo: { rmp: 1 } } },
    ];
    for (const plan of wrong)
      expect((await call('PUT', '/plans/wrong', plan)).status, JSON.stringify(plan)).to.equal(400);
    for (const name of ['a%2Fb', '%20', '__proto__', 'x'.repeat(70)])
      expect((await call('PUT', `/plans/${name}`, { rpm: 1 })).status, name).to.equal(400);
    expect((await call('GET', '/plans/constructor')).status).to.equal(404);
  });

  it('stores each of ten plans that are put concurrently', async () => {
    const { call } = operator;
    const names = Array.from({ length: 10 }, (_, n) => `at-once-${n}`);
    await Promise.all(names.map((name, n) => call('PUT', `/plans/${name}`, { rpm: n + 1 })));
    const { data } = (await call('GET', '/plans')).body;
    expect(data.map(({ name }: { name: string }) => name)).to.include.members(names);
  });

  it('refuses a caller whose plan was deleted, until it has another', async () => {
    const { call, chat } = operator;
    await call('PUT', '/plans/leaving', { rpm: 10 });
    const key = (await call('POST', '/keys', { user_id: 'left', plan: 'leaving' })).body;
    expect((await chat(key.api_key)).status).to.equal(200);
    await call('DELETE', '/plans/leaving');
    // The default plan holds.
    expect((await chat(key.api_key)).status).to.equal(200);
    expect((await call('POST', '/keys', { user_id: 'left', plan: 'leaving' })).body.error).to.include({
      param: 'plan',
    });
  });
});
