import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { AUDIENCE, ISSUER, signShared } from '../support/identity/tokens.ts';
import { eventually } from '../support/wait.ts';

const SECRET = 'kT8w2Zr5Xv9Bn4Qm7Hd1Lf6Gj3Cs0YpA';

describe('the list of users', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({
      auth: { 'api-key': {}, jwt: { issuer: ISSUER, audience: AUDIENCE, secret: SECRET } },
      providers: { echo: { prices: { '*': { input: 0, output: 2000 } } } },
      defaultPlan: 'free',
    });
  });
  after(() => operator.gateway.stop());

  const ids = (body: { data: readonly { id: string }[] }): readonly string[] => body.data.map(({ id }) => id);

  it('contains everyone who got a key, called or was blocked, with plan, account, keys, spending and last call (E46)', async () => {
    const { call, chat, gateway } = operator;
    const ann = await call('POST', '/keys', { user_id: 'ann', account: 'team-x' });
    await call('POST', '/keys', { user_id: 'ann', account: 'team-x' });
    await call('POST', '/keys', { user_id: 'bea' });
    await call('PUT', '/accounts/team-x/plan', { plan: 'pro' });
    await call('POST', '/users/zed/block', { reason: 'left' });
    expect((await chat(ann.body.api_key)).status).to.equal(200);
    const token = signShared(SECRET, { sub: 'jwt|7', scope: 'keys:write' });
    await gateway.get('/api/core/balance', { authorization: `Bearer ${token}` });
    await eventually(async () => {
      const { body } = await call('GET', '/users');
      expect(ids(body)).to.deep.equal(['ann', 'bea', 'jwt|7', 'root', 'zed']);
      const { last_call_at, ...row } = body.data[0];
      expect(row).to.deep.equal({
        ...{ object: 'user', id: 'ann', name: null, plan: 'pro', account: 'team-x', keys: 2 },
        ...{ spent_this_month_usd: '0.002', blocked: false, blocked_at: null, blocked_reason: null },
      });
      expect(Date.parse(last_call_at)).to.be.closeTo(Date.now(), 60_000);
      expect(body.data[1]).to.include({ plan: 'free', account: 'bea', keys: 1, last_call_at: null });
    });
  });

  it('is searched by name, plan and state, and read in pages (E46)', async () => {
    const { call, gateway } = operator;
    await call('PATCH', '/users/bea', { name: 'Beatrice Stone' });
    expect(ids((await call('GET', '/users?name=STONE')).body)).to.deep.equal(['bea']);
    expect(ids((await call('GET', '/users?name=jwt')).body)).to.deep.equal(['jwt|7']);
    expect(ids((await call('GET', '/users?plan=pro')).body)).to.deep.equal(['ann']);
    expect(ids((await call('GET', '/users?state=blocked')).body)).to.deep.equal(['zed']);
    expect((await call('GET', '/users?state=gone')).status).to.equal(400);
    const pages: string[] = [];
    for (let after = ''; ; ) {
      const { body } = await call('GET', `/users?limit=2${after}`);
      pages.push(ids(body).join());
      expect(body.has_more).to.equal('next' in body);
      if (!body.has_more) break;
      after = `&after=${encodeURIComponent(body.next)}`;
    }
    expect(pages).to.deep.equal(['ann,bea', 'jwt|7,root', 'zed']);
    const listed = await gateway.command<{ data: { id: string }[] }>(
      'users',
      'list',
      '--state',
      'active',
      '--limit',
      '1',
    );
    expect(ids(listed)).to.deep.equal(['ann']);
  });
});
