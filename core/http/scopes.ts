import type { Principal } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Route } from '../contract/route.ts';

/** Whether an operator may do what needs a scope; `any` is what whichever scope opens, and what needs none is for admins. */
export function hasScope({ isAdmin, scopes }: Pick<Principal, 'isAdmin' | 'scopes'>, scope: Route['scope']): boolean {
  if (isAdmin === true || scopes === undefined) return isAdmin === true;
  return scope === 'any' || (scope !== undefined && scopes.includes(scope));
}

/** Throws for a caller who may not do what needs a scope. */
export function refuseLacking(principal: Principal, scope: Route['scope'], isForOperators: boolean): void {
  if (hasScope(principal, scope)) return;
  const needed = scope === undefined ? 'the role "admin"' : scope === 'any' ? 'a role' : `the scope "${scope}"`;
  const whom = isForOperators ? 'This route is for operators: it' : 'A key of operators';
  throw new GatewayError(
    'permission_denied',
    `${whom} needs ${needed}, which this ${principal.credential} lacks. Ask an admin for one that has it: "tollgate keys create" takes --scope and --role.`,
    { refusedBy: needed },
  );
}
