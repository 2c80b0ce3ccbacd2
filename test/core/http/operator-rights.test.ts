import { expect } from 'chai';
import type { Principal } from '../../../contract/call.ts';
import { hasScope } from '../../../contract/scopes.ts';
import { refuseLacking } from '../../../core/http/operator-rights.ts';

const viewer: Principal = { credential: 'key', userId: 'v', account: 'v', scopes: ['usage:read'] };

describe('the scopes of an operator', () => {
  it('E41: give access to routes that need one of them, or any, and not to routes for admins only', () => {
    const opened = (['usage:read', 'any', 'keys:write', undefined] as const).map((scope) => hasScope(viewer, scope));
    expect(opened).to.deep.equal([true, true, false, false]);
    const user: Principal = { credential: 'key', userId: 'u', account: 'u' };
    expect(hasScope(user, 'any'), 'of somebody who is no operator').to.equal(false);
    expect(hasScope({ ...user, isAdmin: true }, undefined)).to.equal(true);
  });

  it('E41: are named in a refusal, or the role if no scope is enough', () => {
    expect(() => refuseLacking(viewer, 'keys:write', true)).to.throw('needs the scope "keys:write"');
    expect(() => refuseLacking(viewer, undefined, true)).to.throw('needs the role "admin"');
    expect(() => refuseLacking(viewer, 'usage:read', true)).not.to.throw();
  });
});
