import { GatewayError } from '../../../contract/index.ts';
import { LOGIN_PATH } from './paths.ts';

const RETRY_MS = 5000;

/** The provider is unavailable, or its response is invalid: the person's access is unknown. */
export function providerUnavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The identity provider is unreachable or returned an invalid response. Try to sign in again shortly; API keys and existing sessions still work.',
    { retryAfterMs: RETRY_MS, cause },
  );
}

/** The provider does not accept this gateway as a client. */
export function clientRefused(cause: unknown): GatewayError {
  return new GatewayError(
    'feature_disabled',
    'The identity provider rejected this gateway as a client. Ask the operator to check "clientId", "clientSecret" and the redirect URI under auth.openid; the log has details.',
    { cause },
  );
}

/** The same message for every reason: details are in the log, for the operator. */
export function signInRefused(cause: unknown): GatewayError {
  return new GatewayError(
    'invalid_token',
    `The identity provider’s response to this sign-in is invalid or was already used. Start again at ${LOGIN_PATH}.`,
    { cause },
  );
}

/** Error responses of the provider (RFC 6749, section 4.1.2.1). Its own message is not passed on. */
export function refusedByProvider(error: string): GatewayError {
  const cause = new Error(`the provider returned the error "${error.replaceAll(/[^\w.-]/g, '?').slice(0, 60)}"`);
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
        'The identity provider rejected the sign-in, or you cancelled it. Sign in again or ask your administrator.',
        { cause },
      );
  }
}
