import { expect } from 'chai';
import { type Browser, bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { proofOf, signInForProgram } from '../../../support/gateways/sign-in-rig.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../../../support/identity/openid-people.ts';
import { freePort } from '../../../support/processes/server-process.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const PEOPLE = {
  ann: { roles: ['dev'], name: 'Ann Arbor', email: 'ann@acme.example' },
  bob: { roles: ['dev', 'large-team'] },
  cleo: { roles: ['guest'] },
};

interface Begun {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
  readonly interval: number;
  readonly expires_in: number;
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly email?: string;
}

describe('signing in with a program by the account of the company', () => {
  let people: OpenIdPeople;
  let gateway: TestGateway;
  let browser: Browser;
  let origin: string;

  before(async () => {
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    people = await startOpenIdPeople({ people: PEOPLE, redirectUris: [`${origin}/api/core/admin/callback`] });
    gateway = await startGateway({
      server: { port, drainTimeout: '2s', trustProxy: 1 },
      plans: { small: { models: ['echo/echo'] }, large: {} },
      defaultPlan: 'small',
      providers: { echo: {}, second: { plugin: 'echo' } },
      models: { fast: 'echo/echo' },
      auth: {
        'api-key': { bootstrap: true },
        openid: { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin },
        'sign-in': {
          publicUrl: origin,
          allow: ['dev'],
          plans: { 'large-team': 'large' },
          managedSettings: [
            { groups: ['large-team'], settings: { env: { B: '2', A: '1' }, model: 'fast' } },
            { groups: ['missing'], settings: {} },
          ],
        },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await people.stop();
  });
  beforeEach(() => {
    people.person = 'ann';
    browser = openBrowser();
  });

  const form = async (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) => {
    const response = await browser.send(`${origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString(),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const post = async <T>(path: string, fields: Record<string, string>) => {
    const { status, text } = await form(path, fields);
    return { status, body: JSON.parse(text) as T & { readonly error?: string; readonly error_description?: string } };
  };
  const begin = async () => (await post<Begun>('/oauth/device_authorization', { surface: 'claude_code' })).body;
  const poll = ({ device_code }: Begun) => post<Tokens>('/oauth/token', { grant_type: DEVICE_GRANT, device_code });
  const renew = (refresh_token: string) => post<Tokens>('/oauth/token', { grant_type: 'refresh_token', refresh_token });
  const signInOn = ({ verification_uri_complete: link }: Begun, by = browser) => signInForProgram(link, by);
  const decide = (begun: Begun, proof: string, decision = 'approve', headers: Record<string, string> = { origin }) =>
    form('/device', { user_code: begun.user_code, proof, decision }, headers);
  const approve = async (begun: Begun) => {
    const { text } = await signInOn(begun);
    return decide(begun, proofOf(text));
  };
  const signIn = async (): Promise<Tokens> => {
    const begun = await begin();
    await approve(begun);
    const { status, body } = await poll(begun);
    expect(status).to.equal(200);
    return body;
  };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const chat = (token: string, model = 'fast') =>
    gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] }, bearer(token));

  it('returns the sign-in URL to programs, on its own origin', async () => {
    const body = await bodyOf(await fetch(`${origin}/.well-known/oauth-authorization-server`));
    expect(body).to.include({ issuer: origin, gateway_protocol_version: 1 });
    for (const name of ['device_authorization_endpoint', 'token_endpoint', 'revocation_endpoint'])
      expect(new URL(body[name]).origin, name).to.equal(origin);
    expect(body.grant_types_supported).to.deep.equal([DEVICE_GRANT, 'refresh_token']);
  });

  it('leads from the code to a token that calls models as the person, without any key', async () => {
    const begun = await begin();
    expect(begun.user_code).to.match(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(begun).to.include({ interval: 5, expires_in: 600, verification_uri: `${origin}/device` });
    expect((await poll(begun)).body.error).to.equal('authorization_pending');
    const { text } = await signInOn(begun);
    expect(text)
      .to.include('Ann Arbor (ann@acme.example)')
      .and.to.include('claude_code')
      .and.to.include(begun.user_code);
    expect((await decide(begun, proofOf(text))).text).to.include('You are signed in');
    const { body: tokens } = await poll(begun);
    expect(tokens).to.include({ token_type: 'Bearer', expires_in: 3600, email: 'ann@acme.example' });
    expect((await chat(tokens.access_token)).status).to.equal(200);
    const usage = await bodyOf(
      await gateway.get('/v1/models', { 'x-api-key': tokens.access_token, ...bearer(tokens.access_token) }),
    );
    expect(usage.data).to.have.length.above(0);
    const { data } = await gateway.command<{ data: readonly { user: string; requests: number }[] }>(
      'usage',
      '--by',
      'user',
    );
    expect(data.find(({ user }) => user === 'ann')).to.include({ requests: 1 });
    expect((await gateway.command<{ data: readonly object[] }>('keys', 'list', '--user', 'ann')).data).to.deep.equal(
      [],
    );
  });

  it('returns the tokens once, to the first of two concurrent polls', async () => {
    const begun = await begin();
    await approve(begun);
    const both = await Promise.all([poll(begun), poll(begun)]);
    expect(both.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
    expect((await poll(begun)).body.error).to.equal('expired_token');
  });

  it('slows down a program that polls too often', async () => {
    const begun = await begin();
    const responses = [await poll(begun), await poll(begun)].map(({ body }) => body.error);
    expect(responses).to.deep.equal(['authorization_pending', 'slow_down']);
  });

  it('reports the person’s refusal to the program', async () => {
    const begun = await begin();
    const { text } = await signInOn(begun);
    await decide(begun, proofOf(text), 'refuse');
    expect((await poll(begun)).body.error).to.equal('access_denied');
  });

  it('accepts a code once, also from two people concurrently', async () => {
    const begun = await begin();
    const other = openBrowser();
    const mine = proofOf((await signInOn(begun)).text);
    people.person = 'bob';
    const theirs = proofOf((await signInOn(begun, other)).text);
    const first = decide(begun, mine);
    const second = other.send(`${origin}/device`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', origin } },
      body: new URLSearchParams({ user_code: begun.user_code, proof: theirs, decision: 'approve' }).toString(),
    });
    const statuses = [(await first).status, (await second).status];
    expect(statuses.sort()).to.deep.equal([200, 400]);
    expect((await decide(begun, mine)).status, 'nor a second time').to.be.oneOf([400, 403]);
  });

  it('approves nothing for another page, another browser, another code, or without the proof', async () => {
    const begun = await begin();
    const proof = proofOf((await signInOn(begun)).text);
    const foreign = await Promise.all(
      [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }, {}].map((headers) =>
        decide(begun, proof, 'approve', headers as Record<string, string>),
      ),
    );
    expect(foreign.map(({ status }) => status)).to.deep.equal([403, 403, 403, 403]);
    expect((await decide(begun, '')).status).to.equal(403);
    expect((await decide(await begin(), proof)).status, 'another code').to.equal(403);
    browser = openBrowser();
    expect((await decide(begun, proof)).status, 'another browser').to.equal(403);
    expect((await poll(begun)).body.error).to.equal('authorization_pending');
  });

  it('rejects a person without a permitted group', async () => {
    people.person = 'cleo';
    const begun = await begin();
    const { status, text } = await signInOn(begun);
    expect(status).to.equal(403);
    expect(text).to.include('not in a group').and.not.to.include('name="proof"');
  });

  it('shows a page without scripts and frames, that escapes programs’ names', async () => {
    const { body: begun } = await post<Begun>('/oauth/device_authorization', {
      client_id: '<script>alert(1)</script>',
    });
    const { headers, text } = await browser.visit(begun.verification_uri_complete);
    expect(headers.get('content-security-policy'))
      .to.include("default-src 'none'")
      .and.to.include("frame-ancestors 'none'");
    expect(text).to.include('&lt;script&gt;').and.not.to.include('<script>');
    expect(text, 'a link alone approves nothing').not.to.include('name="proof"');
  });

  it('accepts a code as people type it, and reports an unknown one', async () => {
    const begun = await begin();
    const typed = begun.user_code.replace('-', ' ').toLowerCase();
    const found = await browser.visit(`${origin}/device?user_code=${encodeURIComponent(typed)}`);
    expect(found.text).to.include(begun.user_code);
    const unknown = await browser.visit(`${origin}/device?user_code=BBBB-BBBB`);
    expect(unknown.status).to.equal(400);
    expect(unknown.text).to.include('This code is invalid');
  });

  it('limits attempts at codes', async () => {
    const guesser = openBrowser('192.0.2.1');
    const statuses = [];
    for (let attempt = 0; attempt < 31; attempt += 1)
      statuses.push((await guesser.visit(`${origin}/device?user_code=BBBB-BBBB`)).status);
    expect(statuses.slice(0, 30).every((status) => status === 400)).to.equal(true);
    expect(statuses.at(-1)).to.equal(429);
  });

  it('renews tokens, each refresh token once', async () => {
    const first = await signIn();
    const { status, body: second } = await renew(first.refresh_token);
    expect(status).to.equal(200);
    expect(second.access_token).not.to.equal(first.access_token);
    expect((await chat(second.access_token)).status).to.equal(200);
    const again = await renew(first.refresh_token);
    expect([again.status, again.body.error]).to.deep.equal([401, 'invalid_grant']);
    expect((await renew(second.refresh_token)).status, 'the newer one is good').to.equal(200);
  });

  it('renews once for two concurrent requests', async () => {
    const { refresh_token } = await signIn();
    const both = await Promise.all([renew(refresh_token), renew(refresh_token)]);
    expect(both.map(({ status }) => status).sort()).to.deep.equal([200, 401]);
  });

  it('signs out: neither token is good for anything', async () => {
    const { access_token, refresh_token } = await signIn();
    expect(
      (await post('/oauth/revoke', { token: refresh_token, token_type_hint: 'refresh_token' })).body,
    ).to.deep.equal({});
    const refused = await chat(access_token);
    expect([refused.status, refused.headers.get('x-should-retry')]).to.deep.equal([401, 'false']);
    expect((await renew(refresh_token)).body.error).to.equal('invalid_grant');
    expect((await post('/oauth/revoke', { token: 'none of ours' })).status).to.equal(200);
  });

  it('ends with the block of the user, and by an operator', async () => {
    const { access_token, refresh_token } = await signIn();
    const list = await gateway.command<{ data: readonly { id: string; program: string }[] }>(
      'sign-ins',
      'list',
      '--user',
      'ann',
    );
    expect(list.data.at(-1)?.program).to.equal('claude_code');
    for (const { id } of list.data) await gateway.command('sign-ins', 'revoke', id);
    expect((await renew(refresh_token)).body.error).to.equal('invalid_grant');
    const other = await signIn();
    await gateway.command('users', 'block', 'ann', '--reason', 'left');
    expect((await renew(other.refresh_token)).body.error).to.equal('invalid_grant');
    const refused = await signInOn(await begin());
    expect(refused.status).to.equal(403);
    await gateway.command('users', 'unblock', 'ann');
    expect(access_token).to.match(/^tg-access-/);
  });

  it('grants the plan of the group, and its models', async () => {
    const idsOf = async (token: string) =>
      (await bodyOf(await gateway.get('/v1/models', bearer(token)))).data.map(({ id }: { id: string }) => id);
    const small = await idsOf((await signIn()).access_token);
    people.person = 'bob';
    browser = openBrowser();
    const large = await idsOf((await signIn()).access_token);
    expect(small).to.include('echo/echo').and.not.to.include('second/echo');
    expect(large).to.include.members([...small, 'second/echo']);
  });

  it('sends managed settings to those who have an entry, with a checksum that the client computes too', async () => {
    const none = await gateway.get('/managed/settings', bearer((await signIn()).access_token));
    expect(none.status).to.equal(404);
    people.person = 'bob';
    browser = openBrowser();
    const { access_token } = await signIn();
    const response = await gateway.get('/managed/settings', bearer(access_token));
    const body = await bodyOf(response);
    // printf '{"env":{"A":"1","B":"2"},"model":"fast"}' | sha256sum
    const checksum = 'sha256:f81258fa6cf0fa2f27b3c66e218daea63920df397d3e945cd43605f720b427ce';
    expect(body).to.deep.equal({ uuid: checksum, checksum, settings: { env: { B: '2', A: '1' }, model: 'fast' } });
    const tag = response.headers.get('etag') ?? '';
    expect(tag).to.equal(`"${checksum}"`);
    const same = await gateway.get('/managed/settings', { ...bearer(access_token), 'if-none-match': tag });
    expect(same.status).to.equal(304);
    const any = await gateway.get('/managed/settings', { ...bearer(access_token), 'if-none-match': '*' });
    expect(any.status, 'a star asks only whether there are any').to.equal(200);
    expect((await gateway.get('/managed/settings')).status, 'a key is no person').to.equal(404);
  });

  it('refuses invalid forms', async () => {
    const sent = async (body: string, type = 'application/x-www-form-urlencoded') => {
      const response = await browser.send(`${origin}/oauth/token`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      });
      return [response.status, (await bodyOf(response)).error];
    };
    expect(await sent('{"grant_type":"refresh_token"}', 'application/json')).to.deep.equal([400, 'invalid_request']);
    expect(await sent('grant_type=refresh_token&grant_type=x')).to.deep.equal([400, 'invalid_request']);
    expect(await sent('grant_type=refresh_token')).to.deep.equal([400, 'invalid_request']);
    expect(await sent('grant_type=password&username=ann')).to.deep.equal([400, 'unsupported_grant_type']);
    expect(await sent(`grant_type=refresh_token&refresh_token=${'x'.repeat(9000)}`)).to.deep.equal([
      400,
      'invalid_request',
    ]);
    expect(await sent('')).to.deep.equal([400, 'invalid_request']);
  });

  it('accepts no refresh token as a credential, and no access token on operators’ routes', async () => {
    const { access_token, refresh_token } = await signIn();
    expect((await chat(refresh_token)).status).to.equal(401);
    expect((await gateway.get('/api/core/admin/users', bearer(access_token))).status).to.equal(403);
    expect((await gateway.post('/api/core/api_keys/create', {}, bearer(access_token))).status).to.be.oneOf([
      401, 403, 503,
    ]);
  });

  it('audits sign-ins with person and program, without tokens', async () => {
    const { access_token, refresh_token } = await signIn();
    const { data } = await gateway.command<{ data: readonly object[] }>('audit', '--subject', 'ann');
    const text = JSON.stringify(data);
    expect(text).to.include('sign-in.approve').and.to.include('sign-in.begin').and.to.include('claude_code');
    for (const token of [access_token, refresh_token]) expect(text + gateway.logText()).not.to.include(token);
  });
});
