import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Endpoint, HttpRequest, Offer, UpstreamFailure } from '../../contract/provider.ts';
import type { Call } from './call.ts';

/** A caller's own token at a vendor, which goes there in place of the operator's key. */
export interface OwnToken {
  readonly token: string;
  /** What else the caller sent, without credentials. */
  readonly headers: IncomingHttpHeaders;
}

/** By the HTTP request that brought it, and by the way in of its call: no plugin can read it, and nothing keeps it longer than the two. */
export const ownTokens = new WeakMap<object, OwnToken>();

/** Where tokens of callers are taken; nowhere unless set. */
export interface TokenRules {
  /** Whether some provider takes a token in place of the operator's key. */
  readonly takesToken?: ((token: string) => boolean) | undefined;
  /** Whether a token is of the vendor whose format the route is in: only there a client of that vendor's sends it. */
  readonly isOfFormat?: ((token: string) => boolean) | undefined;
}

/** Takes the token that came with a request beside its key. Throws where it would be thrown away, and the operator would pay. */
export function takeOwnToken(
  request: IncomingMessage,
  [token, ...more]: readonly string[],
  { takesToken, isOfFormat }: TokenRules,
  headers: IncomingHttpHeaders,
): void {
  if (token === undefined) return;
  const isSent = isOfFormat?.(token) === true;
  // What only reads costs nobody anything.
  if (more.length > 0 || !takesToken?.(token) || !(isSent || request.method === 'GET'))
    throw new GatewayError(
      'ambiguous_credentials',
      "The token of your own subscription was sent in addition to a gateway key, which is not supported here. Send only the gateway's key.",
    );
  if (isSent) ownTokens.set(request, { token, headers });
}

/** Keeps a call with a caller's own token at the first provider that takes it: nobody else may see it, and nobody else is to pay. */
export function keepAtOwner(call: Call, offers: ReadonlyMap<string, Offer>): void {
  const { token = '' } = tokenOf(call) ?? {};
  const first = call.targets.find(({ provider }) => offers.get(provider)?.passThroughAuth?.isToken(token));
  if (!first) throw notTaken(call.targets[0]);
  call.replaceTargets(call.targets.filter(({ provider }) => provider === first.provider));
  call.route.hedge = undefined;
  call.route.overflow = undefined;
}

/**
 * An endpoint with the caller's own token for a key, and a request as the vendor takes it beside one. Throws for a provider that does
 * not take the token, and for a second one after the first.
 */
export function withOwnToken(
  call: Call,
  target: Target,
  endpoint: Endpoint,
  request: HttpRequest,
): { readonly endpoint: Endpoint; readonly request: HttpRequest } {
  const own = tokenOf(call);
  const { passThroughAuth: rules } = endpoint;
  const isElsewhere = call.record.attempts.some((attempt) => attempt.target.provider !== target.provider);
  if (!own || isElsewhere || !rules?.isToken(own.token)) throw notTaken(target);
  const headers = rules.headers(request.headers ?? {}, own.headers);
  return {
    endpoint: { ...endpoint, credential: { ...rules.credential, value: own.token, required: true } },
    request: { ...request, headers },
  };
}

/** Says that it was the caller's own token that a vendor refused: a client that gets 401 signs in again. */
export function refuseOwnToken({ provider }: Target, status: number, { class: kind }: UpstreamFailure): void {
  if (kind !== 'authentication' && kind !== 'billing') return;
  const code = kind === 'billing' ? 'insufficient_balance' : status === 403 ? 'permission_denied' : 'invalid_api_key';
  throw new GatewayError(
    code,
    `The provider "${provider}" rejected the token of your own subscription. Sign in again with your client, or send only the gateway's key.`,
  );
}

function tokenOf({ client }: Call): OwnToken | undefined {
  return client && ownTokens.get(client);
}

function notTaken(target: Target | undefined): GatewayError {
  return new GatewayError(
    'ambiguous_credentials',
    `The provider "${target?.provider ?? '-'}" does not accept the token of your own subscription. Use a model of its provider, or send only the gateway's key.`,
  );
}
