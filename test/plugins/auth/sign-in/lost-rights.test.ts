import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../../../config/load-config.ts';
import { connect } from '../../../../egress/http-client.ts';
import { KNOWN_MS } from '../../../../plugins/auth/sign-in/sign-ins.ts';
import { bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { decideOnProgram } from '../../../support/gateways/sign-in-rig.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../../../support/identity/openid-people.ts';
import { freePort } from '../../../support/processes/server-process.ts';

const ADMIN = '/api/core/admin';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Part of the configuration that tests change by a reload. */
interface Auth {
  readonly openid: Record<string, unknown>;
  readonly 'sign-in': Record<string, unknown>;
}

describe('what was derived from a sign-in of a person (G63)', () => {
  const claims: Record<string, { roles: readonly string[] }> = {};
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let origin: string;

  const { now } = Date;
  let laterMs = 0;

  before(async () => {
    Date.now = () => now() + laterMs;
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    people = await startOpenIdPeople({ people: claims, redirectUris: [`${origin}${ADMIN}/callback`] });
    const openid = { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin };
    gateway = await startGateway({
      server: { port, drainTimeout: '2s', trustProxy: 1 },
      plans: { small: { models: ['echo/echo'] }, large: {} },
      defaultPlan: 'small',
      providers: { echo: {}, second: { plugin: 'echo' } },
      auth: {
        'api-key': { bootstrap: true },
        openid: { ...openid, roles: { ops: 'admin', watchers: 'viewer' } },
        'sign-in': { publicUrl: origin, allow: ['dev', 'lead'], plans: { lead: 'large' } },
      },
    });
  });
  after(async () => {
    Date.now = now;
    await gateway.stop();
    await people.stop();
  });

  /** Signs in as a person with these roles, at any browser; returns the session's cookie. */
  const signIn = async (person: string, roles: readonly string[]): Promise<string> => {
    claims[person] = { roles };
    people.person = person;
    const browser = openBrowser();
    await browser.visit(`${origin}${ADMIN}/login`);
    return browser.cookies(`${origin}${ADMIN}/`);
  };
  const signInProgram = async (person: string, roles: readonly string[]) => {
    claims[person] = { roles };
    people.person = person;
    const post = async (route: string, fields: Record<string, string>) =>
      bodyOf(await fetch(origin + route, { method: 'POST', body: new URLSearchParams(fields) }));
    const begun = await post('/oauth/device_authorization', { client_id: 'codex' });
    await decideOnProgram(begun.verification_uri_complete);
    const tokens = await post('/oauth/token', { grant_type: DEVICE_GRANT, device_code: begun.device_code });
    return {
      chat: async (model: string): Promise<number> => {
        const body = { model, messages: [{ role: 'user', content: 'Hi' }] };
        const headers = { authorization: `Bearer ${tokens.access_token}` };
        return (await gateway.post('/v1/chat/completions', body, headers)).status;
      },
      renew: async () => post('/oauth/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }),
    };
  };
  const get = async (route: string, cookie: string) =>
    (await fetch(origin + ADMIN + route, { headers: { cookie } })).status;
  /** Status of a change that viewers may not make. */
  const change = async (cookie: string) =>
    (await fetch(`${origin}${ADMIN}/users/zoe/unblock`, { method: 'POST', headers: { cookie, origin } })).status;
  const reload = async (alter: (auth: Auth) => object): Promise<void> => {
    const configPath = path.join(gateway.folder, 'tollgate.config.json');
    const config = JSON.parse(await readFile(configPath, 'utf8')) as { auth: Auth };
    await writeFile(configPath, JSON.stringify({ ...config, auth: { ...config.auth, ...alter(config.auth) } }));
    await gateway.use(await loadConfig({ cwd: gateway.folder, env: {}, configPath, connect }));
  };

  it('loses a role in all sessions when the person signs in without it', async () => {
    const cookie = await signIn('ann', ['ops']);
    expect(await change(cookie)).to.equal(200);
    await signIn('ann', ['watchers']);
    expect([await change(cookie), await get('/targets', cookie)]).to.deep.equal([403, 200]);
    await signIn('ann', ['dev']);
    expect(await get('/targets', cookie)).to.equal(403);
    await signIn('ann', ['ops']);
    expect(await change(cookie)).to.equal(200);
  });

  it('loses a plan and the admission of programs when the person signs in without the group', async () => {
    const program = await signInProgram('bob', ['lead']);
    expect(await program.chat('second/echo')).to.equal(200);
    await signIn('bob', ['dev']);
    laterMs += KNOWN_MS;
    expect(await program.chat('second/echo')).to.equal(403);
    expect(await program.chat('echo/echo')).to.equal(200);
    await signIn('bob', ['guest']);
    laterMs += KNOWN_MS;
    expect(await program.chat('echo/echo')).to.equal(403);
    expect((await program.renew()).error).to.equal('invalid_grant');
    await signIn('bob', ['dev']);
    expect((await program.renew()).token_type, 'a refusal does not use up the refresh token').to.equal('Bearer');
  });

  it('has the rights that the configuration grants now', async () => {
    const cookie = await signIn('cleo', ['ops']);
    const program = await signInProgram('dan', ['dev']);
    expect([await change(cookie), await program.chat('echo/echo')]).to.deep.equal([200, 200]);
    await reload(({ openid, 'sign-in': signInConfig }) => ({
      openid: { ...openid, roles: { ops: 'viewer' } },
      'sign-in': { ...signInConfig, allow: ['lead'] },
    }));
    expect([await change(cookie), await get('/targets', cookie)]).to.deep.equal([403, 200]);
    expect(await program.chat('echo/echo')).to.equal(403);
  });

  it('ends when the operator configures another client', async () => {
    await reload(({ 'sign-in': signInConfig }) => ({ 'sign-in': { ...signInConfig, allow: ['dev'] } }));
    const cookie = await signIn('eve', ['ops']);
    const program = await signInProgram('eve', ['ops', 'dev']);
    expect([await get('/targets', cookie), await program.chat('echo/echo')]).to.deep.equal([200, 200]);
    await reload(({ openid }) => ({ openid: { ...openid, clientId: 'posting' } }));
    laterMs += KNOWN_MS;
    expect(await get('/targets', cookie)).to.equal(401);
    expect(await program.chat('echo/echo')).to.equal(401);
  });
});
