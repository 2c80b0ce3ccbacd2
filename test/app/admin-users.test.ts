import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { AUDIENCE, ISSUER, signShared } from '../support/identity/tokens.ts';
import { eventually } from '../support/wait.ts';

const SECRET = 'kT8w2Zr5Xv9Bn4Qm7Hd1Lf6Gj3Cs0YpA';

describe('users on the admin API', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({
      auth: {
        'api-key': { bootstrap: true },
        jwt: { issuer: ISSUER, audience: AUDIENCE, secret: SECRET, roleClaims: ['groups'], roles: { ops: 'admin' } },
      },
    });
  });
  after(() => operator.gateway.stop());

  const balance = async (credential: string) => {
    const response = await operator.gateway.get('/api/core/balance', { authorization: `Bearer ${credential}` });
    const { error } = (await response.json()) as { error?: { code: string; message: string } };
    return { status: response.status, ...error };
  };

  for (const user of ['ann', 'auth0|12 3/4', 'a:b%2Fc', 'ünïcode ✓'])
    it(`are refused with every key and token while they are blocked: ${user}`, async () => {
      const { call, chat } = operator;
      const path = `/users/${encodeURIComponent(user)}`;
      const [one, two] = [
        (await call('POST', '/keys', { user_id: user })).body.api_key,
        (await call('POST', '/keys', { user_id: user })).body.api_key,
      ];
      const token = signShared(SECRET, { sub: user });
      expect((await call('GET', path)).body).to.include({
        ...{ object: 'user', id: user, blocked: false, blocked_at: null, blocked_reason: null },
      });
      for (const credential of [one, two]) expect((await chat(credential)).status).to.equal(200);
      expect((await balance(token)).status).to.equal(200);

      const blocked = await call('POST', `${path}/block`, { reason: 'abuse' });
      expect(blocked.body).to.include({ id: user, blocked_reason: 'abuse' });
      for (const refused of [await chat(one), await chat(two), await balance(token)]) {
        expect(refused).to.include({ status: 403, code: 'permission_denied' });
        expect(refused.message).to.include('blocked this user');
      }
      await call('POST', `${path}/unblock`);
      for (const credential of [one, two]) expect((await chat(credential)).status).to.equal(200);
      expect((await balance(token)).status).to.equal(200);
      const { data } = (await call('GET', `/audit?subject=${encodeURIComponent(user)}`)).body;
      expect(data.map(({ action }: { action: string }) => action)).to.deep.equal(['user.unblock', 'user.block']);
    });

  it('are blocked by the command line too, and a running gateway applies it soon @slow', async () => {
    const { call, chat, gateway } = operator;
    const key = (await call('POST', '/keys', { user_id: 'remote' })).body.api_key;
    expect((await chat(key)).status).to.equal(200);
    const blocked = await gateway.command<{ blocked_at: string }>('users', 'block', 'remote', '--reason', 'left');
    expect(blocked.blocked_at).to.be.a('string');
    await eventually(async () => expect((await chat(key)).code).to.equal('permission_denied'));
    expect(await gateway.command('users', 'show', 'remote')).to.include({ blocked_reason: 'left' });
    expect(await gateway.command('users', 'unblock', 'remote')).to.include({ blocked_at: null });
  });

  it('are operators only if their token has a value named in the configuration', async () => {
    const { gateway } = operator;
    const send = (claims: object) =>
      gateway.get('/api/core/admin/keys', { authorization: `Bearer ${signShared(SECRET, { ...claims })}` });
    expect((await send({ sub: 'boss', groups: ['ops'] })).status).to.equal(200);
    expect((await send({ sub: 'user', scope: 'keys:write' })).status).to.equal(403);
    // Operators cannot promote themselves: a key created with an operator's token is a plain key.
    const made = await gateway.post(
      '/api/core/api_keys/create',
      {},
      {
        authorization: `Bearer ${signShared(SECRET, { sub: 'boss', groups: ['ops'], scope: 'keys:write' })}`,
      },
    );
    const { api_key } = (await made.json()) as { api_key: string };
    expect((await gateway.get('/api/core/admin/keys', { authorization: `Bearer ${api_key}` })).status).to.equal(403);
  });

  it('are changed only at the named version, and invalid ids are refused', async () => {
    const { call } = operator;
    await call('POST', '/users/v/block');
    expect((await call('POST', '/users/v/unblock', {}, { 'if-match': '"9"' })).status).to.equal(412);
    expect((await call('POST', '/users/v/unblock', {}, { 'if-match': '"1"' })).headers.get('etag')).to.equal('"2"');
    for (const id of ['%00', 'a%0Ab', 'x'.repeat(400)])
      expect((await call('POST', `/users/${id}/block`)).status, id.slice(0, 9)).to.equal(400);
    expect((await call('POST', '/users/v/block', { reason: 'x'.repeat(10_240) })).status).to.equal(400);
  });
});
