import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Configuration } from 'oidc-provider';
import { LIFETIMES } from './openid-provider.ts';
import { createSigner } from './tokens.ts';

export const CLIENT_SECRET = 'a secret: of a test client?';

/** Real OpenID provider in this process, which signs in the person set by the test. */
export interface OpenIdPeople {
  readonly issuer: string;
  /** Method and path of each request, in order. */
  readonly requests: readonly string[];
  /** Person who signs in at the next interaction; undefined refuses. */
  person: string | undefined;
  /** Stops listening; all requests are refused. */
  goAway(): Promise<void>;
  stop(): Promise<void>;
}

export interface PeopleOptions {
  /** People, and their claims in addition to `sub`. */
  readonly people: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly redirectUris: readonly string[];
  /** True if the ID token has only the claims that OpenID requires, and the userinfo endpoint has the others. */
  readonly bareIdTokens?: boolean;
}

/** Clients: `gateway` (with {@link CLIENT_SECRET}, by basic), `posting` (by the form), `public` (without a secret). */
export async function startOpenIdPeople(options: PeopleOptions): Promise<OpenIdPeople> {
  const requests: string[] = [];
  let provider: Provider;
  let respond: ReturnType<Provider['callback']>;
  const people = { person: undefined as string | undefined };
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    requests.push(`${request.method} ${path}`);
    if (!path.startsWith('/interaction/')) return respond(request, response);
    const { person } = people;
    const result = person === undefined ? { error: 'access_denied' } : { login: { accountId: person } };
    void provider.interactionFinished(request, response, result).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateJwk } = await createSigner('people');
  provider = new Provider(issuer, configure(options, privateJwk));
  respond = provider.callback();
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return Object.assign(people, { issuer, requests, goAway: close, stop: close });
}

function configure({ people, redirectUris, bareIdTokens = false }: PeopleOptions, key: object): Configuration {
  const client = { redirect_uris: redirectUris, grant_types: ['authorization_code'], response_types: ['code'] };
  const secret = { client_secret: CLIENT_SECRET };
  return {
    jwks: { keys: [key] },
    cookies: { keys: ['a key of a test'] },
    ttl: LIFETIMES,
    clients: [
      { ...client, ...secret, client_id: 'gateway', token_endpoint_auth_method: 'client_secret_basic' },
      { ...client, ...secret, client_id: 'posting', token_endpoint_auth_method: 'client_secret_post' },
      { ...client, client_id: 'public', token_endpoint_auth_method: 'none' },
    ],
    claims: { openid: ['sub'], profile: ['name', 'roles', 'realm'], email: ['email'] },
    conformIdTokenClaims: bareIdTokens,
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, ...people[id] }) }),
    // All people have already consented.
    async loadExistingGrant({ oidc: { client, session, provider } }) {
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email');
      await grant.save();
      return grant;
    },
    features: { devInteractions: { enabled: false } },
  };
}
