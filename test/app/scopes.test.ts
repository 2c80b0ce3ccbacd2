import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { listScopes, ROLES, type Role, rightsOf, SCOPE_NAMES, SCOPES } from '../../plugins/policies/kit/index.ts';
import { type Operator, type Reported, startOperator } from '../support/gateways/operator.ts';
import { AUDIENCE, ISSUER, signShared } from '../support/identity/tokens.ts';

const SECRET = 'kT8w2Zr5Xv9Bn4Qm7Hd1Lf6Gj3Cs0YpA';
const ADMIN = '/api/core/admin';

/** Request that needs a scope, and its status with that scope. */
const USES: readonly (readonly [scope: string, method: string, path: string, body?: object])[] = [
  ['metrics:read', 'GET', '/metrics'],
  ['usage:read', 'GET', `${ADMIN}/usage`],
  ['calls:read', 'GET', `${ADMIN}/calls`],
  ['keys:read', 'GET', `${ADMIN}/keys`],
  ['keys:write', 'POST', `${ADMIN}/keys`, { user_id: 'zoe' }],
  ['users:read', 'GET', `${ADMIN}/users/zoe`],
  ['users:write', 'POST', `${ADMIN}/users/zoe/unblock`],
  ['accounts:read', 'GET', `${ADMIN}/accounts`],
  ['accounts:write', 'POST', `${ADMIN}/accounts/root/credit`, { amount_usd: 1 }],
  ['plans:read', 'GET', `${ADMIN}/plans`],
  ['plans:write', 'PUT', `${ADMIN}/plans/gold`, { rpm: 5 }],
  ['budgets:read', 'GET', `${ADMIN}/budgets`],
  ['budgets:write', 'PUT', `${ADMIN}/budgets/all`, { amount_usd: 5, every: 'day' }],
  ['teams:read', 'GET', `${ADMIN}/teams`],
  ['teams:write', 'PUT', `${ADMIN}/teams/team=ads`, { owners: { users: ['ann'] } }],
  ['teams:own', 'GET', `${ADMIN}/own-teams`],
  ['targets:read', 'GET', `${ADMIN}/targets`],
  ['models:read', 'GET', `${ADMIN}/catalog`],
  ['models:call', 'GET', '/v1/models'],
  ['config:read', 'GET', `${ADMIN}/configuration`],
  ['config:read', 'GET', `${ADMIN}/plugins`],
  ['audit:read', 'GET', `${ADMIN}/audit`],
];

describe('the scopes of operators', () => {
  let operator: Operator;

  before(async () => {
    const jwt = { issuer: ISSUER, audience: AUDIENCE, secret: SECRET };
    const roles = { roleClaims: ['groups'], roles: { finance: 'billing', ops: 'admin', bots: ['metrics:read'] } };
    operator = await startOperator({
      mcp: { servers: { files: { command: 'none' } } },
      policies: { metrics: { auth: 'admin' } },
      auth: { 'api-key': { bootstrap: true }, jwt: { ...jwt, ...roles } },
    });
  });
  after(() => operator.gateway.stop());

  const make = async (...words: readonly string[]): Promise<string> =>
    (await operator.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann', ...words)).api_key;

  const send = async (bearer: string, method: string, path: string, body?: object): Promise<Reported> => {
    const response = await fetch(operator.gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };

  it('limit a key with one scope to that, and name the missing scope for everything else (E41)', async () => {
    for (const scope of new Set(USES.map(([name]) => name))) {
      const key = await make('--scope', scope);
      for (const [needed, method, path, body] of USES) {
        const { status, body: response } = await send(key, method, path, body);
        expect([scope, path, status]).to.deep.equal([scope, path, needed === scope ? 200 : 403]);
        if (needed === scope) continue;
        expect(response.error).to.include({ code: 'permission_denied' });
        expect(response.error.message).to.include(`"${needed}"`);
      }
    }
  });

  it('let a key for Prometheus read the metrics, and neither credit an account nor revoke a key', async () => {
    const key = await make('--scope', 'metrics:read');
    expect((await send(key, 'GET', '/metrics')).body).to.include('tollgate_build_info');
    for (const [method, path, body] of [
      ['POST', `${ADMIN}/accounts/ann/credit`, { amount_usd: 1_000_000 }],
      ['POST', `${ADMIN}/keys/x/revoke`, undefined],
    ] as const)
      expect((await send(key, method, path, body)).status).to.equal(403);
    expect((await operator.chat(key)).message).to.include('"models:call"');
  });

  it('are those of the role that a key is created with, over HTTP and on the command line', async () => {
    for (const role of ROLES) {
      const over = (await operator.call('POST', '/keys', { user_id: 'ann', role })).body.api_key as string;
      const scopes = listScopes(rightsOf([role]));
      for (const key of [over, await make('--role', role)])
        for (const [scope, method, path, body] of USES) {
          const { status } = await send(key, method, path, body);
          expect([role, path, status]).to.deep.equal([role, path, scopes.some((each) => each === scope) ? 200 : 403]);
        }
    }
  });

  it('are granted to a token only by the values and claims in the configuration (E41)', async () => {
    const reach = async (claims: object, path: string): Promise<number> =>
      (await send(signShared(SECRET, { sub: 'ann', ...claims }), 'GET', path)).status;
    expect(await reach({ scope: 'admin', roles: ['admin'], permissions: ['admin'] }, `${ADMIN}/keys`)).to.equal(403);
    expect(await reach({ scope: 'ops' }, `${ADMIN}/keys`)).to.equal(403);
    expect(await reach({ groups: ['ops'] }, `${ADMIN}/audit`)).to.equal(200);
    expect(await reach({ groups: ['finance'] }, `${ADMIN}/accounts`)).to.equal(200);
    expect(await reach({ groups: ['finance'] }, `${ADMIN}/audit`)).to.equal(403);
    expect(await reach({ groups: ['bots'] }, '/metrics')).to.equal(200);
    expect(await reach({ groups: ['bots'] }, `${ADMIN}/keys`)).to.equal(403);
  });

  it('of a key do not allow creating or changing a key with more', async () => {
    const { call } = operator;
    const admin = (await call('POST', '/keys', { user_id: 'root', role: 'admin' })).body.api_key_info;
    const viewer = (await call('POST', '/keys', { user_id: 'eve', role: 'viewer' })).body.api_key_info;
    const key = await make('--role', 'operator');
    for (const rights of [{ role: 'admin' }, { role: 'billing' }, { scopes: ['metrics:read', 'accounts:write'] }]) {
      const { status, body } = await send(key, 'POST', `${ADMIN}/keys`, { user_id: 'ann', ...rights });
      expect([JSON.stringify(rights), status]).to.deep.equal([JSON.stringify(rights), 403]);
      expect(body.error.message).to.match(/the role "admin"|the scope "accounts:write"/);
    }
    for (const [method, word, body] of [
      ['POST', '/rotate', {}],
      ['POST', '/block', {}],
      ['POST', '/unblock', {}],
      ['POST', '/revoke', undefined],
      ['PATCH', '', { expires_at: null }],
    ] as const)
      expect((await send(key, method, `${ADMIN}/keys/${admin.id}${word}`, body)).status, word).to.equal(403);
    expect((await send(key, 'POST', `${ADMIN}/keys`, { user_id: 'bob', role: 'viewer' })).status).to.equal(200);
    expect((await send(key, 'POST', `${ADMIN}/keys/${viewer.id}/revoke`)).status).to.equal(200);
    expect((await call('GET', `/keys/${admin.id}`)).body).to.include({ blocked_at: null, revoked_at: null });
  });

  it('stay with a rotated or changed key, and end with it', async () => {
    const { call, gateway } = operator;
    const made = (await call('POST', '/keys', { user_id: 'ann', scopes: ['usage:read'] })).body.api_key_info;
    expect(made).to.deep.include({ role: null, scopes: ['usage:read'] });
    expect((await call('PATCH', `/keys/${made.id}`, { name: 'reports' })).body.scopes).to.deep.equal(['usage:read']);
    const { api_key, api_key_info } = (await call('POST', `/keys/${made.id}/rotate`)).body;
    expect(api_key_info.scopes).to.deep.equal(['usage:read']);
    expect((await send(api_key, 'GET', `${ADMIN}/usage`)).status).to.equal(200);
    expect((await send(api_key, 'GET', `${ADMIN}/keys`)).status).to.equal(403);
    const words = ['keys', 'create', '--user', 'brief', '--admin', '--expires', '30d'];
    const brief = await gateway.command<{ api_key_info: { expires_at: string } }>(...words);
    expect(Date.parse(brief.api_key_info.expires_at)).to.be.greaterThan(Date.now());
  });

  it('are shown to a person for the session, which ends with its key', async () => {
    const { gateway } = operator;
    const own = { origin: gateway.url, 'sec-fetch-site': 'same-origin' };
    const key = await make('--scope', 'budgets:read', '--expires', '1h');
    const signedIn = await fetch(`${gateway.url}${ADMIN}/console/session`, {
      method: 'POST',
      headers: { ...own, authorization: `Bearer ${key}` },
    });
    expect(signedIn.status).to.equal(204);
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const get = async (path: string) => fetch(`${gateway.url}${ADMIN}${path}`, { headers: { cookie } });
    const state = (await (await get('/console')).json()) as { scopes: string[]; ends_at: string };
    expect(state.scopes).to.deep.equal(['budgets:read']);
    expect(Date.parse(state.ends_at)).to.be.at.most(Date.now() + 3_600_000);
    expect((await get('/budgets')).status).to.equal(200);
    expect((await get('/keys')).status).to.equal(403);
  });

  it('are refused by name if the role or scope is unknown', async () => {
    for (const [words, right] of [
      [['--scope', 'metrics:write'], /--scope must be a comma-separated list of metrics:read, /],
      [['--role', 'root'], /--role must be one of viewer, billing, operator, team, admin/],
      [['--admin', '--role', 'viewer'], /--admin/],
    ] as const)
      expect(String(await make(...words).catch((error: unknown) => error))).to.match(right);
    for (const wrong of [{ role: 'root' }, { scopes: ['metrics:write'] }, { scopes: [] }])
      expect((await operator.call('POST', '/keys', { user_id: 'ann', ...wrong })).status).to.equal(400);
  });

  it('are in OpenAPI for each operators’ route, and each one in the table opens a route', () => {
    const { paths } = operator.gateway.openApi as {
      paths: Record<string, Record<string, { security: readonly Record<string, readonly string[]>[] }>>;
    };
    const named = Object.entries(paths).flatMap(([path, methods]) =>
      Object.values(methods).flatMap(({ security: [first = {}] }) =>
        Object.values(first).flatMap((scopes) => scopes.map((scope) => ({ path, scope }))),
      ),
    );
    const unknown = named.filter(({ scope }) => !SCOPE_NAMES.some((each) => each === scope));
    expect(unknown).to.deep.equal([]);
    const opened = new Set(named.map(({ scope }) => scope));
    // These scopes unlock a part of a response, and a tool of `/mcp-admin`.
    expect(SCOPE_NAMES.filter((scope) => !opened.has(scope))).to.deep.equal(['bodies:read', 'changes:propose']);
    const others = Object.keys(paths).filter(
      (path) => path.startsWith(ADMIN) && !named.some((each) => each.path === path),
    );
    const forAll = ['/console', '/console/link', '/console/session', '/console/sign-out'];
    expect(others.sort()).to.deep.equal(forAll.map((path) => ADMIN + path));
  });

  it('are in docs/keys.md with their roles', async () => {
    const page = await readFile('docs/keys.md', 'utf8');
    for (const scope of SCOPE_NAMES) {
      const cells = ['viewer', 'billing', 'operator'].map((role) =>
        rightsOf([role as Role]).scopes?.includes(scope) ? ' yes ' : ' ',
      );
      expect(page).to.include(`| \`${scope}\` | ${SCOPES[scope].allows} |${cells.join('|')}|\n`);
    }
  });
});
