import { GatewayError } from '../../../contract/index.ts';
import { deriveSecret, hashId, isSame } from '../kit/random-id.ts';
import type { Secrets } from '../kit/secrets.ts';
import { LOGIN_PATH } from './paths.ts';

/** Sign-in until the provider sends the browser back, stored by its state. It does not suffice to finish the sign-in. */
export interface PendingLogin {
  /** Hash of the browser's cookie value. */
  readonly browser: string;
  readonly returnTo: string;
}

/** Sign-in in progress: values sent to the provider, and compared with its response later. */
export interface LoginSecrets {
  readonly state: string;
  /** Part of the ID token, so that a token of another sign-in is refused. */
  readonly nonce: string;
  /** PKCE: required to redeem the code. */
  readonly verifier: string;
}

/** Sign-ins in progress, each bound to one browser and used once. `now` is in Unix milliseconds. */
export interface PendingLogins {
  begin(network: string, browser: string, returnTo: string, now: number): Promise<LoginSecrets>;
  /**
   * Takes the sign-in with which a browser returns; throws `invalid_request` if the browser did not start it, or if it
   * was used.
   */
  take(
    browser: string | undefined,
    state: string | undefined,
    now: number,
  ): Promise<LoginSecrets & { readonly returnTo: string }>;
}

/** Time for a person to sign in at the provider. */
export const LOGIN_MS = 10 * 60_000;

export function createPendingLogins(pending: Secrets<PendingLogin>): PendingLogins {
  return {
    async begin(network, browser, returnTo, now) {
      return secretsOf(browser, await pending.put(network, { browser: hashId(browser), returnTo }, now));
    },

    async take(browser, state, now) {
      if (browser === undefined || state === undefined) throw notBegun();
      const login = await pending.find(state, now);
      if (!login || !isSame(login.browser, hashId(browser)) || !(await pending.take(state, now))) throw notBegun();
      return { ...secretsOf(browser, state), returnTo: login.returnTo };
    },
  };
}

/** Derived from the browser's cookie alone: neither the store nor the provider knows them. */
function secretsOf(browser: string, state: string): LoginSecrets {
  return {
    state,
    nonce: deriveSecret(browser, `nonce ${state}`),
    verifier: deriveSecret(browser, `verifier ${state}`),
  };
}

function notBegun(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `This sign-in was started in another browser, was already used or has expired. Start again at ${LOGIN_PATH}.`,
    { param: 'state' },
  );
}
