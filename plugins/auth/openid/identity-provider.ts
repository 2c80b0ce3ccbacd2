import type { JWTVerifyGetKey } from 'jose';
import { isObject, parseJson } from '../../../contract/index.ts';
import { type DiscoveryDocument, fetchDiscovery, readEndpoint } from '../kit/discovery.ts';
import { type Fetch, type Fetched, fetchBounded, fetchJson } from '../kit/fetch-json.ts';
import { createKeySource } from '../kit/key-source.ts';
import { hashId } from '../kit/random-id.ts';
import { readKeySet } from '../kit/verify-jwt.ts';
import { clientRefused, providerUnavailable, signInRefused } from './errors.ts';
import type { OpenIdOptions } from './options.ts';
import type { LoginSecrets } from './pending-logins.ts';

export interface Tokens {
  readonly idToken: string;
  readonly accessToken: string | undefined;
}

/** OpenID provider, described by its discovery document. All its responses are bounded; no redirect is followed. */
export interface IdentityProvider {
  /** Returns the URL for signing in. */
  loginUrl(secrets: LoginSecrets): Promise<URL>;
  /** True if its responses always contain the issuer (RFC 9207). */
  namesIssuer(): Promise<boolean>;
  /** Redeems a code. */
  redeem(code: string, verifier: string): Promise<Tokens>;
  /** Reads the userinfo endpoint; undefined if the provider has none. */
  userinfo(accessToken: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Finds the key of an ID token. */
  readonly getKey: JWTVerifyGetKey;
}

export interface ProviderParts {
  readonly options: OpenIdOptions;
  /** Called with the error if keys could not be read. */
  onFailure(error: unknown): void;
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Fetch for its endpoints; default: the platform's. */
  readonly fetch?: Fetch;
}

/** Age after which the discovery document is fetched again. */
const FRESH_MS = 600_000;

export function createIdentityProvider({
  options,
  onFailure,
  now,
  fetch: fetchBy = fetch,
}: ProviderParts): IdentityProvider {
  const { discovery, clientId, redirectUri, scope } = options;
  const discover = createDiscovery(options, now, fetchBy);
  const endpoint = async (name: string): Promise<URL> => readEndpoint(discovery, await discover(), name);
  const keys = createKeySource({
    async load() {
      const url = await endpoint('jwks_uri');
      return readKeySet(await fetchJson(url, fetchBy), url.href);
    },
    onFailure,
    now,
  });

  return {
    getKey: keys.getKey,

    async loginUrl({ state, nonce, verifier }) {
      const url = await orUnavailable(() => endpoint('authorization_endpoint'));
      const parameters = { response_type: 'code', client_id: clientId, redirect_uri: redirectUri, scope, state, nonce };
      // RFC 7636: the challenge is the hash of the verifier, in the encoding of our hashes.
      const pkce = { code_challenge: hashId(verifier), code_challenge_method: 'S256' };
      for (const [name, value] of Object.entries({ ...parameters, ...pkce })) url.searchParams.set(name, value);
      return url;
    },

    async namesIssuer() {
      const document = await orUnavailable(discover);
      return document['authorization_response_iss_parameter_supported'] === true;
    },

    async redeem(code, verifier) {
      const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier };
      const fetched = await orUnavailable(async () => {
        const { headers, fields } = identify(options, await discover());
        const body = new URLSearchParams({ ...form, ...fields }).toString();
        const type = { 'content-type': 'application/x-www-form-urlencoded' };
        return fetchBounded(await endpoint('token_endpoint'), fetchBy, {
          method: 'POST',
          headers: { ...type, ...headers },
          body,
        });
      });
      return readTokens(fetched);
    },

    userinfo: (accessToken) =>
      orUnavailable(async () => {
        if ((await discover())['userinfo_endpoint'] === undefined) return undefined;
        const headers = { authorization: `Bearer ${accessToken}` };
        const claims = await fetchJson(await endpoint('userinfo_endpoint'), fetchBy, headers);
        if (!isObject(claims)) throw new Error('the userinfo endpoint did not return an object');
        return claims;
      }),
  };
}

/** Discovery document, cached for ten minutes; concurrent readers share one request. */
function createDiscovery(
  { discovery, issuer }: OpenIdOptions,
  now: () => number,
  fetchBy: Fetch,
): () => Promise<DiscoveryDocument> {
  let known: { readonly document: DiscoveryDocument; readonly readAt: number } | undefined;
  let running: Promise<DiscoveryDocument> | undefined;
  return async () => {
    if (known && now() - known.readAt < FRESH_MS) return known.document;
    running ??= fetchDiscovery(discovery, issuer, fetchBy)
      .then((document) => {
        known = { document, readAt: now() };
        return document;
      })
      .finally(() => (running = undefined));
    return running;
  };
}

/** Client authentication at the token endpoint, by a method that the provider supports (RFC 6749, section 2.3.1). */
function identify(
  { clientId, clientSecret, clientAuth }: OpenIdOptions,
  document: DiscoveryDocument,
): { readonly headers: Readonly<Record<string, string>>; readonly fields: Readonly<Record<string, string>> } {
  if (clientSecret === undefined) return { headers: {}, fields: { client_id: clientId } };
  const methods = document['token_endpoint_auth_methods_supported'];
  const takesBasic = !Array.isArray(methods) || methods.includes('client_secret_basic');
  if (clientAuth === 'form' || (clientAuth === undefined && !takesBasic))
    return { headers: {}, fields: { client_id: clientId, client_secret: clientSecret } };
  const pair = `${encodeForm(clientId)}:${encodeForm(clientSecret)}`;
  return { headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }, fields: {} };
}

function encodeForm(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

const CLIENT_ERRORS: ReadonlySet<unknown> = new Set([
  ...['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'],
]);

function readTokens({ status, text }: Fetched): Tokens {
  const body = readBody(status, text);
  if (status !== 200) {
    const error = new Error(`the token endpoint returned status ${status}: ${String(body['error']).slice(0, 100)}`);
    if (status === 401 || CLIENT_ERRORS.has(body['error'])) throw clientRefused(error);
    throw status === 400 ? signInRefused(error) : providerUnavailable(error);
  }
  const { id_token: idToken, access_token: accessToken } = body;
  if (typeof idToken !== 'string') throw signInRefused(new Error('the token endpoint returned no ID token'));
  return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : undefined };
}

function readBody(status: number, text: string): Readonly<Record<string, unknown>> {
  const body = parseJson(text);
  if (isObject(body)) return body;
  throw providerUnavailable(new Error(`the token endpoint returned status ${status} and no JSON object`));
}

/** Turns every failure of a request to the provider into one error. */
async function orUnavailable<R>(work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    throw providerUnavailable(error);
  }
}
