import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Claims, createSigner, type TestSigner } from './tokens.ts';

/** Handler of a path of the provider. */
export type Respond = (response: ServerResponse, body: string) => void;

/** Valid OpenID provider whose responses a test can replace. */
export interface ScriptedOpenId {
  readonly issuer: string;
  readonly signer: TestSigner;
  /** Response of each path; a test replaces some and `reset` restores them. */
  readonly paths: Map<string, Respond>;
  /** Forms that the token endpoint received. */
  readonly forms: readonly URLSearchParams[];
  /** Makes the token endpoint return this ID token with an access token. */
  give(idToken: string): void;
  /** Claims of a valid ID token for the client `gateway`. */
  claims(nonce: string): Claims;
  /** Adds members to the discovery document; undefined removes one. */
  discover(more: Readonly<Record<string, unknown>>): void;
  reset(): void;
  stop(): Promise<void>;
}

export async function startScriptedOpenId(): Promise<ScriptedOpenId> {
  const signer = await createSigner('scripted');
  const paths = new Map<string, Respond>();
  const forms: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const path = (request.url ?? '').split('?', 1)[0] ?? '';
      if (path === '/token') forms.push(new URLSearchParams(body));
      const respond = paths.get(path);
      if (respond) respond(response, body);
      else response.writeHead(404).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const document = {
    ...{ issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` },
    ...{ jwks_uri: `${issuer}/jwks`, userinfo_endpoint: `${issuer}/userinfo` },
  };
  const discover = (more: Readonly<Record<string, unknown>>): void =>
    void paths.set('/.well-known/openid-configuration', json({ ...document, ...more }));
  const reset = (): void => {
    paths.clear();
    forms.length = 0;
    discover({});
    paths.set('/jwks', json({ keys: [signer.publicJwk] }));
  };
  reset();
  return {
    ...{ issuer, signer, paths, forms, discover, reset },
    give: (idToken) =>
      void paths.set('/token', json({ id_token: idToken, access_token: 'an-access-token', token_type: 'Bearer' })),
    claims: (nonce) => ({
      ...{ iss: issuer, aud: 'gateway', sub: 'ann', nonce, roles: ['admin'], scope: undefined },
    }),
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** JSON response. */
export function json(body: unknown, status = 200): Respond {
  return (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Challenge of a verifier (RFC 7636). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}
