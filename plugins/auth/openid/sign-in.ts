import { GatewayError, type PluginApi, type UserRecord } from '../../../core/index.ts';
import { USERS } from '../../../core/operators.ts';
import { clientRefused, providerUnavailable, signInRefused } from './errors.ts';
import { type Person, readPerson, saysRoles, verifyIdToken } from './id-token.ts';
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

/** Ends a sign-in: who came back, and where they wanted to go. Throws for everybody who is not let in. */
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
    throw signInRefused(new Error('the provider sent neither a code nor an error'));
  const person = await readSignedIn(parts, code, login);
  await admit(parts, person);
  return { person, returnTo: login.returnTo };
}

/** A response of another provider, which the browser was led to instead of ours, is none for us (RFC 9207). */
async function checkIssuer({ options, provider }: SignInParts, { iss }: ProviderResponse): Promise<void> {
  if (iss === undefined ? !(await provider.namesIssuer()) : iss === options.issuer) return;
  throw signInRefused(new Error('the response does not say that it is of the configured issuer'));
}

async function readSignedIn(parts: SignInParts, code: string, { verifier, nonce }: LoginSecrets): Promise<Person> {
  const { options, provider } = parts;
  const { idToken, accessToken } = await provider.redeem(code, verifier);
  const claims = await verifyIdToken(idToken, nonce, options, provider.getKey);
  const isWhole = saysRoles(claims, options) || accessToken === undefined;
  const more = isWhole ? undefined : await provider.userinfo(accessToken);
  if (more && more['sub'] !== claims.sub) throw signInRefused(new Error('the userinfo is of another subject'));
  const person = readPerson({ ...more, ...claims }, options);
  if (!person) throw signInRefused(new Error('the subject is no user id'));
  return person;
}

/** Only operators come in: there is nothing else to do here with a session. */
async function admit({ users }: SignInParts, { userId, roles }: Person): Promise<void> {
  if (roles.length === 0)
    throw new GatewayError(
      'permission_denied',
      'You signed in, but your account has no role that may operate this gateway. Ask whoever manages your accounts to give you one, then sign in again.',
    );
  const { value } = await users.find(userId);
  if (value?.blockedAt !== undefined)
    throw new GatewayError('permission_denied', 'You signed in, but an operator of this gateway has blocked you here.');
}

/** Error responses of the provider (RFC 6749, section 4.1.2.1). Its own words go nowhere. */
function refusedByProvider(error: string): GatewayError {
  const cause = new Error(`the provider answered with the error "${error.replaceAll(/[^\w.-]/g, '?').slice(0, 60)}"`);
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
        'The identity provider did not let you sign in, or you cancelled. Sign in again, or ask whoever manages your accounts.',
        { cause },
      );
  }
}
