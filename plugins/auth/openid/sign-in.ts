import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { GatewayError, isGatewayError, type PluginApi, type UserRecord } from '../../../contract/index.ts';
import { USERS } from '../../policies/kit/index.ts';
import type { IntroducedPerson } from '../kit/introductions.ts';
import { isSame } from '../kit/random-id.ts';
import { readClaim } from '../kit/read-claim.ts';
import { wordsOfClaims } from '../kit/role-map.ts';
import { ASYMMETRIC, verifyJwt } from '../kit/verify-jwt.ts';
import { clientRefused, providerUnavailable, signInRefused } from './errors.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { OpenIdOptions } from './options.ts';
import type { LoginSecrets, PendingLogins } from './pending-logins.ts';

export interface SignInParts {
  readonly options: OpenIdOptions;
  readonly provider: IdentityProvider;
  readonly pending: PendingLogins;
  readonly users: ReturnType<typeof usersOf>;
}

/** What the provider sends a browser back with. */
export interface ProviderResponse {
  readonly state?: string;
  readonly code?: string;
  readonly iss?: string;
  readonly error?: string;
}

/** Users whom an operator may have blocked. */
export function usersOf(api: Pick<PluginApi, 'records'>) {
  return api.records<UserRecord>(USERS);
}

const MAX_CODE = 4096;

/** Ends a sign-in: who came back, and where they wanted to go. Throws for whoever did not sign in; {@link admit} says who may come in. */
export async function finishSignIn(
  parts: SignInParts,
  browser: string | undefined,
  response: ProviderResponse,
  now: number,
): Promise<{ readonly person: Person; readonly returnTo: string }> {
  const login = await parts.pending.take(browser, response.state, now);
  await checkIssuer(parts, response);
  const { code, error } = response;
  if (error !== undefined) throw refusedByProvider(error);
  if (code === undefined || code === '' || code.length > MAX_CODE)
    throw signInRefused(new Error('the provider returned neither a code nor an error'));
  const person = await readSignedIn(parts, code, login);
  return { person, returnTo: login.returnTo };
}

/** A response of another provider, which the browser was led to instead of ours, is refused (RFC 9207). */
async function checkIssuer({ options, provider }: SignInParts, { iss }: ProviderResponse): Promise<void> {
  if (iss === undefined ? !(await provider.namesIssuer()) : iss === options.issuer) return;
  throw signInRefused(new Error('the response is not from the configured issuer'));
}

async function readSignedIn(parts: SignInParts, code: string, { verifier, nonce }: LoginSecrets): Promise<Person> {
  const { options, provider } = parts;
  const { idToken, accessToken } = await provider.redeem(code, verifier);
  const claims = await verifyIdToken(idToken, nonce, options, provider.getKey);
  const isWhole = saysRoles(claims, options) || accessToken === undefined;
  const more = isWhole ? undefined : await provider.userinfo(accessToken);
  if (more && more['sub'] !== claims.sub) throw signInRefused(new Error('the userinfo is for another subject'));
  const person = readPerson({ ...more, ...claims }, options);
  if (!person) throw signInRefused(new Error('the subject is not a valid user id'));
  return person;
}

/** Only operators come in: there is nothing else to do here with a session. */
export async function admit(parts: SignInParts, person: Person): Promise<void> {
  if (person.roles.length === 0)
    throw new GatewayError(
      'permission_denied',
      'You signed in, but your account has no operator role for this gateway. Ask your administrator for a role, then sign in again.',
    );
  await refuseBlocked(parts, person);
}

/** Whoever is blocked here has nothing to do here at all. */
export async function refuseBlocked({ users }: SignInParts, { userId }: Person): Promise<void> {
  const { value } = await users.find(userId);
  if (value?.blockedAt !== undefined)
    throw new GatewayError(
      'permission_denied',
      'You signed in, but an operator of this gateway blocked your account. Ask them to unblock it.',
    );
}

/** Lists who signed in, by the name that the provider tells. */
export async function noteName(users: SignInParts['users'], { userId, name }: Person): Promise<void> {
  await users.note(userId);
  if (name === undefined || (await users.find(userId)).value?.name === name) return;
  await users.change(userId, (user) => ({ ...user, name }));
}

/** Error responses of the provider (RFC 6749, section 4.1.2.1). Its own words go nowhere. */
function refusedByProvider(error: string): GatewayError {
  const cause = new Error(`the provider returned the error "${error.replaceAll(/[^\w.-]/g, '?').slice(0, 60)}"`);
  switch (error) {
    case 'server_error':
    case 'temporarily_unavailable':
      return providerUnavailable(cause);
    case 'unauthorized_client':
    case 'unsupported_response_type':
    case 'invalid_scope':
    case 'invalid_request':
      return clientRefused(cause);
    default:
      return new GatewayError(
        'permission_denied',
        'The identity provider rejected the sign-in, or you cancelled it. Sign in again or ask your administrator.',
        { cause },
      );
  }
}

const MAX_LENGTH = 64 * 1024;
const CLOCK_TOLERANCE_S = 30;
/** A token of the sign-in that ends now was made a moment ago. */
const MAX_AGE_S = 600;

/**
 * The claims of an ID token that is this provider's, for this client alone, of this sign-in, and good now (OpenID Connect Core,
 * section 3.1.3.7). Throws `invalid_token`, and `store_unavailable` when the provider's keys cannot be read.
 */
async function verifyIdToken(
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
    const sent = payload['nonce'];
    if (typeof sent !== 'string' || !isSame(sent, nonce)) throw new Error('the nonce belongs to another sign-in');
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
  if (others.length > 0 || (azp ?? clientId) !== clientId) throw new Error('the ID token is also for other clients');
}

type Claims = Readonly<Record<string, unknown>>;
type PersonOptions = Pick<OpenIdOptions, 'roleClaims' | 'roles' | 'userPrefix'>;

/** Who signed in, as the provider says. */
interface Person extends IntroducedPerson {
  /** Those of their words that make an operator. */
  readonly roles: readonly string[];
}

const MAX_WORDS = 200;

const MAX_NAME = 200;
const MAX_SUBJECT = 255;
const CONTROL = /[\p{Cc}\p{Cf}\p{Cs}]/u;
const NAMES = Object.freeze(['name', 'preferred_username', 'email']);

/** Who the claims are about; undefined for a subject that is no user id. */
function readPerson(claims: Claims, { roleClaims, roles, userPrefix }: PersonOptions): Person | undefined {
  const { sub, email, email_verified: isVerified = true } = claims;
  if (!isLine(sub, MAX_SUBJECT)) return undefined;
  const words = new Set(wordsOfClaims(claims, roleClaims));
  const name = NAMES.map((each) => claims[each]).find((value) => isLine(value, MAX_NAME));
  return {
    userId: `${userPrefix}${sub}`,
    ...(isLine(name, MAX_NAME) && { name }),
    ...(isVerified === true && isLine(email, MAX_NAME) && { email }),
    words: [...words].filter((word) => isLine(word, MAX_NAME)).slice(0, MAX_WORDS),
    roles: Object.keys(roles).filter((role) => words.has(role)),
  };
}

/** Whether the claims say anything of roles. */
function saysRoles(claims: Claims, { roleClaims }: Pick<OpenIdOptions, 'roleClaims'>): boolean {
  return roleClaims.some((name) => readClaim(claims, name) !== undefined);
}

function isLine(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxLength && !CONTROL.test(value);
}
