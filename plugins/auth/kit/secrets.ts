import { type Counters, GatewayError } from '../../../contract/index.ts';
import { type Documents, withStore } from './documents.ts';
import { hashId, randomId } from './random-id.ts';

/** Stored form of a secret, under its hash. */
export interface StoredSecret<T> {
  readonly facts: T;
  /** Hash of the owner, whose number of secrets is bounded. */
  readonly owner: string;
  /** Unix milliseconds. */
  readonly endsAt: number;
}

/**
 * Secrets for one use within minutes, such as links and codes, shared by all nodes. The store has their hashes, so that
 * its content does not suffice to use them. `now` is in Unix milliseconds.
 */
export interface Secrets<T> {
  /**
   * Stores facts and returns their secret: 256 random bits, or the one that is passed. An owner is a user or a network;
   * throws `rate_limited` if it has {@link MOST} secrets.
   */
  put(owner: string, facts: T, now: number, secret?: string): Promise<string>;
  /** Finds the facts of a secret without using it up; undefined if it was used, expired or never existed. */
  find(secret: string, now: number): Promise<T | undefined>;
  /** Uses a secret up. Of several concurrent uses, on any node, only one gets the facts. */
  take(secret: string, now: number): Promise<T | undefined>;
  /** Calls `use` with the facts, as `take`. If it throws, the secret is not used up. */
  take<R>(secret: string, now: number, use: (facts: T) => Promise<R>): Promise<R | undefined>;
}

/** Maximum secrets of one kind per owner at a time. */
export const MOST = 300;

export function createSecrets<T>(
  name: string,
  ttlMs: number,
  documents: Documents<StoredSecret<T>>,
  counters: Pick<Counters, 'lease' | 'release'>,
): Secrets<T> {
  const ownedBy = (owner: string): string => `${name}-of.${owner}`;

  return {
    async put(owner, facts, now, secret = randomId()) {
      const key = hashId(secret);
      const hashed = hashId(owner);
      if (!(await withStore(() => counters.lease(ownedBy(hashed), key, MOST, ttlMs, now)))) throw tooMany(ttlMs);
      await documents.set(key, { facts, owner: hashed, endsAt: now + ttlMs }, ttlMs);
      return secret;
    },

    find: (secret, now) => findSecret(documents, secret, now),

    async take<R>(secret: string, now: number, use?: (facts: T) => Promise<R>) {
      const key = hashId(secret);
      const stored = await look(documents, key, now);
      const holder = randomId();
      if (!stored || !(await withStore(() => counters.lease(`${name}.${key}`, holder, 1, ttlMs, now))))
        return undefined;
      const result = use ? await use(stored.facts).catch(release(`${name}.${key}`, holder)) : stored.facts;
      // Used up by the lease above: if the removal fails, the document expires.
      await Promise.allSettled([documents.delete(key), counters.release(ownedBy(stored.owner), key)]);
      return result as R & T;
    },
  };

  function release(key: string, holder: string): (error: unknown) => Promise<never> {
    return async (error) => {
      await counters.release(key, holder).catch(() => undefined);
      throw error;
    };
  }
}

/** Finds the facts of a secret that another plugin stores and shares. */
export async function findSecret<T>(
  documents: Pick<Documents<StoredSecret<T>>, 'get'>,
  secret: string,
  now: number,
): Promise<T | undefined> {
  return (await look(documents, hashId(secret), now))?.facts;
}

async function look<T>(
  documents: Pick<Documents<StoredSecret<T>>, 'get'>,
  key: string,
  now: number,
): Promise<StoredSecret<T> | undefined> {
  const stored = await withStore(() => documents.get(key));
  return stored && now < stored.endsAt ? stored : undefined;
}

function tooMany(retryAfterMs: number): GatewayError {
  return new GatewayError('rate_limited', 'Too many sign-ins from here are not finished. Try again in some minutes.', {
    retryAfterMs,
  });
}
