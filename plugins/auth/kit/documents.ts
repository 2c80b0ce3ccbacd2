import type Keyv from 'keyv';
import {
  type AccountDocuments,
  GatewayError,
  isGatewayError,
  type PersonalData,
  type Sets,
} from '../../../contract/index.ts';
import { hashId } from './random-id.ts';

/** Documents with an expiry, on a store whose failures never count as absence. */
export interface Documents<T> {
  get(key: string): Promise<T | undefined>;
  set(key: string, value: T, ttlMs: number): Promise<void>;
  delete(key: string): Promise<void>;
}

/** Turns every store error, and every write that was not done, into `store_unavailable`. */
export function createDocuments<T>(keyv: Keyv<T>): Documents<T> {
  return {
    get: (key) => withStore(() => keyv.get(key)),
    async set(key, value, ttlMs) {
      if (!(await withStore(() => keyv.set(key, value, Math.max(ttlMs, 1))))) throw unavailable(undefined);
    },
    async delete(key) {
      await withStore(() => keyv.delete(key));
    },
  };
}

/** Documents that count towards an account's storage. */
export interface StoredDocuments<T> extends Pick<Documents<T>, 'get' | 'delete'> {
  set(account: string, key: string, value: T, ttlMs: number): Promise<void>;
}

/**
 * Like {@link createDocuments}, within the storage limit of each account: the least recently written documents are
 * evicted, after everything else that the account stores.
 */
export function createStoredDocuments<T>(stored: AccountDocuments, name: string): StoredDocuments<T> {
  const find = (key: string) =>
    withStore(() => stored.get<{ readonly account: string; readonly value: T }>(`${name}.${key}`));
  return {
    get: async (key) => (await find(key))?.value,
    async set(account, key, value, ttlMs) {
      const document = { account, value };
      if (!(await withStore(() => stored.set(account, `${name}.${key}`, document, Math.max(ttlMs, 1), 'lasting'))))
        throw new GatewayError(
          'store_unavailable',
          'The session does not fit into the store. Ask the operator to free space there or to raise "keepPerAccount" of the store.',
        );
    },
    async delete(key) {
      const found = await find(key);
      if (found) await withStore(() => stored.delete(found.account, `${name}.${key}`));
    },
  };
}

/** Index of a user's documents, found without scanning those of all. */
export interface UserDocuments {
  /**
   * Adds a document until its expiry; drops expired ones of the user, and removes those above {@link MOST} with
   * `remove`.
   */
  add(userId: string, key: string, endsAt: number, now: number, remove: (key: string) => Promise<void>): Promise<void>;
  /** Keys of a user's documents by expiry, the first to expire first; some may have expired. */
  keys(userId: string): Promise<readonly string[]>;
  /** Personal data for erasing a user: `read` and `remove` apply to the documents. */
  personal(
    name: string,
    documents: { get(key: string): Promise<unknown>; delete(key: string): Promise<void> },
  ): PersonalData;
}

/** Maximum documents of one kind per user; one more removes the first to expire. */
export const MOST = 100;
const PAGE = 1000;
const TIME_DIGITS = 9;

export function createUserDocuments(sets: Pick<Sets, 'add' | 'remove' | 'list'>, name: string): UserDocuments {
  const setOf = (userId: string): string => `${name}-of.${hashId(userId)}`;
  const timeOf = (unixMs: number): string => Math.ceil(unixMs).toString(36).padStart(TIME_DIGITS, '0');
  const list = (userId: string) => withStore(() => sets.list(setOf(userId), { limit: PAGE }));
  const keyOf = (member: string): string => member.slice(TIME_DIGITS + 1);
  return {
    async add(userId, key, endsAt, now, remove) {
      const known = await list(userId);
      const over = known.filter((member) => member < timeOf(now));
      for (const member of over) await withStore(() => sets.remove(setOf(userId), member));
      // Remove the first to expire.
      for (const member of known.slice(over.length, Math.max(over.length, known.length - MOST + 1))) {
        await remove(keyOf(member));
        await withStore(() => sets.remove(setOf(userId), member));
      }
      await withStore(() => sets.add(setOf(userId), `${timeOf(endsAt)}.${key}`));
    },
    keys: async (userId) => (await list(userId)).map(keyOf),
    personal: (what, documents) => ({
      name: what,
      async count({ userId }) {
        const found = await Promise.all((await list(userId)).map((member) => documents.get(keyOf(member))));
        return found.filter((document) => document !== undefined).length;
      },
      async erase({ userId }) {
        let count = 0;
        for (const member of await list(userId)) {
          if ((await documents.get(keyOf(member))) !== undefined) count += 1;
          await documents.delete(keyOf(member));
          await withStore(() => sets.remove(setOf(userId), member));
        }
        return count;
      },
    }),
  };
}

/** Runs a store operation; turns every error into `store_unavailable`. */
export async function withStore<R>(operation: () => Promise<R>): Promise<R> {
  try {
    return await operation();
  } catch (error) {
    throw isGatewayError(error) ? error : unavailable(error);
  }
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The store of sessions does not respond, so this session cannot be checked. Try again shortly.',
    { retryAfterMs: 1000, cause },
  );
}
