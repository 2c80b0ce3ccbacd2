import { expect } from 'chai';
import { bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../../../support/identity/openid-people.ts';
import { freePort } from '../../../support/processes/server-process.ts';

const ADMIN = '/api/core/admin';
const PEOPLE = { ann: { roles: 'ops admin', realm: { access: { roles: ['ops'] } } } };

describe('signing in as each kind of client of a real OpenID provider', () => {
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let port: number;
  let origin: string;

  const start = async (config: object, bareIdTokens = false): Promise<void> => {
    people = await startOpenIdPeople({
      ...{ people: PEOPLE, bareIdTokens },
      redirectUris: [`${origin}${ADMIN}/callback`, `https://127.0.0.1:${port}${ADMIN}/callback`],
    });
    people.person = 'ann';
    const openid = { issuer: people.issuer, publicUrl: origin, ...config };
    gateway = await startGateway({
      server: { port, trustProxy: 1 },
      store: 'memory:',
      auth: { 'api-key': {}, openid },
    });
  };
  const signIn = async () => {
    const visited = await openBrowser().visit(`${origin}${ADMIN}/login`);
    return { status: visited.status, text: visited.text, ...(visited.status === 200 && JSON.parse(visited.text)) };
  };

  beforeEach(async () => {
    port = await freePort();
    origin = `http://127.0.0.1:${port}`;
  });
  afterEach(async () => {
    await gateway.stop();
    await people.stop();
  });

  it('works with a secret that goes into the form', async () => {
    // The provider accepts both methods; this client accepts one.
    await start({ clientId: 'posting', clientSecret: CLIENT_SECRET, clientAuth: 'form' });
    expect(await signIn()).to.include({ status: 200, user_id: 'ann' });
  });

  it('works without a secret, with PKCE only', async () => {
    await start({ clientId: 'public' });
    expect(await signIn()).to.deep.include({ status: 200, user_id: 'ann', roles: ['admin'] });
  });

  it('finds roles at the userinfo endpoint if the ID token has none', async () => {
    await start({ clientId: 'gateway', clientSecret: CLIENT_SECRET }, true);
    expect(await signIn()).to.deep.include({ status: 200, roles: ['admin'] });
    expect(people.requests).to.include('GET /me');
  });

  it('finds roles inside a claim, and puts the prefix before the user', async () => {
    const roles = { roleClaims: ['realm.access.roles'], adminRoles: ['root', 'ops'], userPrefix: 'idp:' };
    await start({ clientId: 'gateway', clientSecret: CLIENT_SECRET, ...roles });
    expect(await signIn()).to.deep.include({ status: 200, user_id: 'idp:ann', roles: ['ops'] });
  });

  it('distinguishes an operator’s error from a person’s if the secret is wrong', async () => {
    await start({ clientId: 'gateway', clientSecret: 'another secret' });
    const { status, text } = await signIn();
    expect(status).to.equal(503);
    expect(text).to.include('rejected this gateway as a client');
    expect(gateway.logText()).to.include('invalid_client').and.not.to.include('another secret');
  });

  it('fails with one error if the provider becomes unavailable', async () => {
    await start({ clientId: 'gateway', clientSecret: CLIENT_SECRET });
    const browser = openBrowser();
    const { url } = await browser.visit(`${origin}${ADMIN}/login`, ({ pathname }) => pathname.endsWith('/callback'));
    await people.goAway();
    const response = await browser.send(url.href);
    expect([response.status, (await bodyOf(response)).error.code]).to.deep.equal([503, 'store_unavailable']);
    people.stop = async () => undefined;
  });

  it('sets Secure cookies with the prefix __Host- if browsers use https, through a proxy', async () => {
    await start({ clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: `https://127.0.0.1:${port}` });
    const browser = openBrowser();
    const { url } = await browser.visit(`${origin}${ADMIN}/login`, ({ pathname }) => pathname.endsWith('/callback'));
    expect(url.protocol).to.equal('https:');
    // The proxy in front terminates TLS.
    const visited = await browser.visit(url.href.replace('https:', 'http:'));
    expect(visited.status).to.equal(200);
    for (const header of browser.set.filter((each) => each.includes('tollgate-')))
      expect(header).to.match(/^__Host-tollgate-(login|session)=.*; Path=\/; Secure; HttpOnly; SameSite=Lax/);
    const cookie = browser.cookies(`${origin}/`);
    const chat = await fetch(`${origin}/v1/models`, { headers: { cookie } });
    expect(chat.status).to.equal(401);
    const from = (site: string) =>
      fetch(`${origin}${ADMIN}/users/x/block`, { method: 'POST', headers: { cookie, origin: site } });
    expect((await from(origin)).status, 'plain http is another origin').to.equal(403);
    expect((await from(`https://127.0.0.1:${port}`)).status).to.equal(200);
  });
});
