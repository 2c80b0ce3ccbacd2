import type { Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Endpoint, HttpRequest, Offer, UpstreamFailure } from '../../contract/provider.ts';
import type { Call } from './call.ts';
import { tokenOf } from './own-token.ts';

/**
 * Restricts a call with a caller's own token to the first provider that accepts it. No other provider may see the
 * token, and no other account may be charged.
 */
export function keepAtOwner(call: Call, offers: ReadonlyMap<string, Offer>): void {
  const { token = '' } = tokenOf(call.client) ?? {};
  const first = call.targets.find(({ provider }) => offers.get(provider)?.passThroughAuth?.isToken(token));
  if (!first) throw notTaken(call.targets[0]);
  call.replaceTargets(call.targets.filter(({ provider }) => provider === first.provider));
  call.record.hedge = undefined;
  call.record.overflow = undefined;
}

/**
 * Returns an endpoint with the caller's own token as its key, and the request with the headers for it. Throws if the
 * provider does not accept the token, or if another provider was tried before.
 */
export function withOwnToken(
  call: Call,
  target: Target,
  endpoint: Endpoint,
  request: HttpRequest,
): { readonly endpoint: Endpoint; readonly request: HttpRequest } {
  const own = tokenOf(call.client);
  const { passThroughAuth: rules } = endpoint;
  const isElsewhere = call.record.attempts.some((attempt) => !attempt.target.startsWith(`${target.provider}/`));
  if (!own || isElsewhere || !rules?.isToken(own.token)) throw notTaken(target);
  const headers = rules.headers(request.headers ?? {}, own.headers);
  return {
    endpoint: { ...endpoint, credential: { ...rules.credential, value: own.token, required: true } },
    request: { ...request, headers },
  };
}

/** Throws an error that names the caller's own token if a vendor rejected it. Clients sign in again on a 401. */
export function refuseOwnToken({ provider }: Target, status: number, { class: kind }: UpstreamFailure): void {
  if (kind !== 'authentication' && kind !== 'billing') return;
  const code = kind === 'billing' ? 'insufficient_balance' : status === 403 ? 'permission_denied' : 'invalid_api_key';
  throw new GatewayError(
    code,
    `The provider "${provider}" rejected the token of your own subscription. Sign in again with your client, or send only the gateway's key.`,
  );
}

function notTaken(target: Target | undefined): GatewayError {
  return new GatewayError(
    'ambiguous_credentials',
    `The provider "${target?.provider ?? '-'}" does not accept the token of your own subscription. Use a model of its provider, or send only the gateway's key.`,
  );
}
