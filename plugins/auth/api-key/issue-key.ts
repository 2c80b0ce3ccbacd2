import { randomBytes } from 'node:crypto';
import { GatewayError, type Ledger, type UserLimits } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { createKey } from './format.ts';
import { type ApiKeyInfo, describeNewKey } from './info.ts';
import type { IndexEntry, KeyIndex } from './key-index.ts';
import type { Peppers } from './peppers.ts';
import { isEnded, type KeyLimits, type KeyRecord, type KeyRecords, type StoredKey } from './records.ts';

/** Who a key belongs to. */
export interface Owner {
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

export interface KeyringParts {
  readonly records: KeyRecords;
  readonly index: KeyIndex;
  readonly ledger: Pick<Ledger, 'budget'>;
  readonly readPeppers: () => Promise<Peppers>;
  /** Called when a key stops working, so that this node forgets it at once. */
  readonly onEnd: (id: string) => void;
  readonly maxKeysPerUser: number;
}

/** Makes a key, which is not stored yet. */
export async function draftKey(
  readPeppers: KeyringParts['readPeppers'],
  owner: Owner,
  limits: KeyLimits,
  now: number,
): Promise<IssuedKey> {
  const { current } = await readPeppers();
  const { id, text } = createKey(randomBytes);
  const hash = current.hash(text).toString('hex');
  const { userId, account, limitsId, userLimits } = owner;
  const shared = omitUndefined({ limitsId, userLimits });
  const facts = { version: 1, id, userId, account, hash, pepperId: current.id, createdAt: now } as const;
  const record = { ...limits, ...facts, ...shared };
  const key = { record, ...(limits.expiresAt !== undefined && { expiresAt: limits.expiresAt }) };
  return { text, key, info: describeNewKey(key) };
}

/**
 * Stores a key; throws `conflict` when its user has `max` keys. The document first, then the index: what is in the index
 * exists, and what is not was never given out.
 */
export async function storeKey(parts: KeyringParts, record: KeyRecord, max: number, now: number): Promise<void> {
  const { records, index, maxKeysPerUser } = parts;
  await records.add(record);
  try {
    if ((await index.add(record, max)) === 'added') return;
    await dropEndedKeys(parts, record.userId, now);
    if ((await index.add(record, max)) === 'added') return;
    throw new GatewayError(
      'conflict',
      `This user has ${maxKeysPerUser} API keys, and more are not allowed. Delete one that is no longer used.`,
    );
  } catch (error) {
    await discardKey(parts, record);
    throw error;
  }
}

/** Removes a key that was never given out. Best effort: what stays behind opens nothing. */
export async function discardKey({ records, index }: KeyringParts, record: KeyRecord): Promise<void> {
  await Promise.allSettled([records.remove(record.id), index.forget(record)]);
}

/** Expired keys count no more once there are too many. */
async function dropEndedKeys(
  { records, index, maxKeysPerUser }: KeyringParts,
  userId: string,
  now: number,
): Promise<void> {
  const entries = await index.listUser(userId, { limit: maxKeysPerUser + 1 });
  const keys = await findAll(records, entries);
  for (const [at, { member }] of entries.entries()) {
    const key = keys[at];
    if (!key || isEnded(key, now)) await index.drop(userId, member);
  }
}

export function findAll(
  records: Pick<KeyRecords, 'find'>,
  entries: readonly IndexEntry[],
): Promise<readonly (StoredKey | undefined)[]> {
  return Promise.all(entries.map(({ id }) => records.find(id)));
}
