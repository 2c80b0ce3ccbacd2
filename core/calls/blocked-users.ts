import { GatewayError } from '../contract/errors.ts';
import type { Records } from '../contract/records.ts';
import { createFreshReads } from '../plugins/fresh-reads.ts';

/** What operators said of a user. */
export interface UserRecord {
  /** Unix milliseconds; absent for a user who is not blocked. */
  readonly blockedAt?: number;
  readonly reason?: string;
}

/** The name of the users' records. */
export const USERS = 'users';

/** How long another node may let a blocked user in, in milliseconds; this one forgets at once. */
const KNOWN_MS = 2000;

/** Throws `permission_denied` for a user whom an operator blocked; at once for one who was looked up a moment ago. */
export type RefuseBlocked = (userId: string) => void | Promise<void>;

/** Looks users up, and remembers for a moment whether they are blocked. */
export function createBlockedUsers(users: Records<UserRecord>): RefuseBlocked {
  const reads = createFreshReads(async (id) => (await users.find(id)).value?.blockedAt !== undefined, KNOWN_MS);
  users.onChange(reads.forget);
  return (userId) => {
    const isBlocked = reads.get(userId);
    if (typeof isBlocked !== 'boolean') return isBlocked.then(refuse);
    refuse(isBlocked);
  };
}

function refuse(isBlocked: boolean): void {
  if (!isBlocked) return;
  throw new GatewayError(
    'permission_denied',
    'An operator of this gateway has blocked this user, with all keys and tokens. Ask them to lift that.',
  );
}
