/** Page on which a person approves the sign-in of a program. */
export const DEVICE_PATH = '/device';

/**
 * Name under which `openid` shares people who just signed in for {@link DEVICE_PATH}, by the hash of their browser's
 * cookie.
 */
export const INTRODUCTIONS = 'introductions';

/** Time for a person to approve after signing in. */
export const INTRODUCTION_MS = 10 * 60_000;

/** Identity of a person, by the identity provider. */
export interface IntroducedPerson {
  readonly userId: string;
  /** Display name. */
  readonly name?: string;
  /** Absent if the provider calls it unverified. */
  readonly email?: string;
  /** All words of the claims in which `openid` looks for roles. */
  readonly words: readonly string[];
}

/** Person in one browser, signed in for one page. */
export interface Introduction extends IntroducedPerson {
  /** Path for which the person signed in; it contains the code that they may approve. */
  readonly returnTo: string;
}

/** True for a sign-in to that page, which is open to everyone known to the provider, operator or not. */
export function isForDevices(returnTo: string): boolean {
  return returnTo.split('?', 1)[0] === DEVICE_PATH;
}
