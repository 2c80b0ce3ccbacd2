import { type Counters, GatewayError } from '../../../contract/index.ts';
import { type Documents, withStore } from '../kit/documents.ts';
import { deriveSecret, hashId, isSame, randomId } from '../kit/random-id.ts';
import { LOGIN_PATH } from './paths.ts';

/** Stored state of a sign-in until the provider sends the browser back. It does not suffice to finish the sign-in. */
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
  begin(browser: string, returnTo: string): Promise<LoginSecrets>;
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
const STATE = /^[\w-]{43}$/;

export function createPendingLogins(
  pending: Documents<PendingLogin>,
  counters: Pick<Counters, 'lease'>,
): PendingLogins {
  return {
    async begin(browser, returnTo) {
      const state = randomId();
      await pending.set(hashId(state), { browser: hashId(browser), returnTo }, LOGIN_MS);
      return secretsOf(browser, state);
    },

    async take(browser, state, now) {
      if (browser === undefined || state === undefined || !STATE.test(state)) throw notBegun();
      const key = hashId(state);
      const login = await pending.get(key);
      if (!login || !isSame(login.browser, hashId(browser))) throw notBegun();
      // Of several requests with the same state, on any node, only one continues.
      if (!(await withStore(() => counters.lease(`login.${key}`, randomId(), 1, LOGIN_MS, now)))) throw notBegun();
      await pending.delete(key);
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
