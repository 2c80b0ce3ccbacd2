import { expect } from 'chai';
import { readServers } from '../../../plugins/mcp/config-schema.ts';
import { createSealer } from '../../../plugins/mcp/token-book.ts';
import { startAccounts } from './account-rig.ts';
import { textOf } from './mcp-rig.ts';

describe('accounts of users at an MCP server', () => {
  let rig: Awaited<ReturnType<typeof startAccounts>>;
  before(async () => {
    rig = await startAccounts(['ann', 'bob', 'cy', 'dan', 'eve']);
  });
  after(() => rig?.stop());

  it('are asked for with the address of the link, and the server is missing in the list of all', async () => {
    const { error } = await rig.whoami('cy');
    expect(error?.code).to.equal(403);
    expect(error?.message).to.include('POST /mcp/s/connect');
    const { result } = await rig.list('cy');
    expect(result?.tools).to.deep.equal([]);
    expect(await rig.isConnected('cy')).to.equal(false);
    const chat = {
      model: 'echo/echo',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'mcp', server: 's' }],
    };
    expect(await (await rig.gateway.post('/v1/chat/completions', chat, rig.as('cy'))).text()).to.include(
      'POST /mcp/s/connect',
    );
  });

  it('are never mixed: each of two users calls with the own token, whatever the order', async () => {
    await rig.connect('ann');
    await rig.connect('bob');
    expect(rig.accounts.registrations, 'one client for all users').to.equal(1);
    const calls = Array.from({ length: 60 }, (_, at) => (at % 3 === 0 ? 'ann' : 'bob'));
    const got = await Promise.all(calls.map(async (user) => textOf(await rig.whoami(user))));
    expect(got).to.deep.equal(calls);
    const own = [...rig.accounts.tokens.keys()].map((token) => `Bearer ${token}`);
    expect(
      rig.accounts.sent.filter((header) => header !== undefined && !own.includes(header)),
      'no key of a caller',
    ).to.deep.equal([]);
  });

  it('are refused for a state that is forged, repeated, or from another browser', async () => {
    const { cookie, location } = await rig.open('cy');
    const back = rig.accounts.approve(location, 'mallory');
    const other = await rig.open('dan');
    for (const [url, sent] of [
      [back.replace(/state=[^&]+/, `state=${'A'.repeat(43)}`), cookie],
      [back, other.cookie],
      [back, ''],
    ] as const) {
      const response = await rig.comeBack(url, sent);
      expect(response.status).to.equal(400);
      expect(await response.text()).to.include('another browser');
    }
    expect(await rig.isConnected('cy')).to.equal(false);
    expect((await rig.comeBack(back, cookie)).status).to.equal(200);
    rig.accounts.approve(location, 'mallory');
    expect((await rig.comeBack(back, cookie)).status, 'a second time').to.equal(400);
  });

  it('are refused for a link that was used, and for a form of another page', async () => {
    const { url } = (await (await rig.gateway.post('/mcp/s/connect', undefined, rig.as('dan'))).json()) as {
      url: string;
    };
    const headers = { origin: 'https://attacker.example' };
    expect((await rig.anonymous(rig.local(url), { method: 'POST', headers })).status).to.equal(403);
    expect((await rig.anonymous(rig.local(url), { method: 'POST' })).status).to.equal(303);
    expect((await rig.anonymous(rig.local(url), { method: 'POST' })).status).to.equal(400);
    expect((await rig.anonymous(rig.local(url))).status).to.equal(400);
  });

  it('are refused from another issuer', async () => {
    const { cookie, location } = await rig.open('dan');
    rig.accounts.issuerInResponse = 'https://attacker.example';
    const response = await rig.comeBack(rig.accounts.approve(location, 'dan'), cookie);
    rig.accounts.issuerInResponse = undefined;
    expect(response.status).to.equal(503);
    expect(await rig.isConnected('dan')).to.equal(false);
  });

  it('are refused from an authorization server whose response is too large', async () => {
    const { cookie, location } = await rig.open('dan');
    rig.accounts.filling = 300_000;
    const response = await rig.comeBack(rig.accounts.approve(location, 'dan'), cookie);
    rig.accounts.filling = 0;
    expect(response.status).to.equal(503);
    expect(await rig.isConnected('dan')).to.equal(false);
  });

  it('are renewed when the token ends or the server rejects it, once for calls at the same time', async () => {
    rig.accounts.expiresIn = 1;
    await rig.connect('dan');
    rig.accounts.expiresIn = 3600;
    const before = rig.accounts.refreshes.size;
    const got = await Promise.all([rig.whoami('dan'), rig.whoami('dan'), rig.whoami('dan')]);
    expect(got.map(textOf)).to.deep.equal(['dan', 'dan', 'dan']);
    expect(rig.accounts.refreshes.size, 'a refresh token is valid once').to.equal(before);
    for (const [token, account] of rig.accounts.tokens) if (account === 'dan') rig.accounts.tokens.delete(token);
    expect(textOf(await rig.whoami('dan'))).to.equal('dan');
    rig.accounts.tokens.clear();
    rig.accounts.refreshes.clear();
    expect((await rig.whoami('dan')).error?.message).to.include('POST /mcp/s/connect');
    expect(await rig.isConnected('dan')).to.equal(false);
  });

  it('are revoked by their user, here and at the authorization server', async () => {
    await rig.connect('ann');
    expect(textOf(await rig.whoami('ann'))).to.equal('ann');
    const response = await fetch(`${rig.gateway.url}/mcp/s/connect`, { method: 'DELETE', headers: rig.as('ann') });
    expect(await response.json()).to.deep.equal({ server: 's', connected: false });
    expect(rig.accounts.revoked).to.have.length(1);
    expect((await rig.whoami('ann')).error?.code).to.equal(403);
  });

  it('are listed for operators, who connect their own and revoke those of others', async () => {
    await rig.connect('eve');
    const { api_key: admin } = await rig.gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'op',
      '--admin',
    );
    const admins = async (method: string, path: string) => {
      const response = await fetch(`${rig.gateway.url}/api/core/admin/mcp/s/connections${path}`, {
        method,
        headers: { authorization: `Bearer ${admin}` },
      });
      return (await response.json()) as { data: readonly object[]; url: string };
    };
    expect((await admins('GET', '')).data).to.deep.include({ user_id: 'eve' });
    expect((await admins('POST', '')).url).to.include('/mcp/link/');
    expect(await admins('DELETE', '/eve')).to.deep.equal({ user_id: 'eve', connected: false });
    expect((await admins('GET', '')).data).to.not.deep.include({ user_id: 'eve' });
    expect((await rig.whoami('eve')).error?.code).to.equal(403);
  });

  it('are erased with the user', async () => {
    await rig.connect('eve');
    const erased = JSON.stringify(await rig.gateway.command('users', 'erase', 'eve', '--yes'));
    expect(erased).to.include('connections');
    expect((await rig.whoami('eve')).error?.code ?? 401).to.be.oneOf([401, 403]);
  });

  it('have no token in the log', async () => {
    expect(rig.gateway.logText()).to.not.match(/at-(?:ann|bob|dan|eve)-/);
  });
});

describe('the stored tokens of a user', () => {
  const sealer = createSealer('a key of thirty-two characters or more');
  const sealed = sealer.seal(['tokens', 'ann', 's'], { access: 'secret-of-ann' });

  it('are encrypted, and unreadable for another user when they are moved in the store', () => {
    expect(Buffer.from(sealed.sealed, 'base64url').toString('latin1')).to.not.include('secret');
    expect(sealer.open(['tokens', 'ann', 's'], sealed)).to.deep.equal({ access: 'secret-of-ann' });
    for (const owner of [
      ['tokens', 'bob', 's'],
      ['tokens', 'ann', 'other'],
    ])
      expect(sealer.open(owner, sealed)).to.equal(undefined);
  });

  it('are unusable with another key, or when they were changed', () => {
    const other = createSealer('another key of thirty-two characters');
    expect(other.open(['tokens', 'ann', 's'], sealed)).to.equal(undefined);
    expect(
      sealer.open(['tokens', 'ann', 's'], {
        sealed: `${sealed.sealed.startsWith('A') ? 'B' : 'A'}${sealed.sealed.slice(1)}`,
      }),
    ).to.equal(undefined);
    expect(sealer.open(['tokens', 'ann', 's'], { sealed: '' })).to.equal(undefined);
  });
});

describe('the configuration of accounts', () => {
  const limits = { timeout: '60s', startTimeout: '30s', maxResult: '1mb', maxMemory: '1gb' };
  const oauth = { issuer: 'https://auth.example' };
  const read = (auth: object, rest: object = {}) =>
    readServers(
      { servers: { s: { url: 'https://x.example', auth, ...limits } }, ...rest } as unknown as Parameters<
        typeof readServers
      >[0],
      '/',
    );
  const all = { publicUrl: 'https://gateway.example', tokenKey: 'k'.repeat(32) };

  it('names what is missing, and refuses a key for all callers in addition to it', () => {
    expect(() => read({ oauth }, all)).to.not.throw();
    expect(() => read({ oauth })).to.throw('is missing, and the server "s" has "oauth"');
    expect(() => read({ oauth, value: 'x' }, all)).to.throw('has "value" and "oauth"');
    expect(() => read({})).to.throw('has neither "value" nor "oauth"');
    expect(() => read({ oauth: { ...oauth, clientSecret: 'x' } }, all)).to.throw('is set without "clientId"');
  });
});
