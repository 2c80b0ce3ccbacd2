import { existsSync } from 'node:fs';
import { expect } from 'chai';
import { type Browser as Chromium, chromium } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { openBrowser } from '../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../support/identity/openid-people.ts';
import { freePort } from '../support/processes/server-process.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

describe('signed-in programs of people, in the console', function () {
  this.timeout(120_000);
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let chrome: Chromium;
  let origin: string;

  before(async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    await buildProgram();
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    people = await startOpenIdPeople({
      people: { ann: { roles: ['dev'] } },
      redirectUris: [`${origin}/api/core/admin/callback`],
    });
    people.person = 'ann';
    gateway = await startGateway({
      server: { port, drainTimeout: '2s' },
      auth: {
        'api-key': { bootstrap: true },
        openid: { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin },
        'sign-in': { publicUrl: origin, allow: ['dev'] },
      },
    });
    chrome = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  });
  after(async () => {
    await chrome?.close();
    await gateway?.stop();
    await people?.stop();
  });

  const send = async (where: string, fields: Record<string, string>, browser = openBrowser(), headers = {}) =>
    browser.send(`${origin}${where}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString(),
    });

  /**
   * Signs in a program, approved by ann. Returns a function that calls with its access token and returns the status.
   */
  const signIn = async (program: string): Promise<() => Promise<number>> => {
    const browser = openBrowser();
    const begun = (await (await send('/oauth/device_authorization', { surface: program })).json()) as {
      readonly device_code: string;
      readonly user_code: string;
      readonly verification_uri_complete: string;
    };
    const first = await browser.visit(begun.verification_uri_complete);
    const link = /class="button" href="([^"]+)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const { text } = await browser.visit(`${origin}${link}`);
    const proof = /name="proof" value="([\w-]+)"/.exec(text)?.[1] ?? '';
    const decided = { user_code: begun.user_code, proof, decision: 'approve' };
    expect((await send('/device', decided, browser, { origin })).status).to.equal(200);
    const grant = 'urn:ietf:params:oauth:grant-type:device_code';
    const token = await send('/oauth/token', { grant_type: grant, device_code: begun.device_code });
    const { access_token: credential } = (await token.json()) as { readonly access_token: string };
    return async () => (await gateway.get('/v1/models', { authorization: `Bearer ${credential}` })).status;
  };

  it('are listed with the person, and are signed out there', async () => {
    const worth = await signIn('claude_code');
    expect(await worth()).to.equal(200);
    const { url } = await gateway.command<{ url: string }>('console', '--user', 'root', '--url', origin);
    const page = await chrome.newPage();
    await page.goto(url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goto(`${origin}/console#/users?id=ann`);
    await page.getByText('claude_code').waitFor();
    await page.getByRole('button', { name: 'End the sign-in of claude_code' }).click();
    await page.getByRole('button', { name: 'End it' }).click();
    await page.getByText('No program is signed in.').waitFor();
    expect(await worth()).to.equal(401);
  });
});
