import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Configuration } from 'oidc-provider';
import { createSigner } from './tokens.ts';

const SECRET = 'a secret of a test client';
/** Lifetimes in seconds. The provider prints a note for each kind without one. */
export const LIFETIMES = {
  AccessToken: 600,
  ClientCredentials: 600,
  Grant: 3600,
  IdToken: 3600,
  Interaction: 3600,
  Session: 3600,
};

const SCOPES = ['accounts:read', 'keys:write', 'keys:read'];

/** Real OpenID provider in this process, on a loopback port, for clients that get tokens by client credentials. */
export interface OpenIdProvider {
  readonly issuer: string;
  /** Requested paths, in order. */
  readonly requests: readonly string[];
  /** Real access token for one of the users, from a real request to the token endpoint. */
  token(user: string, scope?: string, audience?: string): Promise<string>;
  /** Replaces the signing key: earlier tokens no longer verify. */
  rotateKeys(): Promise<void>;
  /** Stops listening; all requests are refused. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  stop(): Promise<void>;
}

export interface ProviderOptions {
  /** Users, and the claims of their tokens in addition to the standard ones. */
  readonly users: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly audience: string;
}

export async function startOpenIdProvider({ users, audience }: ProviderOptions): Promise<OpenIdProvider> {
  const requests: string[] = [];
  let respond: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;

  async function listen(on: number): Promise<Server> {
    const created = createServer((request, response) => {
      requests.push(request.url ?? '');
      respond(request, response);
    });
    await new Promise<void>((resolve, reject) => created.once('error', reject).listen(on, '127.0.0.1', resolve));
    return created;
  }

  async function close(): Promise<void> {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  let generation = 0;
  async function openProvider(): Promise<void> {
    generation += 1;
    const { privateJwk } = await createSigner(`key-${generation}`);
    respond = new Provider(issuer, configure(users, audience, privateJwk)).callback();
  }
  await openProvider();

  return {
    issuer,
    requests,
    async token(user, scope = 'keys:write', resource = audience) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${user}:${encodeURIComponent(SECRET)}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource: `urn:${resource}` }),
      });
      const body = (await response.json()) as { access_token?: string };
      if (body.access_token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
      return body.access_token;
    },
    rotateKeys: openProvider,
    goAway: close,
    async comeBack() {
      server = await listen(port);
    },
    stop: close,
  };
}

function configure(users: ProviderOptions['users'], audience: string, key: object): Configuration {
  return {
    jwks: { keys: [key] },
    scopes: SCOPES,
    ttl: LIFETIMES,
    clients: Object.keys(users).map((user) => ({
      client_id: user,
      client_secret: SECRET,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      scope: SCOPES.join(' '),
    })),
    extraTokenClaims: (_ctx, token) => users[token.clientId ?? ''],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => `urn:${audience}`,
        getResourceServerInfo: (_ctx, resource) => ({
          scope: SCOPES.join(' '),
          audience: resource.replace(/^urn:/, ''),
          accessTokenTTL: 600,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
}
