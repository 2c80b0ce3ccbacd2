import { expect } from 'chai';
import { createIdentityProvider } from '../../../../plugins/auth/openid/identity-provider.ts';
import { readOptions } from '../../../../plugins/auth/openid/options.ts';
import { bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { codeOf } from '../../../support/errors.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import {
  challengeOf,
  json,
  type ScriptedOpenId,
  startScriptedOpenId,
} from '../../../support/identity/scripted-openid.ts';
import { type Claims, createSigner, forge, signShared } from '../../../support/identity/tokens.ts';
import { freePort } from '../../../support/processes/server-process.ts';

const ADMIN = '/api/core/admin';
const JWT = { typ: 'JWT' };
/** Configuration as the loader returns it, with all defaults. */
const CONFIG = {
  ...{ issuer: '', clientId: 'gateway', publicUrl: 'https://gateway.example', userPrefix: '' },
  ...{ scopes: ['openid'], roleClaims: ['roles'], roles: {}, adminRoles: ['admin'], sessionFor: '8h', idleFor: '30m' },
};

/** Result of a sign-in. */
interface Ended {
  readonly status: number;
  readonly code: string | undefined;
  readonly message: string;
  readonly isIn: boolean;
}

describe('signing in at a provider that is hostile, broken or down', () => {
  let provider: ScriptedOpenId;
  let gateway: TestGateway;
  let origin: string;

  /** Starts a gateway that has not contacted the provider. */
  const start = async (more: object = {}): Promise<void> => {
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const openid = { issuer: provider.issuer, clientId: 'gateway', clientSecret: 'a&b c', publicUrl: origin, ...more };
    const server = { port, drainTimeout: '2s', trustProxy: 1 };
    gateway = await startGateway({ server, store: 'memory:', auth: { 'api-key': {}, openid } });
  };
  const restart = async (more: object = {}): Promise<void> => {
    await gateway.stop();
    await start(more);
  };

  before(async () => {
    provider = await startScriptedOpenId();
    await start();
  });
  after(async () => {
    await gateway.stop();
    await provider.stop();
  });
  beforeEach(() => provider.reset());

  /**
   * Starts a sign-in, lets `prepare` configure the provider for its nonce, and calls back with the state and the
   * parameters in `back`.
   */
  const signIn = async (
    prepare: (nonce: string) => void | Promise<void>,
    back: Readonly<Record<string, string>> = { code: 'a-code' },
  ): Promise<Ended & { readonly params: URLSearchParams }> => {
    const browser = openBrowser();
    const begun = await browser.send(`${origin}${ADMIN}/login`);
    if (begun.status !== 302) return { ...(await readEnd(begun)), params: new URLSearchParams() };
    const sentParams = new URL(begun.headers.get('location') ?? '').searchParams;
    await prepare(sentParams.get('nonce') ?? '');
    const query = new URLSearchParams({ state: sentParams.get('state') ?? '', ...back });
    return { ...(await readEnd(await browser.send(`${origin}${ADMIN}/callback?${query}`))), params: sentParams };
  };
  const readEnd = async (response: Response): Promise<Ended> => {
    const isIn = response.headers.getSetCookie().some((cookie) => cookie.startsWith('tollgate-session='));
    if (response.status === 302) return { status: 302, code: undefined, message: '', isIn };
    const { error } = (await bodyOf(response)) as { error: { code: string; message: string } };
    return { status: response.status, ...error, isIn };
  };
  const withToken = (claims: Claims, header: Claims = {}) =>
    signIn(async (nonce) =>
      provider.give(await provider.signer.sign({ ...provider.claims(nonce), ...claims }, { ...JWT, ...header })),
    );

  it('succeeds with a correct provider, which receives the verifier of the challenge and the secret', async () => {
    const { status, isIn, params } = await withToken({});
    expect([status, isIn]).to.deep.equal([302, true]);
    const [form] = provider.forms;
    expect(challengeOf(form?.get('code_verifier') ?? '')).to.equal(params.get('code_challenge'));
    expect(Object.fromEntries(form ?? [])).to.include({ grant_type: 'authorization_code', code: 'a-code' });
    expect(form?.get('client_secret')).to.equal(null);
  });

  const past = Math.floor(Date.now() / 1000) - 3600;
  const BAD: Readonly<Record<string, Claims>> = {
    'of another sign-in': { nonce: 'another' },
    'without a nonce': { nonce: undefined },
    'for another client': { aud: 'other' },
    'for another client too': { aud: ['gateway', 'other'], azp: 'gateway' },
    'made for another client': { azp: 'other' },
    'of another issuer': { iss: 'https://evil.example' },
    'that has expired': { exp: past + 60, iat: past },
    'without an end': { exp: undefined },
    'without a beginning': { iat: undefined },
    'that is an hour old': { iat: past },
    'of the time to come': { iat: past + 7200 },
    'without a subject': { sub: undefined },
    'with a subject that is no line': { sub: 'a\nb' },
    'with a subject that is no text': { sub: { a: 1 } },
    'that is a logout token': { events: {} },
    'that says it is for refreshing': { typ: 'Refresh' },
    'that is for access': { token_use: 'access' },
  };
  for (const [name, claims] of Object.entries(BAD))
    it(`refuses an ID token ${name}`, async () => {
      const { status, code, isIn } = await withToken(claims);
      expect({ status, code, isIn }).to.deep.equal({ status: 401, code: 'invalid_token', isIn: false });
    });

  it('refuses an access token in place of the ID token', async () => {
    expect(await withToken({}, { typ: 'at+jwt' })).to.include({ code: 'invalid_token', isIn: false });
  });

  it('refuses an ID token that is not signed, signed by a stranger, or by a secret that all know', async () => {
    const stranger = await createSigner('scripted');
    const time = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 600 };
    const made: ((nonce: string) => string | Promise<string>)[] = [
      (nonce) => forge({ alg: 'none' }, { ...provider.claims(nonce), ...time }),
      (nonce) => stranger.sign(provider.claims(nonce), JWT),
      (nonce) => signShared('a&b c', { ...provider.claims(nonce), ...time }, { kid: 'scripted' }),
      (nonce) => signShared(provider.signer.publicPem, { ...provider.claims(nonce), ...time }, { kid: 'scripted' }),
      () => 'not.a.token',
      () => 'x'.repeat(70_000),
      () => '',
    ];
    for (const make of made) {
      const ended = await signIn(async (nonce) => provider.give(await make(nonce)));
      expect(ended).to.include({ code: 'invalid_token', isIn: false });
    }
  });

  it('refuses userinfo of another person, and takes roles from that of the person', async () => {
    const bare = (nonce: string) => provider.signer.sign({ ...provider.claims(nonce), roles: undefined }, JWT);
    for (const [sub, expected] of [
      ['bob', { status: 401, isIn: false }],
      ['ann', { status: 302, isIn: true }],
    ] as const) {
      const ended = await signIn(async (nonce) => {
        provider.give(await bare(nonce));
        provider.paths.set('/userinfo', json({ sub, roles: 'dev admin' }));
      });
      expect(ended, sub).to.include(expected);
    }
  });

  it('is unavailable, and not refused as a client, if the userinfo endpoint refuses its own token (40)', async () => {
    const refused: Parameters<typeof provider.paths.set>[1] = (response) =>
      response
        .writeHead(401, { 'content-type': 'application/json', 'www-authenticate': 'Bearer error="invalid_token"' })
        .end('{"error":"invalid_token"}');
    for (const respond of [refused, json({}, 500), json([])]) {
      const ended = await signIn(async (nonce) => {
        provider.give(await provider.signer.sign({ ...provider.claims(nonce), roles: undefined }, JWT));
        provider.paths.set('/userinfo', respond);
      });
      expect(ended).to.include({ code: 'store_unavailable', isIn: false });
    }
    expect(gateway.logText()).to.include('/userinfo returned status 500').and.to.include('and no JSON object');
  });

  it('does not make an operator by userinfo if the ID token denies it', async () => {
    provider.paths.set('/userinfo', json({ sub: 'ann', roles: ['admin'] }));
    expect(await withToken({ roles: [] })).to.include({ code: 'permission_denied', isIn: false });
  });

  it('reads no role from a value that is neither a list of texts nor a text', async () => {
    for (const roles of [{ admin: true }, [['admin']], 1, [1, 'admin'], true, ['administrator'], 'nonadmin'])
      expect(await withToken({ roles }), JSON.stringify(roles)).to.include({ code: 'permission_denied', isIn: false });
  });

  it('distinguishes error responses of the provider, and shows none of its texts', async () => {
    const reported = { error_description: '<script>alert(1)</script>', error_uri: 'https://evil.example' };
    const codes: Readonly<Record<string, string>> = {
      access_denied: 'permission_denied',
      login_required: 'permission_denied',
      '<b>x</b>': 'permission_denied',
      server_error: 'store_unavailable',
      temporarily_unavailable: 'store_unavailable',
      unauthorized_client: 'feature_disabled',
      invalid_scope: 'feature_disabled',
    };
    for (const [error, expected] of Object.entries(codes)) {
      const { code, message, isIn } = await signIn(() => undefined, { error, ...reported });
      expect([error, code, isIn]).to.deep.equal([error, expected, false]);
      expect(message).not.to.match(/script|evil|<b>/);
    }
  });

  it('refuses an error response that belongs to no sign-in', async () => {
    const response = await fetch(`${origin}${ADMIN}/callback?error=access_denied&state=${'A'.repeat(43)}`);
    expect((await bodyOf(response)).error.code).to.equal('invalid_request');
  });

  it('distinguishes the token endpoint’s refusals: of the code, of the client, and invalid responses', async () => {
    const cases: readonly (readonly [string, Parameters<typeof provider.paths.set>[1]])[] = [
      ['invalid_token', json({ error: 'invalid_grant' }, 400)],
      ['feature_disabled', json({ error: 'invalid_client' }, 401)],
      ['feature_disabled', json({ error: 'unauthorized_client' }, 400)],
      ['store_unavailable', json({ error: 'server_error' }, 500)],
      ['store_unavailable', (response) => response.end('<html>')],
      ['store_unavailable', (response) => response.end('[]')],
      ['store_unavailable', (response) => response.writeHead(302, { location: `${provider.issuer}/elsewhere` }).end()],
      ['store_unavailable', (response) => response.destroy()],
      ['store_unavailable', (response) => response.end(JSON.stringify({ id_token: 'x'.repeat(1024 * 1024) }))],
      ['invalid_token', json({ access_token: 'x' })],
      ['invalid_token', json({ id_token: 7 })],
    ];
    for (const [expected, respond] of cases) {
      const { code, isIn, message } = await signIn(() => void provider.paths.set('/token', respond));
      expect([code, isIn]).to.deep.equal([expected, false]);
      expect(message).not.to.include('127.0.0.1');
    }
  });

  it('never follows a redirect of the provider, because the code and the secret would be sent along', async () => {
    let isReached = false;
    provider.paths.set('/elsewhere', (response) => {
      isReached = true;
      response.end('{}');
    });
    for (const status of [301, 302, 307, 308])
      await signIn(
        () =>
          void provider.paths.set('/token', (response) =>
            response.writeHead(status, { location: `${provider.issuer}/elsewhere` }).end(),
          ),
      );
    expect(isReached).to.equal(false);
  });

  describe('whose discovery document', () => {
    const DOCUMENTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      'is of another issuer': { issuer: 'https://evil.example' },
      'has no authorization endpoint': { authorization_endpoint: undefined },
      'leads browsers to a script': { authorization_endpoint: 'javascript:alert(1)' },
      'leads browsers over plain http to another machine': { authorization_endpoint: 'http://idp.example/auth' },
    };
    for (const [name, more] of Object.entries(DOCUMENTS))
      it(`${name} allows no sign-in, with a clear error`, async () => {
        provider.discover(more);
        const options = readOptions({ ...CONFIG, issuer: provider.issuer });
        const params = createIdentityProvider({ options, now: () => 0 });
        const secrets = { state: 'state', nonce: 'nonce', verifier: 'verifier' };
        expect(await codeOf(params.loginUrl(secrets))).to.equal('store_unavailable');
      });

    it('announces an issuer in responses causes a refusal of one without it', async () => {
      await restart();
      provider.discover({ authorization_response_iss_parameter_supported: true });
      const give = async (nonce: string) => provider.give(await provider.signer.sign(provider.claims(nonce), JWT));
      expect(await signIn(give)).to.include({ code: 'invalid_token', isIn: false });
      expect(await signIn(give, { code: 'c', iss: 'https://evil.example' })).to.include({ isIn: false });
      expect(provider.forms, 'no code went out').to.have.lengthOf(0);
      expect(await signIn(give, { code: 'c', iss: provider.issuer })).to.include({ status: 302, isIn: true });
    });

    it('accepts the secret only in the form receives it there', async () => {
      await restart();
      provider.discover({ token_endpoint_auth_methods_supported: ['client_secret_post'] });
      expect(await withToken({})).to.include({ isIn: true });
      expect(provider.forms[0]?.get('client_secret')).to.equal('a&b c');
    });

    it('is unavailable allows no sign-in, while keys and the gateway work', async () => {
      await restart();
      provider.paths.delete('/.well-known/openid-configuration');
      const { status, message } = await signIn(() => undefined);
      expect(status).to.equal(503);
      expect(message).to.include('identity provider is unreachable').and.not.to.include('127.0.0.1');
      expect((await fetch(`${origin}/readyz`)).status).to.equal(200);
      // The next attempt contacts the provider again: failures are not cached.
      provider.reset();
      expect(await withToken({})).to.include({ isIn: true });
    });
  });

  it('limits how often one address may try', async () => {
    const browser = openBrowser('203.0.113.9');
    const statuses = new Set<number>();
    for (let tries = 0; tries < 31; tries += 1) statuses.add((await browser.send(`${origin}${ADMIN}/login`)).status);
    expect([...statuses]).to.deep.equal([302, 429]);
    expect((await openBrowser('203.0.113.10').send(`${origin}${ADMIN}/login`)).status).to.equal(302);
  });
});
