import type { Principal } from './call.ts';
import type { Route } from './route.ts';

/** Whether an operator may do what needs a scope; `any` is what whichever scope opens, and what needs none is for admins. */
export function hasScope({ isAdmin, scopes }: Pick<Principal, 'isAdmin' | 'scopes'>, scope: Route['scope']): boolean {
  if (isAdmin === true || scopes === undefined) return isAdmin === true;
  return scope === 'any' || (scope !== undefined && scopes.includes(scope));
}
