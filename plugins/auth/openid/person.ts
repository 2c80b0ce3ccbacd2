import { readClaim, splitWords } from '../kit/read-claim.ts';
import type { OpenIdOptions } from './options.ts';

type Claims = Readonly<Record<string, unknown>>;
type PersonOptions = Pick<OpenIdOptions, 'roleClaims' | 'adminRoles' | 'userPrefix'>;

/** Who signed in, as the provider says. */
export interface Person {
  readonly userId: string;
  /** What to call them; for people to read. */
  readonly name?: string;
  /** Those of their roles that make an operator. */
  readonly roles: readonly string[];
}

const MAX_NAME = 200;
const MAX_SUBJECT = 255;
const CONTROL = /[\p{Cc}\p{Cf}\p{Cs}]/u;
const NAMES = Object.freeze(['name', 'preferred_username', 'email']);

/** Who the claims are about; undefined for a subject that is no user id. */
export function readPerson(claims: Claims, { roleClaims, adminRoles, userPrefix }: PersonOptions): Person | undefined {
  const { sub } = claims;
  if (!isLine(sub, MAX_SUBJECT)) return undefined;
  const words = new Set(roleClaims.flatMap((name) => splitWords(readClaim(claims, name)) ?? []));
  const name = NAMES.map((each) => claims[each]).find((value) => isLine(value, MAX_NAME));
  return {
    userId: `${userPrefix}${sub}`,
    ...(isLine(name, MAX_NAME) && { name }),
    roles: adminRoles.filter((role) => words.has(role)),
  };
}

/** Whether the claims say anything of roles. */
export function saysRoles(claims: Claims, { roleClaims }: Pick<OpenIdOptions, 'roleClaims'>): boolean {
  return roleClaims.some((name) => readClaim(claims, name) !== undefined);
}

function isLine(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxLength && !CONTROL.test(value);
}
