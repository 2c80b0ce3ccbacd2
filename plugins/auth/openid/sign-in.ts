import { decodeProtectedHeader, type JWTPayload } from 'jose';
import { GatewayError, type PluginApi, type UserRecord } from '../../../contract/index.ts';
import { USERS } from '../../policies/kit/index.ts';
import type { IntroducedPerson } from '../kit/introductions.ts';
import { readClaim } from '../kit/read-claim.ts';
import { wordsOfClaims } from '../kit/role-map.ts';
import { signInRefused } from './errors.ts';
import type { IdentityProvider, SignedIn } from './identity-provider.ts';
import type { OpenIdOptions } from './options.ts';
import type { PendingLogins } from './pending-logins.ts';

export interface SignInParts {
  readonly options: OpenIdOptions;
  readonly provider: IdentityProvider;
  readonly pending: PendingLogins;
  readonly users: ReturnType<typeof usersOf>;
}

/** Parameters of the provider's redirect. */
export interface ProviderResponse {
  readonly state?: string;
  readonly code?: string;
  readonly iss?: string;
  readonly error?: string;
}

/** Users, whom an operator may have blocked. */
export function usersOf(api: Pick<PluginApi, 'books'>) {
  return api.books.records<UserRecord>(USERS);
}

/**
 * Finishes a sign-in: returns the person and their destination. Throws if the sign-in failed; {@link admit} decides on
 * access.
 */
export async function finishSignIn(
  parts: SignInParts,
  browser: string | undefined,
  response: ProviderResponse,
  now: number,
): Promise<{ readonly person: Person; readonly returnTo: string }> {
  const login = await parts.pending.take(browser, response.state, now);
  const { options, provider } = parts;
  const signedIn = await provider.redeem({ ...response }, login);
  checkIdToken(signedIn, options.clientId, now);
  const { claims, accessToken } = signedIn;
  const more = saysRoles(claims, options) ? undefined : await provider.userinfo(accessToken, claims.sub);
  const person = readPerson({ ...more, ...claims }, options);
  if (!person) throw signInRefused(new Error('the subject is not a valid user id'));
  return { person, returnTo: login.returnTo };
}

/** Admits operators alone: a session is useless for others. */
export async function admit(parts: SignInParts, person: Person): Promise<void> {
  if (person.roles.length === 0)
    throw new GatewayError(
      'permission_denied',
      'You signed in, but your account has no operator role for this gateway. Ask your administrator for a role, then sign in again.',
    );
  await refuseBlocked(parts, person);
}

/** Refuses people who are blocked here. */
export async function refuseBlocked({ users }: SignInParts, { userId }: Person): Promise<void> {
  const { value } = await users.find(userId);
  if (value?.blockedAt !== undefined)
    throw new GatewayError(
      'permission_denied',
      'You signed in, but an operator of this gateway blocked your account. Ask them to unblock it.',
    );
}

/** Lists a person by the provider's name for them. */
export async function recordName(users: SignInParts['users'], { userId, name }: Person): Promise<void> {
  await users.note(userId);
  if (name === undefined || (await users.find(userId)).value?.name === name) return;
  await users.change(userId, (user) => ({ ...user, name }));
}

const CLOCK_TOLERANCE_S = 30;
/** Maximum age of an ID token: it was issued during this sign-in. */
const MAX_AGE_S = 600;

/** Checks of an ID token that `openid-client` does not make. Throws `invalid_token`. */
function checkIdToken({ idToken, claims }: SignedIn, clientId: string, now: number): void {
  try {
    checkKind(decodeProtectedHeader(idToken).typ, claims);
    checkParty(claims, clientId);
    const age = now / 1000 - claims.iat;
    if (age > MAX_AGE_S + CLOCK_TOLERANCE_S || age < -CLOCK_TOLERANCE_S)
      throw new Error('the ID token was not issued during this sign-in');
  } catch (error) {
    throw signInRefused(error);
  }
}

/** Access, refresh and logout tokens may be signed with the same key for the same client. */
function checkKind(typ: string | undefined, payload: JWTPayload): void {
  const isJwt = typ === undefined || /^(application\/)?jwt$/i.test(typ);
  const isOther = (payload['typ'] ?? 'ID') !== 'ID' || (payload['token_use'] ?? 'id') !== 'id' || 'events' in payload;
  if (!isJwt || isOther) throw new Error('it is an access, refresh or logout token, not an ID token');
}

/** Refuses a token for several clients: a gateway needs its own alone. */
function checkParty({ aud, azp }: JWTPayload, clientId: string): void {
  const others = [aud ?? []].flat().filter((name) => name !== clientId);
  if (others.length > 0 || (azp ?? clientId) !== clientId) throw new Error('the ID token is also for other clients');
}

type Claims = Readonly<Record<string, unknown>>;
type PersonOptions = Pick<OpenIdOptions, 'roleClaims' | 'roles' | 'userPrefix'>;

/** Signed-in person, by the provider. */
interface Person extends IntroducedPerson {
  /** Words that make the person an operator. */
  readonly roles: readonly string[];
}

const MAX_WORDS = 200;

const MAX_NAME = 200;
const MAX_SUBJECT = 255;
const CONTROL = /[\p{Cc}\p{Cf}\p{Cs}]/u;
const NAMES = Object.freeze(['name', 'preferred_username', 'email']);

/** Reads the person of the claims; undefined if the subject is not a valid user id. */
function readPerson(claims: Claims, { roleClaims, roles, userPrefix }: PersonOptions): Person | undefined {
  const { sub, email, email_verified: isVerified = true } = claims;
  if (!isLine(sub, MAX_SUBJECT)) return undefined;
  const words = new Set(wordsOfClaims(claims, roleClaims));
  const known = rolesOf([...words], roles);
  const name = NAMES.map((each) => claims[each]).find((value) => isLine(value, MAX_NAME));
  return {
    userId: `${userPrefix}${sub}`,
    ...(isLine(name, MAX_NAME) && { name }),
    ...(isVerified === true && isLine(email, MAX_NAME) && { email }),
    // Roles first, so that none is cut off.
    words: [...new Set([...known, ...words])].filter((word) => isLine(word, MAX_NAME)).slice(0, MAX_WORDS),
    roles: known,
  };
}

/** Words that make a person an operator. */
export function rolesOf(words: readonly string[], roles: OpenIdOptions['roles']): readonly string[] {
  return Object.keys(roles).filter((role) => words.includes(role));
}

/** True if the claims contain roles. */
function saysRoles(claims: Claims, { roleClaims }: Pick<OpenIdOptions, 'roleClaims'>): boolean {
  return roleClaims.some((name) => readClaim(claims, name) !== undefined);
}

function isLine(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxLength && !CONTROL.test(value);
}
