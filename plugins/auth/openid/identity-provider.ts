import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  customFetch,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { isObject, parseJson } from '../../../contract/index.ts';
import { type DiscoveryDocument, fetchDiscovery, readEndpoint } from '../kit/discovery.ts';
import { type Fetch, fetchBounded, parseSafeUrl } from '../kit/fetch-json.ts';
import { hashId } from '../kit/random-id.ts';
import { clientRefused, providerUnavailable, refusedByProvider, signInRefused } from './errors.ts';
import type { OpenIdOptions } from './options.ts';
import type { LoginSecrets } from './pending-logins.ts';

type Claims = Readonly<Record<string, unknown>>;

/** ID token whose signature, issuer, audience, expiry and nonce were verified. */
export interface SignedIn {
  readonly idToken: string;
  readonly claims: Claims & { readonly sub: string; readonly iat: number };
  readonly accessToken: string;
}

/** OpenID provider, described by its discovery document. All its responses are bounded; no redirect is followed. */
export interface IdentityProvider {
  /** Returns the URL for signing in. */
  loginUrl(secrets: LoginSecrets): Promise<URL>;
  /** Checks the parameters of its redirect, and redeems the code. */
  redeem(response: Readonly<Record<string, string>>, secrets: LoginSecrets): Promise<SignedIn>;
  /** Reads the userinfo endpoint for this subject; undefined if the provider has none. */
  userinfo(accessToken: string, subject: string): Promise<Claims | undefined>;
}

export interface ProviderParts {
  readonly options: OpenIdOptions;
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Fetch for its endpoints; default: the platform's. */
  readonly fetch?: Fetch;
}

/** Age after which the discovery document is fetched again. */
const FRESH_MS = 600_000;

export function createIdentityProvider({ options, now, fetch: fetchBy = fetch }: ProviderParts): IdentityProvider {
  const { discovery, redirectUri, scope } = options;
  const configure = cached(() => discover(options, fetchBy), now);
  return {
    async loginUrl({ state, nonce, verifier }) {
      try {
        const config = await configure();
        readEndpoint(discovery, { ...config.serverMetadata() }, 'authorization_endpoint');
        // RFC 7636: the challenge is the hash of the verifier, in the encoding of our hashes.
        const pkce = { code_challenge: hashId(verifier), code_challenge_method: 'S256' };
        return buildAuthorizationUrl(config, { redirect_uri: redirectUri, scope, state, nonce, ...pkce });
      } catch (error) {
        throw providerUnavailable(error);
      }
    },

    async redeem(response, { state, nonce, verifier }) {
      try {
        const url = new URL(`${redirectUri}?${new URLSearchParams(response)}`);
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
        const tokens = await authorizationCodeGrant(await configure(), url, checks);
        const { id_token: idToken = '', access_token: accessToken } = tokens;
        return { idToken, claims: tokens.claims() as SignedIn['claims'], accessToken };
      } catch (error) {
        throw explainGrant(error);
      }
    },

    async userinfo(accessToken, subject) {
      try {
        const config = await configure();
        if (config.serverMetadata().userinfo_endpoint === undefined) return undefined;
        return await fetchUserInfo(config, accessToken, subject);
      } catch (error) {
        throw explain(error);
      }
    },
  };
}

/** Keeps a value for ten minutes; concurrent readers share one request. */
function cached<R>(load: () => Promise<R>, now: () => number): () => Promise<R> {
  let known: { readonly value: R; readonly readAt: number } | undefined;
  let running: Promise<R> | undefined;
  return async () => {
    if (known && now() - known.readAt < FRESH_MS) return known.value;
    running ??= load()
      .then((value) => {
        known = { value, readAt: now() };
        return value;
      })
      .finally(() => (running = undefined));
    return running;
  };
}

async function discover(options: OpenIdOptions, fetchBy: Fetch): Promise<Configuration> {
  const document = await fetchDiscovery(options.discovery, options.issuer, fetchBy);
  const config = new Configuration(
    { ...document, issuer: options.issuer },
    options.clientId,
    {},
    authenticationOf(options, document),
  );
  // Its requests are bounded like all others; http is allowed on this machine alone.
  config[customFetch] = async (address, { method, headers: sent, body = null }) => {
    const url = parseSafeUrl(address);
    if (!url) throw new Error(`${options.discovery.href} names an endpoint that is no https URL`);
    const { status, text, headers } = await fetchBounded(url, fetchBy, { method, headers: sent, body });
    const isKnown = status === 200 || (status >= 400 && status < 500);
    if (!isKnown) throw new Error(`${url.href} returned status ${status}`);
    if (!isObject(parseJson(text))) throw new Error(`${url.href} returned status ${status} and no JSON object`);
    return new Response(text, { status, headers });
  };
  allowInsecureRequests(config);
  enableNonRepudiationChecks(config);
  return config;
}

/** Client authentication at the token endpoint, by a method that the provider supports (RFC 6749, section 2.3.1). */
function authenticationOf({ clientSecret, clientAuth }: OpenIdOptions, document: DiscoveryDocument): ClientAuth {
  if (clientSecret === undefined) return None();
  const methods = document['token_endpoint_auth_methods_supported'];
  const takesBasic = !Array.isArray(methods) || methods.includes('client_secret_basic');
  const isForm = clientAuth === 'form' || (clientAuth === undefined && !takesBasic);
  return isForm ? ClientSecretPost(clientSecret) : ClientSecretBasic(clientSecret);
}

const CLIENT_ERRORS: ReadonlySet<string> = new Set([
  ...['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'],
]);

/** Codes of `openid-client` for an invalid redirect, ID token or userinfo; others are failures of the provider. */
const INVALID: ReadonlySet<string | undefined> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_PARSE_ERROR',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
]);

function explainGrant(error: unknown): Error {
  if (error instanceof AuthorizationResponseError) return refusedByProvider(error.error);
  if (error instanceof WWWAuthenticateChallengeError) {
    const codes = error.cause.map(({ parameters }) => parameters['error'] ?? 'no error code');
    return clientRefused(
      new Error(`the token endpoint returned status ${error.status}: ${codes.join().slice(0, 100)}`),
    );
  }
  if (error instanceof ResponseBodyError) {
    const cause = new Error(`the provider returned status ${error.status}: ${error.error.slice(0, 100)}`);
    if (error.status === 401 || CLIENT_ERRORS.has(error.error)) return clientRefused(cause);
    return error.status === 400 ? signInRefused(cause) : providerUnavailable(cause);
  }
  return explain(error);
}

function explain(error: unknown): Error {
  const isInvalid = error instanceof ClientError && INVALID.has(error.code);
  return isInvalid ? signInRefused(error) : providerUnavailable(error);
}
