import type { Principal } from './call.ts';
import type { Route } from './route.ts';

/** Returns whether an operator has a scope. `any` accepts every scope; only admins have access without a scope. */
export function hasScope({ isAdmin, scopes }: Pick<Principal, 'isAdmin' | 'scopes'>, scope: Route['scope']): boolean {
  if (isAdmin === true || scopes === undefined) return isAdmin === true;
  return scope === 'any' || (scope !== undefined && scopes.includes(scope));
}
