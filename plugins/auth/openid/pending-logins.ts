import { type Counters, GatewayError } from '../../../contract/index.ts';
import { type Documents, withStore } from '../kit/documents.ts';
import { deriveSecret, hashId, isSame, randomId } from '../kit/random-id.ts';
import { LOGIN_PATH } from './paths.ts';

/** What is kept of a sign-in until the provider sends the browser back. Nothing in it would help to finish it. */
export interface PendingLogin {
  /** The hash of what the browser has in its cookie. */
  readonly browser: string;
  readonly returnTo: string;
}

/** A sign-in under way: what goes to the provider now, and what is held against its response later. */
export interface LoginSecrets {
  readonly state: string;
  /** In the ID token, so that a token of another sign-in is refused here. */
  readonly nonce: string;
  /** PKCE: only who knows it can redeem the code. */
  readonly verifier: string;
}

/** Sign-ins that were begun, each tied to one browser and used once. `now` is in Unix milliseconds. */
export interface PendingLogins {
  begin(browser: string, returnTo: string): Promise<LoginSecrets>;
  /** The sign-in that a browser comes back from; throws `invalid_request` for one that it did not begin, or that was used. */
  take(
    browser: string | undefined,
    state: string | undefined,
    now: number,
  ): Promise<LoginSecrets & { readonly returnTo: string }>;
}

/** How long a person may take at the provider. */
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
      // Of several that come with the same state, on whichever node, one goes on.
      if (!(await withStore(() => counters.lease(`login.${key}`, randomId(), 1, LOGIN_MS, now)))) throw notBegun();
      await pending.delete(key);
      return { ...secretsOf(browser, state), returnTo: login.returnTo };
    },
  };
}

/** Made of what only this browser has: neither the store nor the provider can tell them. */
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
