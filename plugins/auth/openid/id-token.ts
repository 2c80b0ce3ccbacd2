import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { isGatewayError } from '../../../core/index.ts';
import { readClaim, splitWords } from '../kit/read-claim.ts';
import { ASYMMETRIC, verifyJwt } from '../kit/verify-jwt.ts';
import { signInRefused } from './errors.ts';
import type { OpenIdOptions } from './options.ts';
import { isSame } from './random-id.ts';

const MAX_LENGTH = 64 * 1024;
const CLOCK_TOLERANCE_S = 30;
/** A token of the sign-in that ends now was made a moment ago. */
const MAX_AGE_S = 600;

/**
 * The claims of an ID token that is this provider's, for this client alone, of this sign-in, and good now (OpenID Connect Core,
 * section 3.1.3.7). Throws `invalid_token`, and `store_unavailable` when the provider's keys cannot be read.
 */
export async function verifyIdToken(
  token: string,
  nonce: string,
  { issuer, clientId }: Pick<OpenIdOptions, 'issuer' | 'clientId'>,
  getKey: JWTVerifyGetKey,
): Promise<JWTPayload> {
  try {
    if (token.length > MAX_LENGTH) throw new Error(`the ID token has more than ${MAX_LENGTH} characters`);
    const { payload, protectedHeader } = await verifyJwt(token, getKey, {
      ...{ issuer, audience: clientId, algorithms: [...ASYMMETRIC] },
      ...{ requiredClaims: ['exp', 'iat', 'sub'], clockTolerance: CLOCK_TOLERANCE_S, maxTokenAge: MAX_AGE_S },
    });
    checkKind(protectedHeader.typ, payload);
    checkParty(payload, clientId);
    const told = payload['nonce'];
    if (typeof told !== 'string' || !isSame(told, nonce)) throw new Error('the nonce is of another sign-in');
    return payload;
  } catch (error) {
    throw isGatewayError(error) ? error : signInRefused(error);
  }
}

/** Access, refresh and logout tokens may be signed by the same key for the same client. */
function checkKind(typ: string | undefined, payload: JWTPayload): void {
  const isJwt = typ === undefined || /^(application\/)?jwt$/i.test(typ);
  const isOther = (payload['typ'] ?? 'ID') !== 'ID' || (payload['token_use'] ?? 'id') !== 'id' || 'events' in payload;
  if (!isJwt || isOther) throw new Error('it is an access, refresh or logout token, not an ID token');
}

/** A token for several clients is one only for whom it was made; one of them alone is what a gateway needs. */
function checkParty({ aud, azp }: JWTPayload, clientId: string): void {
  const others = [aud ?? []].flat().filter((name) => name !== clientId);
  if (others.length > 0 || (azp ?? clientId) !== clientId) throw new Error('the ID token is for other clients too');
}

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
