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

/** What can be done with keys; the HTTP routes and the command line do it through here. */
export interface Keyring {
  find(id: string): Promise<StoredKey | undefined>;
  list(userId: string | undefined, page: Page): Promise<KeyPage>;
  describe(key: StoredKey): Promise<ApiKeyInfo>;
  /** The same with what is spent and left of each of its budgets. */
  describeSpending(key: StoredKey): Promise<ApiKeyInfo>;
  /** Ids that keys were made for and that look like those of an owner. */
  findSimilar(owner: Pick<Owner, 'userId' | 'account'>): Promise<readonly string[]>;
  /** Throws `conflict` when the owner has as many keys as allowed. */
  create(owner: Owner, limits: KeyLimits, now: number): Promise<IssuedKey>;
  /** Changes nothing for a key that is revoked already. */
  revoke(key: StoredKey, now: number): Promise<StoredKey>;
  /**
   * Makes a successor with `limits`, which it shares with the old key, spent budget included; that one lives for
   * `overlapMs` more, or is revoked at once when that is 0. Throws `conflict` for a key that has ended or has a successor.
   */
  rotate(key: StoredKey, given: Successor, overlapMs: number, now: number): Promise<IssuedKey>;
  /** Changes limits and blocking; throws `conflict` for a revoked key, `precondition_failed` when it is not of the expected version. */
  edit(key: StoredKey, make: (edit: KeyEdit) => KeyEdit, expected?: number): Promise<EditedKey>;
}

/** What the successor of a key gets; it has the owner of the old one. */
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
        await parts.noteOrigins([id, record.id], limitsIdOf(record));
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
      // The message shows what the old key has spent of the budget that both have.
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

/** Who a key belongs to. */
export interface Owner extends KeyRights {
  readonly userId: string;
  readonly account: string;
  /** The key whose limits and budget a new one shares. */
  readonly limitsId?: string;
  /** What the user may use over all keys. */
  readonly userLimits?: UserLimits;
}

export interface IssuedKey {
  /** The whole key. It is nowhere else, and cannot be had again. */
  readonly text: string;
  readonly key: StoredKey;
  readonly info: ApiKeyInfo;
}

interface KeyringParts {
  readonly records: KeyRecords;
  readonly index: KeyIndex;
  readonly ledger: Pick<Ledger, 'budgets' | 'clock'>;
  readonly readPeppers: () => Promise<Peppers>;
  /** Called when a key changed or ended, so that this node forgets it at once. */
  readonly onChange: (id: string) => void;
  /** Called with the user of a new key. */
  readonly onCreate: (userId: string) => Promise<void>;
  readonly maxKeysPerUser: number;
  /** Notes of keys that replaced one another which was the first: budgets may name any of them. */
  readonly noteOrigins: (ids: readonly string[], first: string) => Promise<void>;
  /** Takes ended keys out of their user's index; answers how many are left there. */
  readonly dropEnded: (userId: string, now: number) => Promise<number>;
}

/** Makes a key, which is not stored yet. */
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
 * Stores a key; throws `conflict` when its user has `max` keys. The document first, then the index: what is in the index
 * exists, and what is not was never given out.
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
  // It came into no index.
  await records.remove(record.id).catch(() => undefined);
  throw new GatewayError(
    'conflict',
    `Limit of ${maxKeysPerUser} API keys per user reached. Delete a key that is no longer used.`,
  );
}

/** Removes a key that was never given out. Best effort: what stays behind opens nothing. */
async function discardKey({ records, index }: KeyringParts, record: KeyRecord): Promise<void> {
  await Promise.allSettled([records.remove(record.id), index.forget(record)]);
}

/**
 * Makes what drops ended keys, which count no more once there are too many. All who ask for one user at the same time share what
 * one of them reads: it is several documents of each key.
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

/** How many keys are read at once: each is several documents, and a store on a server has few connections. */
const AT_ONCE = 8;

/** What `read` makes of each key, in their order: a page of keys waits for the store in small parts. */
export async function mapKeys<Key, Result>(
  keys: readonly Key[],
  read: (key: Key) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE)
    results.push(...(await Promise.all(keys.slice(at, at + AT_ONCE).map(read))));
  return results;
}
