import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { GatewayError } from '../../contract/errors.ts';

/** Caller's own token at a vendor, which is sent there in place of the operator's key. */
export interface OwnToken {
  readonly token: string;
  /** Other headers of the caller, without credentials. */
  readonly headers: IncomingHttpHeaders;
}

/**
 * Tokens by HTTP request and by the chat that it brought. No plugin can read them, and they are released with these
 * objects.
 */
const ownTokens = new WeakMap<object, OwnToken>();

/** Copies the token of an HTTP request to its chat. Returns whether there is one. */
export function shareOwnToken(http: object, client: object): boolean {
  const token = ownTokens.get(http);
  if (token) ownTokens.set(client, token);
  return token !== undefined;
}

/** Returns the token of a chat. */
export function tokenOf(client: object | undefined): OwnToken | undefined {
  return client && ownTokens.get(client);
}

/** Rules for tokens of callers. By default none is accepted. */
export interface TokenRules {
  /** Returns whether a provider accepts the token in place of the operator's key. */
  readonly takesToken?: ((token: string) => boolean) | undefined;
  /** Returns whether a token belongs to the vendor of the route's format. Clients of that vendor send it there only. */
  readonly isOfFormat?: ((token: string) => boolean) | undefined;
}

/**
 * Takes the token that was sent in addition to a gateway key. Throws if the token would be ignored, since the operator
 * would pay.
 */
export function takeOwnToken(
  request: IncomingMessage,
  [token, ...more]: readonly string[],
  { takesToken, isOfFormat }: TokenRules,
  headers: IncomingHttpHeaders,
): void {
  if (token === undefined) return;
  const isSent = isOfFormat?.(token) === true;
  // Requests that only read cost nothing.
  if (more.length > 0 || !takesToken?.(token) || !(isSent || request.method === 'GET'))
    throw new GatewayError(
      'ambiguous_credentials',
      "The token of your own subscription was sent in addition to a gateway key, which is not supported here. Send only the gateway's key.",
    );
  if (isSent) ownTokens.set(request, { token, headers });
}
