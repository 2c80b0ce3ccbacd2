import { type Browser, openBrowser } from '../clients/browser.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../identity/openid-people.ts';
import { freePort } from '../processes/server-process.ts';
import { startGateway, type TestGateway } from './gateway.ts';

/** Gateway where the person `ann` signs in with programs, at a real OpenID provider. */
export interface SignInRig {
  readonly gateway: TestGateway;
  readonly people: OpenIdPeople;
  readonly origin: string;
  stop(): Promise<void>;
}

export async function startSignInRig(
  config: Readonly<Record<string, unknown>> = {},
  signIn: Readonly<Record<string, unknown>> = {},
): Promise<SignInRig> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const people = await startOpenIdPeople({
    people: { ann: { email: 'ann@acme.example' } },
    redirectUris: [`${origin}/api/core/admin/callback`],
  });
  people.person = 'ann';
  const openid = { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin };
  const gateway = await startGateway({
    ...{ server: { port, drainTimeout: '2s' }, ...config },
    auth: { 'api-key': { bootstrap: true }, openid, 'sign-in': { publicUrl: origin, ...signIn } },
  });
  return {
    ...{ gateway, people, origin },
    async stop() {
      await gateway.stop();
      await people.stop();
    },
  };
}

/**
 * Opens the link of a program and signs in as the provider's current person; returns the page that requests approval.
 */
export async function signInForProgram(
  link: string,
  browser: Browser,
): Promise<{ readonly status: number; readonly text: string }> {
  const { text } = await browser.visit(link);
  const login = /class="button" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
  return browser.visit(new URL(login, link).href);
}

/** Anti-forgery value in the form of that page. */
export const proofOf = (text: string): string => /name="proof" value="([\w-]+)"/.exec(text)?.[1] ?? '';

/** Approves or refuses a program through its link, as a person does. */
export async function decideOnProgram(link: string, decision: 'approve' | 'refuse' = 'approve'): Promise<void> {
  const browser = openBrowser();
  const { text } = await signInForProgram(link, browser);
  const { origin, searchParams } = new URL(link);
  const fields = { user_code: searchParams.get('user_code') ?? '', proof: proofOf(text), decision };
  const response = await browser.send(`${origin}/device`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', origin } },
    body: new URLSearchParams(fields).toString(),
  });
  if (response.status !== 200) throw new Error(`${decision}: ${response.status} ${await response.text()}`);
}
