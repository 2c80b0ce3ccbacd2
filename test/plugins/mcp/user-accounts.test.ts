import { expect } from 'chai';
import { readServers } from '../../../plugins/mcp/config-schema.ts';
import { createSealer, TokenBook, type UserTokens } from '../../../plugins/mcp/token-book.ts';
import { gate } from '../../support/agents/scripted-model.ts';
import { startAccounts } from './account-rig.ts';
import { textOf } from './mcp-rig.ts';

describe('accounts of users at an MCP server', () => {
  let rig: Awaited<ReturnType<typeof startAccounts>>;
  before(async () => {
    rig = await startAccounts(['ann', 'bob', 'cy', 'dan', 'eve']);
  });
  after(() => rig?.stop());

  it('are requested for with the address of the link, and the server is missing in the list of all', async () => {
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

  const ends: Readonly<Record<string, (user: string) => Promise<unknown>>> = {
    'its user disconnects it': (user) =>
      fetch(`${rig.gateway.url}/mcp/s/connect`, { method: 'DELETE', headers: rig.as(user) }),
    'an operator revokes it': async (user) => {
      const make = ['keys', 'create', '--user', 'op', '--admin'];
      const { api_key: admin } = await rig.gateway.command<{ api_key: string }>(...make);
      const url = `${rig.gateway.url}/api/core/admin/mcp/s/connections/${user}`;
      return fetch(url, { method: 'DELETE', headers: { authorization: `Bearer ${admin}` } });
    },
    'its user is erased': (user) => rig.gateway.command('users', 'erase', user, '--yes'),
  };
  /** Connections that an erasure still finds. */
  const left = async (user: string): Promise<number> =>
    (await rig.gateway.command<{ erased: { connections: number } }>('users', 'erase', user, '--yes')).erased
      .connections;

  for (const [index, [what, end]] of Object.entries(ends).entries()) {
    it(`are not stored again by a renewal that is running when ${what}`, async () => {
      const user = `renewing-${index}`;
      await rig.addUser(user);
      rig.accounts.expiresIn = 1;
      await rig.connect(user);
      rig.accounts.expiresIn = 3600;
      const [requested, held] = [gate(), gate()];
      rig.accounts.onToken = () => {
        requested.open();
        return held.opened;
      };
      const running = rig.whoami(user);
      await requested.opened;
      await end(user);
      rig.accounts.onToken = undefined;
      const before = rig.accounts.revoked.length;
      held.open();
      const { error } = await running;
      expect(error).to.include({ code: 403 });
      expect(error?.message).to.include('have not connected an account').and.include('POST /mcp/s/connect');
      expect(rig.accounts.revoked.slice(before), 'the renewed token').to.have.length(1);
      expect(await left(user)).to.equal(0);
    });

    it(`are not stored for a connection that is being made when ${what}`, async () => {
      const user = `connecting-${index}`;
      await rig.addUser(user);
      const { cookie, location } = await rig.open(user);
      const [requested, held] = [gate(), gate()];
      rig.accounts.onToken = () => {
        requested.open();
        return held.opened;
      };
      const running = rig.comeBack(rig.accounts.approve(location, user), cookie);
      await requested.opened;
      await end(user);
      rig.accounts.onToken = undefined;
      held.open();
      expect(await (await running).text()).to.include('Not connected');
      expect(await left(user)).to.equal(0);
    });
  }

  it('have no token in the log', async () => {
    expect(rig.gateway.logText()).to.not.match(/at-(?:ann|bob|dan|eve)-/);
  });
});

/** Runs two pieces of work on stored tokens, whose steps in the store alternate as `order` says. Returns what remains. */
async function interleave(order: string, prepare: (book: TokenBook) => Promise<string>, works: readonly Work[]) {
  const documents = new Map<string, unknown>();
  const sets = new Map<string, Set<string>>();
  const membersOf = (set: string): Set<string> => sets.get(set) ?? sets.set(set, new Set()).get(set) ?? new Set();
  const waiting: (() => void)[][] = works.map(() => []);
  /** API whose steps wait for their turn. Without `lane` they run at once. */
  const apiOf = (lane?: number) => {
    const step = async <T>(run: () => T): Promise<T> => {
      if (lane !== undefined) await new Promise<void>((resolve) => waiting[lane]?.push(resolve));
      return run();
    };
    return {
      keyv: () => ({
        get: (key: string) => step(() => documents.get(key)),
        set: (key: string, value: unknown) => step(() => documents.set(key, value) && true),
        delete: (key: string) => step(() => documents.delete(key)),
      }),
      stores: {
        sets: {
          add: (set: string, member: string) => step(() => void membersOf(set).add(member)),
          remove: (set: string, member: string) => step(() => membersOf(set).delete(member)),
          list: (set: string, { after = '' }: { after?: string }) =>
            step(() => [...membersOf(set)].filter((member) => member > after).sort()),
        },
      },
    } as unknown as ConstructorParameters<typeof TokenBook>[0];
  };
  const version = await prepare(new TokenBook(apiOf(), SECRET));
  let running = works.length;
  const ends = works.map((work, lane) =>
    work(new TokenBook(apiOf(lane), SECRET), version).finally(() => (running -= 1)),
  );
  for (let at = 0; running > 0; at += 1) {
    await new Promise(setImmediate);
    const lane = Number(order[at % order.length]);
    (waiting[lane]?.shift() ?? waiting[1 - lane]?.shift())?.();
  }
  await Promise.all(ends);
  return { documents: documents.size, members: [...sets.values()].flatMap((members) => [...members]) };
}

type Work = (book: TokenBook, version: string) => Promise<unknown>;

const SECRET = 'a key of thirty-two characters or more';

/** Turns of two pieces of work: all orders of four steps, then alternating ones, repeated. */
const ORDERS = Array.from({ length: 256 }, (_, number) => number.toString(2).padStart(8, '0'));

describe('the stored tokens of a user', () => {
  const tokens = (access: string): UserTokens => ({ access, client: { client_id: 'c' } });
  const connect = async (book: TokenBook): Promise<string> => {
    await book.save('ann', 's', await book.reserve('ann', 's'), tokens('a'));
    return (await book.find('ann', 's'))?.version ?? '';
  };
  const NOTHING = { documents: 0, members: [] };

  it('are gone after a revocation or erasure, whatever its order with a renewal or a new connection', async () => {
    const ends: readonly Work[] = [(book) => book.remove('ann', 's'), (book) => book.erase('ann')];
    const renew: Work = (book, version) => book.renew('ann', 's', version, tokens('b'));
    const replace: Work = (book, version) => book.save('ann', 's', version, tokens('b'));
    for (const end of ends)
      for (const order of ORDERS) {
        expect(await interleave(order, connect, [renew, end]), `renewal, ${order}`).to.deep.equal(NOTHING);
        const reserve = async (book: TokenBook) => (await connect(book)) && book.reserve('ann', 's');
        expect(await interleave(order, reserve, [replace, end]), `connection, ${order}`).to.deep.equal(NOTHING);
      }
  });

  it('are those of one of two renewals at the same time, and found all the while', async () => {
    for (const order of ORDERS) {
      const found: unknown[] = [];
      const renew: Work = (book, version) => book.renew('ann', 's', version, tokens('b'));
      const find: Work = async (book) => found.push((await book.find('ann', 's'))?.tokens.access);
      await interleave(order, connect, [renew, find]);
      expect(found, order).to.be.deep.oneOf([['a'], ['b']]);
      const { documents } = await interleave(order, connect, [renew, renew]);
      expect(documents, order).to.equal(1);
    }
  });

  const sealer = createSealer(SECRET);
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
