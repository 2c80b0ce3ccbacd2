import { expect } from 'chai';
import type { Principal } from '../../../../contract/index.ts';
import { ClaimError, toPrincipal } from '../../../../plugins/auth/jwt/index.ts';
import type { JwtConfig } from '../../../../plugins/auth/jwt/options.ts';
import { jwtConfig } from './jwt-config.ts';

const read = (payload: object, config: Partial<JwtConfig> = {}): Principal =>
  toPrincipal({ sub: 'ann', ...payload }, jwtConfig(config));

describe('the claims of a token', () => {
  it('are the user, on their own account, with no limit and no permission, by default', () => {
    expect(read({})).to.deep.equal({ credential: 'token', userId: 'ann', account: 'ann', permissions: [] });
  });

  it('is read from named claims only', () => {
    const payload = { plan: 'enterprise', account: 'rich', rpm: 1e9, models: ['*'], budget_usd: 1e6 };
    expect(read(payload)).to.have.all.keys('credential', 'userId', 'account', 'permissions');
  });

  const PERMISSIONS: readonly (readonly [object, boolean])[] = [
    [{ permission: 'keys:write' }, true],
    [{ permissions: ['a', 'keys:write'] }, true],
    [{ scope: 'openid keys:write profile' }, true],
    [{ scp: ['keys:write'] }, true],
    [{ roles: ['keys:write'] }, true],
    [{ realm_access: { roles: ['keys:write'] } }, false],
    [{ scope: 'openid' }, false],
    [{ scope: ['keys:write profile'] }, false],
    [{ scope: { 'keys:write': true } }, false],
    [{ scope: [['keys:write']] }, false],
    [{ scope: 42 }, false],
    [{ other: 'keys:write' }, false],
  ];
  for (const [payload, allowed] of PERMISSIONS) {
    it(`${allowed ? 'grant' : 'do not grant'} the permission with ${JSON.stringify(payload)}`, () => {
      expect(read(payload).permissions?.includes('keys:write')).to.equal(allowed);
    });
  }

  it('makes no operator unless the configuration names the claim and the word (E41)', () => {
    for (const payload of [{ roles: ['admin'] }, { scope: 'openid admin' }, { admin: true }, { isAdmin: true }])
      for (const config of [
        {},
        { permissionClaims: ['scope', 'roles'] },
        { roleClaims: ['scope', 'roles'] },
        { roles: { admin: 'admin' } },
      ] as const)
        expect(read(payload, config)).not.to.have.any.keys('isAdmin', 'scopes');
  });

  it('make an operator only by the named values in the named claims', () => {
    const config: Partial<JwtConfig> = {
      roleClaims: ['groups', 'realm_access.roles'],
      roles: { ops: 'admin', finance: 'billing', scraper: ['metrics:read'] },
    };
    expect(read({ groups: ['ops'] }, config)).to.include({ isAdmin: true });
    expect(read({ realm_access: { roles: ['ops'] } }, config)).to.include({ isAdmin: true });
    expect(read({ groups: 'scraper' }, config).scopes).to.deep.equal(['metrics:read']);
    expect(read({ groups: ['finance', 'scraper'] }, config).scopes)
      .to.include.members(['accounts:write', 'metrics:read'])
      .and.not.include('keys:write');
    for (const payload of [
      { scope: 'ops' },
      { groups: ['admin', 'Ops', 'toString', '__proto__'] },
      { groups: { ops: 1 } },
    ])
      expect(read(payload, config)).not.to.have.any.keys('isAdmin', 'scopes');
  });

  it('grant the permission by a path into a claim, if configured', () => {
    const config = { permissionClaims: ['realm_access.roles'] };
    expect(read({ realm_access: { roles: ['keys:write'] } }, config).permissions).to.deep.equal(['keys:write']);
  });

  it('grant the permission only by the configured value', () => {
    const config = { permission: 'tollgate-admin' };
    expect(read({ roles: ['tollgate-admin'] }, config).permissions).to.deep.equal(['tollgate-admin', 'keys:write']);
    expect(read({ roles: ['keys:write', 'x'] }, config).permissions).to.deep.equal(['x']);
  });

  it('are read only from own properties', () => {
    const config = {
      permissionClaims: ['constructor.name', '__proto__', 'toString'],
      claims: { user: 'sub', plan: 'constructor.name' },
    };
    expect(read({}, config)).to.deep.equal({ credential: 'token', userId: 'ann', account: 'ann', permissions: [] });
  });

  it('finds a claim whose name holds dots before a path', () => {
    const payload = { 'https://acme.example/plan': 'pro', a: { b: 'path' }, 'a.b': 'name' };
    expect(read(payload, { claims: { user: 'sub', plan: 'https://acme.example/plan' } }).plan).to.equal('pro');
    expect(read(payload, { claims: { user: 'sub', plan: 'a.b' } }).plan).to.equal('name');
  });

  it('limit the rights of keys', () => {
    const claims = { user: 'sub', models: 'm', providers: 'p', server_tools: 's', rpm: 'r', tpm: 't', budget_usd: 'b' };
    const payload = { m: 'fast smart', p: ['openai'], s: 'mcp web_search', r: 5, t: 6, b: '2.50' };
    expect(read(payload, { claims })).to.deep.include({
      ...{ serverTools: ['mcp', 'web_search'] },
      ...{ models: ['fast', 'smart'], providers: ['openai'], rpm: 5, tpm: 6, budget: 2_500_000_000 },
    });
  });

  const UNREADABLE: readonly (readonly [keyof JwtConfig['claims'], unknown])[] = [
    ['models', 42],
    ['models', [1]],
    ['models', { a: 1 }],
    ['providers', true],
    ['rpm', '5'],
    ['rpm', -1],
    ['rpm', 1.5],
    ['tpm', Number.POSITIVE_INFINITY],
    ['budget_usd', 'much'],
    ['budget_usd', -1],
    ['budget_usd', [5]],
    ['plan', 42],
    ['plan', ''],
    ['account', ['a']],
    ['user', 42],
    ['user', ''],
    ['user', undefined],
  ];
  for (const [limit, value] of UNREADABLE) {
    it(`refuses ${JSON.stringify(value)} as ${limit}, which left out would be no limit`, () => {
      const config = { claims: { user: 'sub', [limit]: 'x' } };
      expect(() => read({ x: value }, config)).to.throw(ClaimError, /"x"/);
    });
  }

  it('puts the prefix before users and accounts', () => {
    const config = { userPrefix: 'acme:', claims: { user: 'sub', account: 'org' } };
    expect(read({ org: 'a1' }, config)).to.include({ userId: 'acme:ann', account: 'acme:a1' });
    expect(read({}, config)).to.include({ account: 'acme:ann' });
  });
});
