import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { AUDIENCE, ISSUER, signShared } from '../support/identity/tokens.ts';

const SECRET = 'kT8w2Zr5Xv9Bn4Qm7Hd1Lf6Gj3Cs0YpA';

interface Entry {
  readonly id: string;
  readonly at: string;
  readonly actor: { readonly via: string; readonly user_id: string | null };
  readonly action: string;
  readonly subject: string;
}

describe('the audit log of a gateway', () => {
  let operator: Operator;
  /** Complete keys created by the test; none may be shown again. */
  const secrets: string[] = [];

  before(async () => {
    const jwt = { issuer: ISSUER, audience: AUDIENCE, secret: SECRET };
    operator = await startOperator({ auth: { 'api-key': { bootstrap: true }, jwt } });
    secrets.push(operator.key, operator.gateway.key);
  });
  after(() => operator.gateway.stop());

  /** Runs each API call or command that changes data; the table names the action expected in the audit log. */
  const api = (method: string, path: string, body?: object) => async (): Promise<void> => {
    const reported = await operator.call(method, path.replace(':key', await keyOf()), body);
    expect(reported.status, JSON.stringify(reported.body)).to.equal(200);
    if (typeof reported.body.api_key === 'string') secrets.push(reported.body.api_key);
  };
  const cli =
    (...words: readonly string[]) =>
    async (): Promise<void> => {
      const filled = await Promise.all(words.map(async (word) => (word === ':key' ? keyOf() : word)));
      const made = await operator.gateway.command<{ api_key?: string }>(...filled);
      if (typeof made.api_key === 'string') secrets.push(made.api_key);
    };
  const keyOf = async (): Promise<string> => {
    const { body } = await operator.call('POST', '/keys', { user_id: 'someone' });
    secrets.push(body.api_key);
    return body.api_key_info.id;
  };

  const CHANGES: readonly (readonly [action: string, via: string, change: () => Promise<void>])[] = [
    ['key.create', 'api', api('POST', '/keys', { user_id: 'ann' })],
    ['key.update', 'api', api('PATCH', '/keys/:key', { rpm: 5 })],
    ['key.block', 'api', api('POST', '/keys/:key/block', { reason: 'x' })],
    ['key.unblock', 'api', api('POST', '/keys/:key/unblock')],
    ['key.rotate', 'api', api('POST', '/keys/:key/rotate')],
    ['key.revoke', 'api', api('POST', '/keys/:key/revoke')],
    ['user.block', 'api', api('POST', '/users/bea/block')],
    ['user.unblock', 'api', api('POST', '/users/bea/unblock')],
    ['account.credit', 'api', api('POST', '/accounts/ann/credit', { amount_usd: 1 })],
    ['account.plan', 'api', api('PUT', '/accounts/ann/plan', { plan: 'pro' })],
    ['plan.put', 'api', api('PUT', '/plans/team', { rpm: 5 })],
    ['plan.remove', 'api', api('DELETE', '/plans/team')],
    ['key.create', 'cli', cli('keys', 'create', '--user', 'ann', '--admin')],
    ['key.update', 'cli', cli('keys', 'update', ':key', '--rpm', '5', '--clear', 'models,plan')],
    ['key.block', 'cli', cli('keys', 'block', ':key', '--reason', 'leaked')],
    ['key.unblock', 'cli', cli('keys', 'unblock', ':key')],
    ['key.rotate', 'cli', cli('keys', 'rotate', ':key', '--overlap', '0s')],
    ['key.revoke', 'cli', cli('keys', 'revoke', ':key')],
    ['user.block', 'cli', cli('users', 'block', 'bea')],
    ['user.unblock', 'cli', cli('users', 'unblock', 'bea')],
    ['account.credit', 'cli', cli('accounts', 'credit', 'ann', '1')],
    ['account.plan', 'cli', cli('accounts', 'plan', 'ann', '--clear')],
    ['plan.put', 'cli', cli('plans', 'set', 'team', '{"rpm":6}')],
    ['plan.remove', 'cli', cli('plans', 'delete', 'team')],
  ];
  for (const [action, via, change] of CHANGES)
    it(`has an entry for ${action} by ${via === 'api' ? 'the admin API' : 'the command line'}`, async () => {
      await change();
      const { data } = (await operator.call('GET', `/audit?action=${action}&actor=${via}&limit=1`)).body;
      const [entry] = data as readonly Entry[];
      expect(entry).to.include({ action });
      expect(entry?.actor.via).to.equal(via);
      expect(entry?.actor.user_id).to.be.a('string').and.not.equal('');
    });

  it('has an entry for each key that users make, rotate or delete themselves, under their own names', async () => {
    const { gateway } = operator;
    const send = async (method: string, path: string, body: object) => {
      const response = await fetch(`${gateway.url}/api/core/api_keys${path}`, {
        method,
        headers: { authorization: `Bearer ${signShared(SECRET, { sub: 'self' })}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const reported = (await response.json()) as { api_key?: string; api_key_info: { id: string } };
      if (reported.api_key !== undefined) secrets.push(reported.api_key);
      return reported.api_key_info.id;
    };
    const id = await send('POST', '/create', {});
    await send('POST', '/rotate', { id });
    await send('DELETE', '', { id });
    await send('DELETE', '', { id });
    const { data } = (await operator.call('GET', '/audit?actor=self')).body;
    const entries = (data as readonly Entry[]).map(({ action, subject }) => `${action} ${subject}`);
    expect(entries).to.deep.equal([`key.revoke tg_${id}`, `key.rotate tg_${id}`, `key.create tg_${id}`]);
  });

  it('is read in pages of any size, newest first, each entry once', async () => {
    const whole = (await operator.call('GET', '/audit?limit=1000')).body.data as readonly Entry[];
    expect(whole.length).to.be.greaterThan(CHANGES.length);
    const paged: Entry[] = [];
    for (let after = ''; ; ) {
      const { body } = await operator.call('GET', `/audit?limit=7${after && `&after=${after}`}`);
      paged.push(...body.data);
      if (!body.has_more) break;
      after = body.next;
    }
    expect(paged.map(({ id }) => id)).to.deep.equal(whole.map(({ id }) => id));
    const listed = await operator.gateway.command<{ data: readonly Entry[] }>('audit', '--limit', '1000');
    expect(listed.data.map(({ id }) => id)).to.deep.equal(whole.map(({ id }) => id));
    const [newest] = whole;
    const later = await operator.call(
      'GET',
      `/audit?from=${encodeURIComponent(new Date(Date.now() + 1000).toISOString())}`,
    );
    expect(later.body.data).to.deep.equal([]);
    const bySubject = await operator.call('GET', `/audit?subject=${encodeURIComponent(newest?.subject ?? '')}`);
    expect(bySubject.body.data[0].id).to.equal(newest?.id);
  });

  it('refuses filters that are not valid', async () => {
    for (const query of [
      'from=soon',
      'from=2026-13-01',
      'to=2026-01-01&from=2026-02-01',
      'limit=1e9',
      'after=nope',
      'nope=1',
      'subject=',
      'from=2026-01-01T00:00:00',
    ])
      expect((await operator.call('GET', `/audit?${query}`)).body.error?.code, query).to.equal('invalid_request');
  });

  it('has no route that changes it', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect((await operator.call(method, '/audit')).status).to.equal(405);
  });

  it('contains no secret, nor does any list of the admin API or the log', async () => {
    const shown = await Promise.all(
      ['/audit?limit=1000', '/keys?limit=1000', '/accounts', '/plans', '/users/bea', '/accounts/ann'].map(
        async (path) => JSON.stringify((await operator.call('GET', path)).body),
      ),
    );
    const hashes = (await operator.call('GET', '/keys?limit=1000')).body.data.map(
      (key: { hashed_key: string }) => key.hashed_key,
    );
    const text = `${shown.join('\n')}\n${operator.gateway.logText()}`;
    for (const secret of secrets) expect(text).not.to.include(secret.slice('tg_AAAAAAAAAAAA_'.length));
    for (const hash of hashes) expect(shown[0]).not.to.include(hash);
  });

  it('is protected by a limit of six hundred requests a minute per operator @slow', async () => {
    const own = (await operator.call('POST', '/keys', { user_id: 'busy', role: 'admin' })).body.api_key;
    const send = async () => {
      const response = await operator.gateway.get('/api/core/admin/plans', { authorization: `Bearer ${own}` });
      return {
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as { error?: object },
      };
    };
    const all = await Promise.all(Array.from({ length: 610 }, send));
    expect(all.filter(({ status }) => status === 200)).to.have.lengthOf(600);
    const refused = all.find(({ status }) => status === 429);
    expect(refused?.body.error).to.include({ code: 'rate_limited', type: 'rate_limit_error' });
    expect(Number(refused?.headers.get('retry-after'))).to.be.within(1, 60);
    // Another operator is not limited.
    expect((await operator.call('GET', '/plans')).status).to.equal(200);
  });
});
