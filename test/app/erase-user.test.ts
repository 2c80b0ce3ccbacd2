import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { eventually } from '../support/wait.ts';

describe('a user who is erased', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      agents: { team: { model: 'echo/echo', memory: { enabled: true } } },
      calls: { bodies: 'on' },
    });
  });
  after(() => operator.gateway.stop());

  it('is previewed first; then keys, sessions, memories, bodies, stored responses and names are deleted, and the ledger stays (E50)', async () => {
    const { call, chat, gateway } = operator;
    const [one, two] = [
      (await call('POST', '/keys', { user_id: 'ann', name: 'Ann’s laptop' })).body,
      (await call('POST', '/keys', { user_id: 'ann', name: 'Ann’s phone' })).body,
    ];
    await call('POST', '/keys', { user_id: 'bea' });
    await call('POST', `/keys/${two.api_key_info.id}/revoke`);
    await call('PATCH', '/users/ann', { name: 'Ann Miller' });
    await call('POST', '/accounts/ann/credit', { amount_usd: 5 });
    expect((await chat(one.api_key)).status).to.equal(200);
    const headers = { authorization: `Bearer ${one.api_key}`, 'idempotency-key': 'once-for-ann' };
    const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'my address is 1 Main Street' }] };
    await (await gateway.post('/v1/chat/completions', body, headers)).text();
    const viewer = (await call('POST', '/keys', { user_id: 'ann', role: 'viewer' })).body;
    const own = { origin: gateway.url, 'sec-fetch-site': 'same-origin', authorization: `Bearer ${viewer.api_key}` };
    const signedIn = await fetch(`${gateway.url}/api/core/admin/console/session`, { method: 'POST', headers: own });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const look = async () => (await fetch(`${gateway.url}/api/core/admin/targets`, { headers: { cookie } })).status;
    expect([signedIn.status, await look()]).to.deep.equal([204, 200]);
    await eventually(async () => {
      expect((await call('GET', '/calls?user=ann')).body.data).to.have.lengthOf(2);
      expect((await call('DELETE', '/users/ann')).body.erased).to.include({ bodies: 2 });
    });
    const counted = (await call('DELETE', '/users/ann')).body;
    expect(counted).to.include({ object: 'erasure', user_id: 'ann', dry_run: true });
    expect(counted.erased).to.include({ keys: 2, revoked_keys: 1, sessions: 1, bodies: 2, records_of_the_user: 1 });
    expect(counted.erased.kept_documents).to.be.at.least(1);
    expect((await chat(one.api_key)).status, 'a dry run changes nothing').to.equal(200);
    const before = (await call('GET', '/accounts/ann')).body;

    const erased = (await call('DELETE', '/users/ann?yes=true')).body;
    expect(erased.dry_run).to.equal(false);
    expect(erased.erased).to.include({ keys: 2, sessions: 1, bodies: 3, records_of_the_user: 1 });
    expect(await look()).to.equal(401);
    expect(erased.stays.map(({ what }: { what: string }) => what).join()).to.include('ledger');
    expect((await chat(one.api_key)).status).to.equal(401);
    expect((await call('GET', `/keys/${one.api_key_info.id}`)).status).to.equal(404);
    const keys = (await call('GET', '/keys')).body.data as { user_id: string }[];
    expect(keys.map(({ user_id }) => user_id)).to.have.members(['local', 'root', 'bea']);
    const users = (await call('GET', '/users')).body.data as { id: string }[];
    expect(users.map(({ id }) => id)).to.deep.equal(['bea', 'local', 'root']);
    expect((await call('GET', '/users/ann')).body).to.include({ name: null, keys: 0 });
    const again = (await call('DELETE', '/users/ann')).body;
    expect(Object.values(again.erased).filter((count) => count !== 0)).to.deep.equal([]);
    const [newest] = (await call('GET', '/calls?user=ann&limit=1')).body.data;
    expect((await call('GET', `/calls/${newest.id}`)).body.bodies).to.equal(null);
    const after = (await call('GET', '/accounts/ann')).body;
    expect(after.entries.length).to.be.at.least(before.entries.length);
    expect(after).to.include({ credited_usd: '5.00', kept_bytes: 0 });
    const { data } = (await call('GET', '/audit?subject=ann&action=user.erase')).body;
    expect(data[0].after.erased).to.deep.equal(erased.erased);
    const alike = (await call('POST', '/keys', { user_id: '\u0430nn' })).body;
    expect(alike.similar, 'the id is not reported as similar').to.deep.equal([]);
  });

  it('is erased by the command line only with --yes, and only with the scope (E50)', async () => {
    const { call, gateway } = operator;
    await call('POST', '/keys', { user_id: 'max' });
    const counted = await gateway.command<{ dry_run: boolean; erased: object }>('users', 'erase', 'max');
    expect(counted).to.deep.include({ dry_run: true });
    expect(counted.erased).to.include({ keys: 1 });
    const made = await call('POST', '/keys', { user_id: 'support', role: 'operator' });
    const headers = { authorization: `Bearer ${made.body.api_key}` };
    const refused = await fetch(`${gateway.url}/api/core/admin/users/max?yes=true`, { method: 'DELETE', headers });
    expect(refused.status).to.equal(403);
    const done = await gateway.command<{ dry_run: boolean; erased: object }>('users', 'erase', 'max', '--yes');
    expect(done).to.deep.include({ dry_run: false });
    expect(done.erased).to.include({ keys: 1 });
    expect((await call('DELETE', '/users/%00')).status).to.equal(400);
  });
});
