import { randomBytes } from 'node:crypto';
import { GatewayError, type Ledger, type UserLimits } from '../../../contract/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { createKey, prefixOf } from './format.ts';
import { type ApiKeyInfo, describeKey, describeNewKey } from './info.ts';
import { readKeySpending } from './key-budgets.ts';
import { type IndexEntry, type KeyIndex, memberOf, type Page } from './key-index.ts';
import type { Peppers } from './peppers.ts';
import {
  type EditedKey,
  isEnded,
  type KeyEdit,
  type KeyLimits,
  type KeyRecord,
  type KeyRecords,
  type KeyRights,
  limitsIdOf,
  type StoredKey,
} from './records.ts';

interface KeyPage {
  readonly keys: readonly StoredKey[];
  readonly hasMore: boolean;
}

/** Operations on keys; used by HTTP routes and the command line. */
export interface Keyring {
  find(id: string): Promise<StoredKey | undefined>;
  list(userId: string | undefined, page: Page): Promise<KeyPage>;
  describe(key: StoredKey): Promise<ApiKeyInfo>;
  /** Describes a key including the amounts spent and left of each budget. */
  describeSpending(key: StoredKey): Promise<ApiKeyInfo>;
  /** Ids with keys that look similar to those of an owner. */
  findSimilar(owner: Pick<Owner, 'userId' | 'account'>): Promise<readonly string[]>;
  /** Creates a key; throws `conflict` if the owner has the maximum number of keys. */
  create(owner: Owner, limits: KeyLimits, now: number): Promise<IssuedKey>;
  /** Revokes a key; does nothing if it is revoked already. */
  revoke(key: StoredKey, now: number): Promise<StoredKey>;
  /**
   * Creates a successor with `limits`, which it shares with the old key, including spent budget. The old key stays
   * valid for `overlapMs`, or is revoked at once for 0. Throws `conflict` for a key that has ended or has a successor.
   */
  rotate(key: StoredKey, given: Successor, overlapMs: number, now: number): Promise<IssuedKey>;
  /**
   * Changes limits and blocking; throws `conflict` for a revoked key, and `precondition_failed` for an unexpected
   * version.
   */
  edit(key: StoredKey, make: (edit: KeyEdit) => KeyEdit, expected?: number): Promise<EditedKey>;
}

/** Fields of a successor; its owner is that of the old key. */
export interface Successor extends KeyRights, Pick<Owner, 'userLimits'> {
  readonly limits: KeyLimits;
}

export function createKeyring(given: Omit<KeyringParts, 'dropEnded'>): Keyring {
  const parts = { ...given, dropEnded: createEndedKeys(given) };
  const { records, index, maxKeysPerUser } = parts;
  return {
    find: records.find,
    revoke: (key, now) => revokeKey(parts, key, now),
    describe: (key) => describeKey(key, records, parts.ledger),
    describeSpending: (key) => describeSpending(parts, key),

    edit: (key, make, expected) => editKey(parts, key, make, expected),

    async list(userId, page) {
      const wanted = { ...page, limit: page.limit + 1 };
      const entries = await (userId === undefined ? index.listAll(wanted) : index.listUser(userId, wanted));
      const keys = await findAll(records, entries.slice(0, page.limit));
      return { keys: keys.filter((key) => key !== undefined), hasMore: entries.length > page.limit };
    },

    findSimilar: ({ userId, account }) => index.findSimilar([...new Set([userId, account])]),

    async create(owner, limits, now) {
      const issued = await draftKey(parts.readPeppers, owner, limits, now);
      await storeKey(parts, issued.key.record, maxKeysPerUser, now);
      await parts.onCreate(owner.userId);
      return issued;
    },

    async rotate(key, { limits, ...given }, overlapMs, now) {
      refuseEnded(key, now);
      const { id } = key.record;
      const { userId, account } = key.record;
      const owner = { userId, account, limitsId: limitsIdOf(key.record), ...given };
      const issued = await draftKey(parts.readPeppers, owner, limits, now);
      const { record } = issued.key;
      if (!(await index.claimRotation(id, record.id))) {
        throw new GatewayError('conflict', `The key ${prefixOf(id)} was rotated before. Rotate its successor instead.`);
      }
      try {
        await parts.recordOrigins([id, record.id], limitsIdOf(record));
        // One key more than allowed: the old one stops counting at the end of the overlap.
        await storeKey(parts, record, maxKeysPerUser + 1, now);
        if (overlapMs === 0) await revokeKey(parts, key, now);
        else await records.retire(key, now + overlapMs);
        parts.onChange(id);
      } catch (error) {
        await discardKey(parts, record);
        await index.unclaimRotation(id, record.id).catch(() => undefined);
        throw error;
      }
      // The description shows the spending of the old key, with which the budget is shared.
      return { ...issued, info: await describeKey(issued.key, records, parts.ledger).catch(() => issued.info) };
    },
  };
}

async function editKey(
  { records, index, onChange }: KeyringParts,
  key: StoredKey,
  make: (edit: KeyEdit) => KeyEdit,
  expected?: number,
): Promise<EditedKey> {
  const { id } = key.record;
  if (key.revokedAt !== undefined)
    throw new GatewayError('conflict', `The key ${prefixOf(id)} was revoked. Create a new one.`);
  const edited = await records.edit(key, make, expected);
  const { expiresAt } = edited.after.record;
  if (expiresAt !== undefined && expiresAt !== edited.before.record.expiresAt) await index.addEnd(id, expiresAt);
  onChange(id);
  return edited;
}

async function describeSpending({ records, ledger }: KeyringParts, key: StoredKey): Promise<ApiKeyInfo> {
  const [info, budgets] = await Promise.all([describeKey(key, records, ledger), readKeySpending(key, ledger)]);
  return { ...info, budgets };
}

async function revokeKey({ records, index, onChange }: KeyringParts, key: StoredKey, now: number): Promise<StoredKey> {
  const revoked = await records.revoke(key, now);
  onChange(key.record.id);
  await index.drop(key.record.userId, memberOf(key.record));
  return revoked;
}

function refuseEnded(key: StoredKey, now: number): void {
  if (key.blockedAt !== undefined)
    throw new GatewayError(
      'permission_denied',
      `The key ${prefixOf(key.record.id)} is blocked by an operator and cannot be rotated. Unblock it first.`,
    );
  if (!isEnded(key, now)) return;
  const state = key.revokedAt === undefined ? 'has expired' : 'was revoked';
  throw new GatewayError('conflict', `The key ${prefixOf(key.record.id)} ${state}. Create a new one.`);
}

/** Owner of a key. */
export interface Owner extends KeyRights {
  readonly userId: string;
  readonly account: string;
  /** Key whose limits and budget a new one shares. */
  readonly limitsId?: string;
  /** Limits of the user over all keys. */
  readonly userLimits?: UserLimits;
}

export interface IssuedKey {
  /** Full key. It is stored nowhere else and cannot be recovered. */
  readonly text: string;
  readonly key: StoredKey;
  readonly info: ApiKeyInfo;
}

interface KeyringParts {
  readonly records: KeyRecords;
  readonly index: KeyIndex;
  readonly ledger: Pick<Ledger, 'budgets' | 'clock'>;
  readonly readPeppers: () => Promise<Peppers>;
  /** Called when a key changed or ended, so that this node drops it from its cache. */
  readonly onChange: (id: string) => void;
  /** Called with the user of a new key. */
  readonly onCreate: (userId: string) => Promise<void>;
  readonly maxKeysPerUser: number;
  /** Records the first of several keys that replaced one another: budgets may name any of them. */
  readonly recordOrigins: (ids: readonly string[], first: string) => Promise<void>;
  /** Removes ended keys from their user's index; returns the number left. */
  readonly dropEnded: (userId: string, now: number) => Promise<number>;
}

/** Creates a key without storing it. */
async function draftKey(
  readPeppers: KeyringParts['readPeppers'],
  owner: Owner,
  limits: KeyLimits,
  now: number,
): Promise<IssuedKey> {
  const { current } = await readPeppers();
  const { id, text } = createKey(randomBytes);
  const hash = current.hash(text).toString('hex');
  const { userId, account, role, scopes, limitsId, userLimits } = owner;
  const shared = omitUndefined({ role, scopes, limitsId, userLimits });
  const facts = { version: 1, id, userId, account, hash, pepperId: current.id, createdAt: now } as const;
  const record = { ...limits, ...facts, ...shared };
  const key: StoredKey = { record, version: 0, ...(limits.expiresAt !== undefined && { expiresAt: limits.expiresAt }) };
  return { text, key, info: describeNewKey(key) };
}

/**
 * Stores a key; throws `conflict` if its user has `max` keys. The document is written before the index: an indexed key
 * exists, and one that is not indexed was never issued.
 */
async function storeKey(parts: KeyringParts, record: KeyRecord, max: number, now: number): Promise<void> {
  const { records, index, maxKeysPerUser } = parts;
  await records.add(record);
  try {
    if ((await index.add(record, max)) === 'added') return;
    const left = await parts.dropEnded(record.userId, now);
    if (left < max && (await index.add(record, max)) === 'added') return;
  } catch (error) {
    await discardKey(parts, record);
    throw error;
  }
  // The key is in no index.
  await records.remove(record.id).catch(() => undefined);
  throw new GatewayError(
    'conflict',
    `Limit of ${maxKeysPerUser} API keys per user reached. Delete a key that is no longer used.`,
  );
}

/** Removes a key that was never issued. Best effort: leftovers are not valid keys. */
async function discardKey({ records, index }: KeyringParts, record: KeyRecord): Promise<void> {
  await Promise.allSettled([records.remove(record.id), index.forget(record)]);
}

/**
 * Creates the removal of ended keys, which runs once a user has too many. Concurrent requests for one user share a run,
 * since it reads several documents per key.
 */
function createEndedKeys({ records, index, maxKeysPerUser }: Omit<KeyringParts, 'dropEnded'>) {
  const running = new Map<string, Promise<number>>();
  const drop = async (userId: string, now: number): Promise<number> => {
    const entries = await index.listUser(userId, { limit: maxKeysPerUser + 1 });
    const keys = await findAll(records, entries);
    const ended = entries.filter((_, at) => isGone(keys[at], now));
    for (const { member } of ended) await index.drop(userId, member);
    return entries.length - ended.length;
  };
  return (userId: string, now: number): Promise<number> => {
    const shared = running.get(userId) ?? drop(userId, now).finally(() => running.delete(userId));
    running.set(userId, shared);
    return shared;
  };
}

function isGone(key: StoredKey | undefined, now: number): boolean {
  return key === undefined || isEnded(key, now);
}

function findAll(
  records: Pick<KeyRecords, 'find'>,
  entries: readonly IndexEntry[],
): Promise<readonly (StoredKey | undefined)[]> {
  return mapKeys(entries, ({ id }) => records.find(id));
}

/** Keys read concurrently: each is several documents, and a database server has few connections. */
const AT_ONCE = 8;

/** Maps each key with `read`, in order; concurrency is limited so that a page of keys does not occupy the store. */
export async function mapKeys<Key, Result>(
  keys: readonly Key[],
  read: (key: Key) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE)
    results.push(...(await Promise.all(keys.slice(at, at + AT_ONCE).map(read))));
  return results;
}
