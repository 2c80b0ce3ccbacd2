import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/client';
import { GatewayError, isGatewayError, type PluginApi } from '../../contract/index.ts';
import { boundedFetch } from './bounded-fetch.ts';
import type { OAuthOptions, ServerOptions } from './config-schema.ts';
import type { Sdk } from './sdk.ts';
import { createSealer, type OAuthClient, type StoredTokens, type TokenBook, type UserTokens } from './token-book.ts';

const MAX_BYTES = 256 * 1024;
const MAX_MS = 15_000;

/** Age after which metadata is fetched again. */
const FRESH_MS = 10 * 60_000;

/** Time before its end at which a token is renewed. */
const EARLY_MS = 60_000;

/** Path of the redirect URI, below the public URL. */
export const CALLBACK_PATH = '/mcp/callback';

interface AuthorizationDeps {
  readonly sdk: () => Promise<Sdk>;
  readonly api: Pick<PluginApi, 'fetch' | 'keyv' | 'log'>;
  readonly book: TokenBook;
  readonly publicUrl: string;
  readonly tokenKey: string;
}

interface Metadata {
  readonly server: AuthorizationServerMetadata;
  readonly at: number;
}

/** Begun authorization of one user. */
export interface BegunAuthorization {
  readonly url: string;
  readonly verifier: string;
  readonly client: OAuthClient;
}

/** OAuth 2.1 of one server: accounts of users, their tokens, and the gateway as a client. */
export class Authorization {
  readonly name: string;
  readonly #url: string;
  readonly #options: OAuthOptions;
  readonly #deps: AuthorizationDeps;
  readonly #fetch: ReturnType<typeof boundedFetch>;
  readonly #renewals = new Map<string, Promise<UserTokens>>();
  #metadata: Metadata | undefined;

  constructor({ name, url = '' }: ServerOptions, options: OAuthOptions, deps: AuthorizationDeps) {
    this.name = name;
    this.#url = url;
    this.#options = options;
    this.#deps = deps;
    this.#fetch = boundedFetch(deps.api.fetch, { maxBytes: MAX_BYTES, maxMs: MAX_MS, allowsGet: true });
  }

  get redirectUri(): string {
    return `${this.#deps.publicUrl.replace(/\/$/, '')}${CALLBACK_PATH}`;
  }

  /** Returns the page of the authorization server for one user. `state` is bound to that user by the caller. */
  async begin(state: string): Promise<BegunAuthorization> {
    const { client: sdk } = await this.#deps.sdk();
    const metadata = await this.#discover();
    const client = await this.#client(metadata);
    const { scopes } = this.#options;
    const { authorizationUrl, codeVerifier } = await this.#attempt(() =>
      sdk.startAuthorization(this.#options.issuer, {
        metadata,
        clientInformation: client,
        redirectUrl: this.redirectUri,
        state,
        resource: this.#url,
        ...(scopes && { scope: scopes.join(' ') }),
      }),
    );
    return { url: authorizationUrl.href, verifier: codeVerifier, client };
  }

  /** Redeems a code for the tokens of a user. Rejects for another issuer than the configured one. */
  async finish(user: string, { code, iss, verifier, client, version }: FinishedAuthorization): Promise<void> {
    const { client: sdk } = await this.#deps.sdk();
    const metadata = await this.#discover();
    const tokens = await this.#attempt(() =>
      sdk.exchangeAuthorization(this.#options.issuer, {
        metadata,
        clientInformation: client,
        authorizationCode: code,
        codeVerifier: verifier,
        redirectUri: this.redirectUri,
        resource: this.#url,
        fetchFn: this.#fetch,
        ...(iss !== undefined && { iss }),
      }),
    );
    const saved = tokensOf(tokens, client);
    if (await this.#deps.book.save(user, this.name, version, saved)) return;
    await this.#revokeUnused(saved);
    throw this.notConnected();
  }

  /** Returns the access token of a user. `refused`: a token that the server did not accept. Throws without a connection. */
  async token(user: string, refused?: string): Promise<string> {
    const stored = await this.#deps.book.find(user, this.name);
    if (!stored) throw this.notConnected();
    const { tokens } = stored;
    const isOld = (tokens.expiresAt ?? Number.POSITIVE_INFINITY) - EARLY_MS < Date.now();
    if (!isOld && tokens.access !== refused) return tokens.access;
    return (await this.#renew(user, stored)).access;
  }

  /** Renews the tokens of a user once, also for several calls at the same time. */
  #renew(user: string, tokens: StoredTokens): Promise<UserTokens> {
    const running = this.#renewals.get(user);
    if (running) return running;
    const renewal = this.#refresh(user, tokens).finally(() => this.#renewals.delete(user));
    this.#renewals.set(user, renewal);
    return renewal;
  }

  async #refresh(user: string, { version, tokens }: StoredTokens): Promise<UserTokens> {
    const { book } = this.#deps;
    const { client, refresh } = tokens;
    let renewed: UserTokens;
    try {
      if (refresh === undefined) throw this.notConnected();
      const { client: sdk } = await this.#deps.sdk();
      const metadata = await this.#discover();
      const granted = await sdk.refreshAuthorization(this.#options.issuer, {
        metadata,
        clientInformation: client,
        refreshToken: refresh,
        resource: this.#url,
        fetchFn: this.#fetch,
      });
      renewed = tokensOf({ refresh_token: refresh, ...granted }, client);
    } catch (error) {
      // Another process may have renewed them: a refresh token is valid once.
      const stored = await book.find(user, this.name);
      if (stored && stored.version !== version) return stored.tokens;
      if (!isRejected(error)) throw this.#explain(error);
      if (stored) await book.remove(user, this.name);
      throw this.notConnected();
    }
    if (await book.renew(user, this.name, version, renewed)) return renewed;
    // Replaced by another process, or disconnected meanwhile.
    const stored = await book.find(user, this.name);
    if (stored) return stored.tokens;
    await this.#revokeUnused(renewed);
    throw this.notConnected();
  }

  /** Revokes the tokens of a user here, and at the authorization server if it supports that. */
  async revoke(user: string): Promise<boolean> {
    const stored = await this.#deps.book.find(user, this.name);
    const isRemoved = await this.#deps.book.remove(user, this.name);
    if (stored) await this.#revokeUnused(stored.tokens);
    return isRemoved;
  }

  /** Revokes tokens that are not stored, or no longer, if the authorization server supports that. */
  async #revokeUnused(tokens: UserTokens): Promise<void> {
    await this.#revokeAtServer(tokens).catch((error: unknown) => this.#note(error));
  }

  async #revokeAtServer({ access, refresh, client }: UserTokens): Promise<void> {
    const { revocation_endpoint: endpoint } = (await this.#discover()) as Readonly<Record<string, unknown>>;
    if (typeof endpoint !== 'string') return;
    const { client_id, client_secret } = client;
    const response = await this.#fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        token: refresh ?? access,
        client_id,
        ...(client_secret !== undefined && { client_secret }),
      }).toString(),
    });
    await response.body?.cancel();
  }

  async isConnected(user: string): Promise<boolean> {
    return (await this.#deps.book.find(user, this.name)) !== undefined;
  }

  notConnected(): GatewayError {
    return new GatewayError(
      'permission_denied',
      `You have not connected an account at the MCP server "${this.name}". Send POST /mcp/${this.name}/connect with your key, and open the link.`,
    );
  }

  /** Metadata of the authorization server, which the server's own metadata must name if it has any. */
  async #discover(): Promise<AuthorizationServerMetadata> {
    if (this.#metadata && Date.now() - this.#metadata.at < FRESH_MS) return this.#metadata.server;
    const { client: sdk } = await this.#deps.sdk();
    const { issuer } = this.#options;
    const server = await this.#attempt(async () => {
      const resource = await sdk
        .discoverOAuthProtectedResourceMetadata(this.#url, {}, this.#fetch)
        .catch((error: unknown) => this.#note(error));
      const issuers = resource?.authorization_servers ?? [issuer];
      if (!issuers.some((each) => withoutSlash(each) === withoutSlash(issuer)))
        throw new Error('its metadata names another authorization server than the configured issuer');
      const found = await sdk.discoverAuthorizationServerMetadata(issuer, { fetchFn: this.#fetch });
      if (!found) throw new Error('the authorization server has no metadata');
      if (!found.code_challenge_methods_supported?.includes('S256'))
        throw new Error('the authorization server does not support PKCE with S256');
      return found;
    });
    this.#metadata = { server, at: Date.now() };
    return server;
  }

  /** Client of the gateway: configured, registered before, or registered now. */
  async #client(metadata: AuthorizationServerMetadata): Promise<OAuthClient> {
    const { clientId, clientSecret, issuer, scopes } = this.#options;
    if (clientId !== undefined)
      return { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
    const clients = this.#deps.api.keyv<{ readonly sealed: string }>('clients');
    const sealer = createSealer(this.#deps.tokenKey);
    const owner = ['client', issuer, this.redirectUri];
    const key = Buffer.from(JSON.stringify(owner)).toString('base64url').slice(0, 500);
    const stored = await clients.get(key);
    const known = stored && (sealer.open(owner, stored) as OAuthClient | undefined);
    if (known) return known;
    const { client: sdk } = await this.#deps.sdk();
    const registered = await this.#attempt(() =>
      sdk.registerClient(issuer, {
        metadata,
        clientMetadata: {
          client_name: 'Tollgate',
          redirect_uris: [this.redirectUri],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'none',
          ...(scopes && { scope: scopes.join(' ') }),
        },
        fetchFn: this.#fetch,
      }),
    );
    const { client_id, client_secret } = registered;
    const client = { client_id, ...(client_secret !== undefined && { client_secret }) };
    await clients.set(key, sealer.seal(owner, client));
    return client;
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** Callers learn that it failed, operators why. */
  #explain(error: unknown): GatewayError {
    if (isGatewayError(error)) return error;
    this.#deps.api.log.warn({ server: this.name, err: error }, 'an authorization server failed');
    return new GatewayError(
      'provider_auth_failed',
      `The authorization server of the MCP server "${this.name}" refused or failed. Try again, or ask the operator.`,
      { cause: error },
    );
  }

  #note(error: unknown): undefined {
    this.#deps.api.log.debug({ server: this.name, err: error }, 'an authorization server does not support a request');
    return undefined;
  }
}

/** Response of an authorization server, with what was kept for it. */
interface FinishedAuthorization {
  readonly code: string;
  readonly iss: string | undefined;
  readonly verifier: string;
  readonly client: OAuthClient;
  /** Version of the user's tokens that the new ones replace. */
  readonly version: string;
}

function tokensOf({ access_token, refresh_token, expires_in, scope }: OAuthTokens, client: OAuthClient): UserTokens {
  return {
    access: access_token,
    client,
    ...(refresh_token !== undefined && { refresh: refresh_token }),
    ...(expires_in !== undefined && { expiresAt: Date.now() + expires_in * 1000 }),
    ...(scope !== undefined && { scope }),
  };
}

/** Returns whether tokens are of no more use: the authorization server rejected them, or there is no token to renew them. */
function isRejected(error: unknown): boolean {
  if (isGatewayError(error)) return error.code === 'permission_denied';
  const { code, errorCode } = error as { readonly code?: unknown; readonly errorCode?: unknown };
  return [code, errorCode].some((each) => each === 'invalid_grant' || each === 'invalid_client');
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}
