import { expect } from 'chai';
import { type Browser, bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../../../support/identity/openid-people.ts';
import { freePort } from '../../../support/processes/server-process.ts';
import { eventually } from '../../../support/wait.ts';

const ADMIN = '/api/core/admin';

interface Entry {
  readonly action: string;
  readonly actor: object;
}

interface Refused extends Entry {
  readonly subject: string;
  readonly after: object;
}

const PEOPLE = {
  ann: { roles: ['dev', 'operator'], name: 'Ann Arbor', email: 'ann@acme.example' },
  bob: { roles: ['dev'] },
  dan: { roles: ['operator'] },
  cleo: {},
};

describe('signing in with a browser at a real OpenID provider', () => {
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let browser: Browser;
  let origin: string;

  const openid = (more: object = {}) => ({
    ...{ issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin },
    adminRoles: ['operator'],
    ...more,
  });
  const start = (port: number, more: object = {}): Promise<TestGateway> =>
    startGateway({
      server: { port, drainTimeout: '2s', trustProxy: 1 },
      auth: { 'api-key': { bootstrap: true }, openid: openid(more) },
    });

  before(async () => {
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    people = await startOpenIdPeople({ people: PEOPLE, redirectUris: [`${origin}${ADMIN}/callback`] });
    gateway = await start(port);
  });
  after(async () => {
    await gateway.stop();
    await people.stop();
  });
  beforeEach(() => {
    people.person = 'ann';
    browser = openBrowser();
  });

  const signIn = (returnTo?: string, by = browser) =>
    by.visit(`${origin}${ADMIN}/login${returnTo === undefined ? '' : `?return_to=${encodeURIComponent(returnTo)}`}`);
  const stopAtCallback = (by: Browser) =>
    by.visit(`${origin}${ADMIN}/login`, ({ pathname }) => pathname.endsWith('/callback'));
  const session = async (by = browser) => {
    const response = await by.send(`${origin}${ADMIN}/session`);
    return { status: response.status, body: await bodyOf(response) };
  };
  const idOf = (by = browser) => /tollgate-session=([^;]+)/.exec(by.cookies(`${origin}${ADMIN}/`))?.[1];

  it('redirects there, back, and to the session, with identity, role and expiry', async () => {
    const { status, text, trail } = await signIn();
    expect(status).to.equal(200);
    expect(trail.map(({ origin: at }) => at)).to.include(people.issuer);
    const body = JSON.parse(text);
    expect(body).to.include({ object: 'session', credential: 'session', user_id: 'ann', name: 'Ann Arbor' });
    expect(body.roles).to.deep.equal(['operator']);
    expect(Date.parse(body.ends_at) - Date.parse(body.started_at)).to.equal(8 * 3_600_000);
    expect(Date.parse(body.idle_at)).to.be.below(Date.parse(body.ends_at));
  });

  it('sends a new code challenge, state and nonce each time', async () => {
    const requests = await Promise.all(
      [1, 2].map(async () => {
        const { url } = await openBrowser().visit(`${origin}${ADMIN}/login`, ({ host }) =>
          people.issuer.includes(host),
        );
        return Object.fromEntries(url.searchParams);
      }),
    );
    const [one = {}, two = {}] = requests;
    expect(one).to.include({ response_type: 'code', client_id: 'gateway', code_challenge_method: 'S256' });
    expect(one['scope']).to.equal('openid profile email');
    expect(one['redirect_uri']).to.equal(`${origin}${ADMIN}/callback`);
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(one[name]).to.match(/^[\w-]{43}$/);
      expect(one[name]).not.to.equal(two[name]);
    }
  });

  it('redirects to the requested path', async () => {
    const { url } = await signIn('/livez?from=login');
    expect(url.href).to.equal(`${origin}/livez?from=login`);
  });

  it('refuses to lead anywhere else', async () => {
    const others = ['//evil.example', 'https://evil.example', '/\\evil.example', '/a//b', '/%2e%2e//x', 'console', ''];
    const statuses = await Promise.all(others.map(async (path) => (await signIn(path, openBrowser())).status));
    expect(statuses).to.deep.equal(others.map(() => 400));
  });

  it('sets a session cookie that scripts and other sites do not get', async () => {
    await signIn();
    const cookie = browser.set.findLast((header) => header.startsWith('tollgate-session='));
    expect(cookie).to.match(/^tollgate-session=[\w-]{43}; /);
    expect(cookie).to.include('HttpOnly').and.to.include('SameSite=Lax').and.to.include('Path=/api/core/admin');
    expect(browser.cookies(`${origin}/v1/models`)).not.to.include('tollgate-session');
  });

  it('lets an operator use the admin API, which is audited as the console', async () => {
    await signIn();
    const headers = { origin, 'content-type': 'application/json' };
    const blocked = await browser.send(`${origin}${ADMIN}/users/zoe/block`, { method: 'POST', headers, body: '{}' });
    expect(blocked.status).to.equal(200);
    const log = await bodyOf(await browser.send(`${origin}${ADMIN}/audit?subject=zoe`));
    expect(log.data[0].actor).to.deep.include({ via: 'console', user_id: 'ann', key_id: null });
  });

  it('is no credential for anything but the admin API', async () => {
    await signIn();
    const cookie = browser.cookies(`${origin}${ADMIN}/`);
    const headers = { cookie, 'content-type': 'application/json', origin };
    const body = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] });
    for (const [method, path] of [
      ['POST', '/v1/chat/completions'],
      ['GET', '/v1/models'],
      ['GET', '/api/core/balance'],
      ['GET', '/api/core/api_keys'],
    ] as const) {
      const response = await fetch(origin + path, { method, headers, ...(method === 'POST' && { body }) });
      expect([path, response.status].join(' ')).to.match(/ (401|503)$/);
    }
  });

  it('refuses changes from other sites’ pages', async () => {
    await signIn();
    const hostile: Record<string, string>[] = [
      {},
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin },
      { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    ];
    for (const headers of hostile) {
      for (const path of ['/users/yve/block', '/logout']) {
        const response = await browser.send(`${origin}${ADMIN}${path}`, { method: 'POST', headers });
        expect(response.status, JSON.stringify([path, headers])).to.equal(403);
        expect((await bodyOf(response)).error.code).to.equal('permission_denied');
      }
    }
    expect((await session()).status).to.equal(200);
    const fine = await browser.send(`${origin}${ADMIN}/users/yve/block`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    });
    expect(fine.status).to.equal(200);
  });

  it('ends by signing out, also for who copied the cookie', async () => {
    await signIn();
    const copied = browser.cookies(`${origin}${ADMIN}/`);
    const out = await browser.send(`${origin}${ADMIN}/logout`, { method: 'POST', headers: { origin } });
    expect(await bodyOf(out)).to.deep.equal({ object: 'session', ended: true });
    expect(browser.cookies(`${origin}${ADMIN}/`)).not.to.include('tollgate-session');
    const again = await fetch(`${origin}${ADMIN}/session`, { headers: { cookie: copied } });
    expect(again.status).to.equal(401);
    expect((await bodyOf(again)).error.message).to.include('Sign in again');
    const twice = await browser.send(`${origin}${ADMIN}/logout`, { method: 'POST', headers: { origin } });
    expect(await bodyOf(twice)).to.deep.equal({ object: 'session', ended: false });
  });

  it('is in the audit log, with its end', async () => {
    await signIn();
    await browser.send(`${origin}${ADMIN}/logout`, { method: 'POST', headers: { origin } });
    const { data } = await gateway.command<{ data: readonly Entry[] }>('audit', '--action', 'session');
    expect(data.slice(0, 2).map(({ action }) => action)).to.deep.equal(['session.end', 'session.begin']);
    expect(data[0]?.actor).to.deep.include({ via: 'console', user_id: 'ann' });
  });

  it('creates a new id each time, and ends the browser’s previous session', async () => {
    const planted = 'A'.repeat(43);
    browser.plant(`${origin}/`, `tollgate-session=${planted}; Path=/api/core/admin`);
    await signIn();
    const first = idOf();
    expect(first).not.to.equal(planted);
    await signIn();
    expect(idOf()).not.to.equal(first);
    const cookie = `tollgate-session=${first}`;
    expect((await fetch(`${origin}${ADMIN}/session`, { headers: { cookie } })).status).to.equal(401);
  });

  it('refuses two different session cookies', async () => {
    const cookie = `tollgate-session=${'A'.repeat(43)}; tollgate-session=${'B'.repeat(43)}`;
    const response = await fetch(`${origin}${ADMIN}/session`, { headers: { cookie } });
    expect((await bodyOf(response)).error.code).to.equal('ambiguous_credentials');
  });

  it('explains a missing role to a person in plain text, and to a program as an error; the audit log has the identity (E47)', async () => {
    for (const person of ['bob', 'cleo']) {
      people.person = person;
      const visitor = openBrowser();
      const { status, headers, text } = await signIn(undefined, visitor);
      expect(status).to.equal(403);
      expect(headers.get('content-type')).to.include('text/html');
      expect(headers.get('content-security-policy')).to.include("default-src 'none'");
      expect(text).to.include('has no operator role for this gateway');
      expect(idOf(visitor)).to.equal(undefined);
    }
    const program = openBrowser();
    const { url } = await stopAtCallback(program);
    const response = await program.send(url.href, { headers: { accept: 'application/json' } });
    expect([response.status, (await bodyOf(response)).error.code]).to.deep.equal([403, 'permission_denied']);
    const entries = await eventually(async () => {
      const { data } = await gateway.command<{ data: readonly Refused[] }>('audit', '--action', 'session.refused');
      expect(data).to.have.lengthOf(2);
      return data;
    });
    expect(entries.map(({ subject, after }) => [subject, after]).sort()).to.deep.equal(
      ['bob', 'cleo'].map((person) => [person, { code: 'permission_denied' }]),
    );
    for (const { actor } of entries)
      expect(actor)
        .to.include({ via: 'console' })
        .and.have.property('address')
        .that.matches(/^\d+\./);
  });

  it('informs a person who refused at the provider', async () => {
    people.person = undefined;
    const { status, text } = await signIn();
    expect(status).to.equal(403);
    expect(text).to.include('rejected the sign-in');
  });

  it('refuses a user whom an operator blocked', async () => {
    await gateway.command('users', 'block', 'ann');
    try {
      expect((await signIn(undefined, openBrowser())).status).to.equal(403);
    } finally {
      await gateway.command('users', 'unblock', 'ann');
    }
  });

  it('refuses the callback in another browser, so that no person is signed in as another', async () => {
    const attacker = openBrowser();
    const { url } = await stopAtCallback(attacker);
    // With and without a sign-in of the victim in progress.
    await stopAtCallback(browser);
    for (const victim of [browser, openBrowser()]) {
      const { status, text } = await victim.visit(url);
      expect(status).to.equal(400);
      expect(text).to.include('was started in another browser');
      expect(idOf(victim)).to.equal(undefined);
    }
  });

  it('accepts the callback once', async () => {
    const { url } = await stopAtCallback(browser);
    const cookie = browser.cookies(url.href);
    const codes = await Promise.all(
      [1, 2, 3, 4].map(async () => (await fetch(url, { headers: { cookie }, redirect: 'manual' })).status),
    );
    expect(codes.toSorted()).to.deep.equal([302, 400, 400, 400]);
    expect((await fetch(url, { headers: { cookie }, redirect: 'manual' })).status).to.equal(400);
  });

  it('refuses the code of another sign-in', async () => {
    const other = openBrowser();
    const stolen = (await stopAtCallback(other)).url.searchParams.get('code') ?? '';
    const { url } = await stopAtCallback(browser);
    url.searchParams.set('code', stolen);
    const { status, text } = await browser.visit(url);
    expect([status, text.includes('is invalid or was already used')]).to.deep.equal([401, true]);
  });

  it('refuses a changed state, a missing one, a repeated one, and the name of another issuer', async () => {
    const change: Record<string, (url: URL) => void> = {
      400: ({ searchParams }) => searchParams.set('state', 'A'.repeat(43)),
      '400 missing': ({ searchParams }) => searchParams.delete('state'),
      '400 twice': ({ searchParams }) => searchParams.append('state', 'x'),
      '401 issuer': ({ searchParams }) => searchParams.set('iss', 'https://evil.example'),
      '401 no issuer': ({ searchParams }) => searchParams.delete('iss'),
      '401 no code': ({ searchParams }) => searchParams.delete('code'),
    };
    for (const [name, alter] of Object.entries(change)) {
      const visitor = openBrowser();
      const { url } = await stopAtCallback(visitor);
      alter(url);
      expect((await visitor.visit(url)).status, name).to.equal(Number(name.slice(0, 3)));
      expect(idOf(visitor)).to.equal(undefined);
    }
  });

  it('is over for a user whom an operator blocks meanwhile', async () => {
    people.person = 'dan';
    await signIn();
    const headers = { origin, 'content-type': 'application/json' };
    expect((await session()).status).to.equal(200);
    await browser.send(`${origin}${ADMIN}/users/dan/block`, { method: 'POST', headers, body: '{}' });
    expect((await session()).status).to.equal(403);
  });

  describe('as time goes by', () => {
    const { now } = Date;
    let laterMs = 0;
    beforeEach(() => {
      laterMs = 0;
      Date.now = () => now() + laterMs;
    });
    afterEach(() => {
      Date.now = now;
    });

    it('gives the browser a new id, and the previous one soon expires', async () => {
      await signIn();
      const first = idOf();
      expect((await session()).status).to.equal(200);
      expect(idOf()).to.equal(first);
      laterMs = 16 * 60_000;
      expect((await session()).status).to.equal(200);
      expect(idOf()).not.to.equal(first);
      const former = () => fetch(`${origin}${ADMIN}/session`, { headers: { cookie: `tollgate-session=${first}` } });
      expect((await former()).status, 'requests under way').to.equal(200);
      laterMs += 11_000;
      expect((await former()).status).to.equal(401);
      expect((await session()).status).to.equal(200);
    });

    it('gives a new id with an error too, and ends without requests', async () => {
      await signIn();
      const first = idOf();
      laterMs = 20 * 60_000;
      expect((await browser.send(`${origin}${ADMIN}/keys/none`)).status).to.equal(404);
      expect(idOf()).not.to.equal(first);
      laterMs += 31 * 60_000;
      const { status, body } = await session();
      expect([status, body.error.code]).to.deep.equal([401, 'invalid_token']);
    });

    it('expires an unfinished sign-in after ten minutes', async () => {
      const { url } = await stopAtCallback(browser);
      laterMs = 11 * 60_000;
      expect((await browser.visit(url)).status).to.equal(400);
    });
  });

  it('leaves neither the session, nor the code, nor the client secret in the log', async () => {
    const { trail } = await signIn();
    const code = trail.findLast(({ pathname }) => pathname.endsWith('/callback'))?.searchParams.get('code') ?? 'none';
    const log = gateway.logText();
    for (const secret of [idOf() ?? 'none', code, CLIENT_SECRET]) expect(log).not.to.include(secret);
  });

  it('prefers a key sent together with the cookie', async () => {
    await signIn();
    const response = await browser.send(`${origin}${ADMIN}/session`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    expect(response.status).to.equal(403);
  });

  it('is in the OpenAPI document', async () => {
    const document = await bodyOf(await gateway.get('/openapi.json'));
    expect(document.components.securitySchemes.session).to.include({ in: 'cookie', name: 'tollgate-session' });
    expect(document.paths[`${ADMIN}/keys`].get.security).to.deep.include({ session: ['keys:read'] });
    expect(document.paths[`${ADMIN}/login`].get.parameters[0].name).to.equal('return_to');
    expect(document.paths['/v1/chat/completions'].post.security).not.to.deep.include({ session: [] });
  });
});
