import { GatewayError } from '../../../contract/index.ts';
import { LOGIN_PATH } from './paths.ts';

const RETRY_MS = 5000;

/** The provider is unavailable, or its response is invalid: the person's access is unknown. */
export function providerUnavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The identity provider cannot be reached or does not answer as it should, so nobody can sign in right now. Try again shortly; API keys and running sessions work meanwhile.',
    { retryAfterMs: RETRY_MS, cause },
  );
}

/** The provider does not accept this gateway as a client. */
export function clientRefused(cause: unknown): GatewayError {
  return new GatewayError(
    'feature_disabled',
    'The identity provider refuses this gateway as its client. The operator corrects "clientId", "clientSecret" and the redirect URI under auth.openid; the log says what the provider said.',
    { cause },
  );
}

/** The same message for every reason: details are in the log, for the operator. */
export function signInRefused(cause: unknown): GatewayError {
  return new GatewayError(
    'invalid_token',
    `What the identity provider sent for this sign-in is not valid here, or was used before. Begin again at ${LOGIN_PATH}.`,
    { cause },
  );
}
