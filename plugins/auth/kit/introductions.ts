/** The page where a person approves that a program signs in as them. */
export const DEVICE_PATH = '/device';

/** What `openid` shares: the people who have just signed in for {@link DEVICE_PATH}, by the hash of what their browser has. */
export const INTRODUCTIONS = 'introductions';

/** How long a person has to approve, once they signed in. */
export const INTRODUCTION_MS = 10 * 60_000;

/** Who a person is, as the identity provider says. */
export interface IntroducedPerson {
  readonly userId: string;
  /** What to call them; for people to read. */
  readonly name?: string;
  /** Only one that the provider does not call unverified. */
  readonly email?: string;
  /** All words of the claims that `openid` looks for roles in. */
  readonly words: readonly string[];
}

/** A person in one browser, who signed in for one page. */
export interface Introduction extends IntroducedPerson {
  /** The path that the sign-in was for; it names the code that the person may approve. */
  readonly returnTo: string;
}

/** Whether a sign-in is for that page: everybody whom the provider knows may come there, operator or not. */
export function isForDevices(returnTo: string): boolean {
  return returnTo.split('?', 1)[0] === DEVICE_PATH;
}
