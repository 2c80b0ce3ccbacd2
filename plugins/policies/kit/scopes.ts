import type { Principal } from '../../../contract/index.ts';
import { hasScope } from '../../../contract/operators.ts';

/** Named sets of scopes; `admin` has all of them, and everything that no scope allows. */
export const ROLES = Object.freeze(['viewer', 'billing', 'operator', 'team', 'admin'] as const);
export type Role = (typeof ROLES)[number];

interface ScopeRow {
  /** Description for people. */
  readonly allows: string;
  /** Roles with the scope in addition to `admin`. */
  readonly roles: readonly Exclude<Role, 'admin'>[];
}

/** Permissions on operator routes, one function each; a test compares the table of `docs/keys.md` with this one. */
export const SCOPES = Object.freeze({
  'metrics:read': { allows: 'read the metrics', roles: ['viewer', 'operator'] },
  'usage:read': { allows: 'read reports of usage and cost', roles: ['viewer', 'billing', 'operator'] },
  'calls:read': { allows: 'list and follow calls, without content', roles: ['viewer', 'billing', 'operator'] },
  'bodies:read': {
    allows:
      'with `calls:read` or `targets:read`, read stored content and error messages of vendors, which may quote it',
    roles: [],
  },
  'keys:read': { allows: 'list and show keys', roles: ['viewer', 'billing', 'operator'] },
  'keys:write': { allows: 'create, change and revoke keys within one’s own rights', roles: ['operator'] },
  'users:read': {
    allows: 'list users with plan, spend and block state',
    roles: ['viewer', 'billing', 'operator'],
  },
  'users:write': { allows: 'rename, block and unblock users', roles: ['operator'] },
  'users:erase': { allows: 'erase the stored data of a user', roles: [] },
  'accounts:read': { allows: 'read balances and entries of accounts', roles: ['viewer', 'billing', 'operator'] },
  'accounts:write': { allows: 'credit accounts and set their plan', roles: ['billing'] },
  'plans:read': { allows: 'list and show plans', roles: ['viewer', 'billing', 'operator'] },
  'plans:write': { allows: 'create, change and delete plans', roles: ['billing'] },
  'budgets:read': { allows: 'list budgets and raises with their spend', roles: ['viewer', 'billing', 'operator'] },
  'budgets:write': { allows: 'create, change, delete and raise budgets', roles: ['billing'] },
  'teams:read': { allows: 'list teams and their owners', roles: ['viewer', 'billing', 'operator'] },
  'teams:write': { allows: 'create, change and delete teams', roles: [] },
  'teams:own': {
    allows: 'create keys and budgets of own teams, and read their usage and calls',
    roles: ['team'],
  },
  'targets:read': { allows: 'read the state of targets', roles: ['viewer', 'operator'] },
  'targets:write': { allows: 'drain targets and reset their health', roles: ['operator'] },
  'models:read': { allows: 'list models, aliases and prices', roles: ['viewer', 'billing', 'operator'] },
  'models:call': { allows: 'call models, with the key itself and in the playground', roles: ['operator'] },
  'mcp:read': { allows: 'list MCP servers, their state and tools', roles: ['viewer', 'operator'] },
  'mcp:write': { allows: 'approve new and changed tools of MCP servers', roles: ['operator'] },
  'changes:propose': { allows: 'propose changes over MCP, which another operator confirms', roles: [] },
  'config:read': { allows: 'read the configuration without secrets, and the plugins', roles: ['operator'] },
  'config:write': { allows: 'write drafts to the configuration file, if it allows that', roles: [] },
  'config:reload': { allows: 'reload the configuration', roles: ['operator'] },
  'audit:read': { allows: 'read the audit log', roles: ['operator'] },
} as const satisfies Readonly<Record<string, ScopeRow>>);
export type Scope = keyof typeof SCOPES;

export const SCOPE_NAMES: readonly Scope[] = Object.freeze(Object.keys(SCOPES) as Scope[]);

/** Rights of an operator. */
export type Rights = Pick<Principal, 'isAdmin' | 'scopes'>;

/** Combined rights of roles and scopes; none without any. */
export function rightsOf(granted: readonly (Role | Scope)[]): Rights {
  if (granted.includes('admin')) return { isAdmin: true };
  const scopes = SCOPE_NAMES.filter((scope) => {
    const { roles }: ScopeRow = SCOPES[scope];
    return granted.includes(scope) || roles.some((role) => granted.includes(role));
  });
  return granted.length === 0 ? {} : { scopes: Object.freeze(scopes) };
}

/** Scopes of an operator; an admin has all. */
export function listScopes(rights: Rights): readonly Scope[] {
  return SCOPE_NAMES.filter((scope) => hasScope(rights, scope));
}

/** First right of the others that is missing in the own ones; undefined if none is. */
export function findMissing(own: Rights, others: Rights): string | undefined {
  if (own.isAdmin === true) return undefined;
  return others.isAdmin === true ? 'admin' : others.scopes?.find((scope) => !hasScope(own, scope));
}
