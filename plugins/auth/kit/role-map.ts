import type { Principal } from '../../../contract/index.ts';
import { type Rights, ROLES, type Role, rightsOf, SCOPE_NAMES, type Scope } from '../../policies/kit/index.ts';
import { readClaim, splitWords } from './read-claim.ts';

/** Option that maps values of a claim to operator rights: `{ llm-team: viewer, finance: [usage:read] }`. */
export const ROLE_MAP = {
  type: 'object',
  maxProperties: 100,
  default: {},
  additionalProperties: {
    anyOf: [{ enum: ROLES }, { type: 'array', minItems: 1, uniqueItems: true, items: { enum: SCOPE_NAMES } }],
  },
} as const;

/** Roles or scopes by claim value. */
export type RoleMap = Readonly<Record<string, Role | readonly Scope[]>>;

/** All words of these claims. */
export function wordsOfClaims(claims: Readonly<Record<string, unknown>>, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => splitWords(readClaim(claims, name)) ?? []);
}

/** Rights of words; unknown words have none. For possible team owners the words are included, since teams name them. */
export function rightsOfWords(words: readonly string[], roles: RoleMap): Rights & Pick<Principal, 'groups'> {
  const known = words.filter((word) => Object.hasOwn(roles, word));
  const rights = rightsOf(known.flatMap((word) => roles[word] ?? []));
  return rights.scopes?.includes('teams:own') ? { ...rights, groups: Object.freeze([...new Set(known)]) } : rights;
}
