import { randomBytes } from 'node:crypto';
import { GatewayError, type Ledger } from '../../../core/index.ts';
import { createKey, prefixOf } from './format.ts';
import { type ApiKeyInfo, describeKey, describeNewKey } from './info.ts';
import { type IndexEntry, type KeyIndex, memberOf, type Page } from './key-index.ts';
import type { Peppers } from './peppers.ts';
import { asking, type KeyLimits, type KeyRecord, type KeyRecords, type StoredKey } from './records.ts';

/** Who a key belongs to. */
export interface Owner {
  readonly userId: string;
  readonly account: string;
}

export interface IssuedKey {
  /** The whole key. It is nowhere else, and cannot be had again. */
  readonly text: string;
  readonly key: StoredKey;
  readonly info: ApiKeyInfo;
}

export interface KeyPage {
  readonly keys: readonly StoredKey[];
  readonly hasMore: boolean;
}

/** What can be done with keys; the HTTP routes and the command line do it through here. */
export interface Keyring {
  find(id: string): Promise<StoredKey | undefined>;
  list(userId: string | undefined, page: Page): Promise<KeyPage>;
  describe(key: StoredKey): Promise<ApiKeyInfo>;
  /** Throws `conflict` when the owner has as many keys as allowed. */
  create(owner: Owner, limits: KeyLimits, now: number): Promise<IssuedKey>;
  /** Changes nothing for a key that is revoked already. */
  revoke(key: StoredKey, now: number): Promise<StoredKey>;
  /**
   * Makes a successor with `limits` and what is left of the old key's budget; the old key lives for `overlapMs` more, or
   * is revoked at once when that is 0. Throws `conflict` for a key that has ended or has a successor.
   */
  rotate(key: StoredKey, limits: KeyLimits, overlapMs: number, now: number): Promise<IssuedKey>;
}

export interface KeyringParts {
  readonly records: KeyRecords;
  readonly index: KeyIndex;
  readonly ledger: Pick<Ledger, 'purse'>;
  readonly readPeppers: () => Promise<Peppers>;
  /** Called when a key stops working, so that this node forgets it at once. */
  readonly onEnd: (id: string) => void;
  readonly maxKeysPerUser: number;
}

export function createKeyring(parts: KeyringParts): Keyring {
  const { records, index, maxKeysPerUser } = parts;

  const draft = async (owner: Owner, limits: KeyLimits, now: number): Promise<IssuedKey & { record: KeyRecord }> => {
    const { current } = await parts.readPeppers();
    const { id, text } = createKey(randomBytes);
    const hash = current.hash(text).toString('hex');
    const { userId, account } = owner;
    const record = { ...limits, version: 1, id, userId, account, hash, pepperId: current.id, createdAt: now } as const;
    const key = { record, ...(limits.expiresAt !== undefined && { expiresAt: limits.expiresAt }) };
    return { text, record, key, info: describeNewKey(key) };
  };

  /** The document first, then the index: what is in the index exists, and what is not was never given out. */
  const write = async (record: KeyRecord, max: number, now: number): Promise<void> => {
    await records.add(record);
    try {
      if ((await index.add(record, max)) === 'added') return;
      await dropEnded(record.userId, now);
      if ((await index.add(record, max)) === 'added') return;
      throw new GatewayError(
        'conflict',
        `This user has ${maxKeysPerUser} API keys, and more are not allowed. Delete one that is no longer used.`,
      );
    } catch (error) {
      await undo(record);
      throw error;
    }
  };

  /** Takes back a key that nobody was given. Best effort: what stays behind opens nothing. */
  const undo = async (record: KeyRecord): Promise<void> => {
    await Promise.allSettled([records.remove(record.id), index.forget(record)]);
  };

  /** Expired keys hold no place once it is needed. */
  const dropEnded = async (userId: string, now: number): Promise<void> => {
    const entries = await index.listUser(userId, { limit: maxKeysPerUser + 1 });
    const keys = await findAll(entries);
    for (const [at, { member }] of entries.entries()) {
      const key = keys[at];
      if (!key || isEnded(key, now)) await index.drop(userId, member);
    }
  };

  const findAll = (entries: readonly IndexEntry[]): Promise<readonly (StoredKey | undefined)[]> =>
    Promise.all(entries.map(({ id }) => records.find(id)));

  const revoke = async (key: StoredKey, now: number): Promise<StoredKey> => {
    const revoked = await records.revoke(key, now);
    parts.onEnd(key.record.id);
    await index.drop(key.record.userId, memberOf(key.record));
    return revoked;
  };

  const end = async (key: StoredKey, overlapMs: number, now: number): Promise<void> => {
    if (overlapMs === 0) await revoke(key, now);
    else await records.retire(key, now + overlapMs);
    parts.onEnd(key.record.id);
  };

  /** A new key does not fill a spent budget up again. What running calls hold counts as spent. */
  const lessSpent = async (limits: KeyLimits, { id, account }: KeyRecord): Promise<KeyLimits> => {
    if (limits.budget === undefined) return limits;
    const { spent, held } = await asking(() => parts.ledger.purse(account, id));
    return { ...limits, budget: Math.max(limits.budget - spent - held, 0) };
  };

  return {
    find: records.find,
    revoke,
    describe: (key) => describeKey(key, records, parts.ledger),

    async list(userId, page) {
      const wanted = { ...page, limit: page.limit + 1 };
      const entries = await (userId === undefined ? index.listAll(wanted) : index.listUser(userId, wanted));
      const keys = await findAll(entries.slice(0, page.limit));
      return { keys: keys.filter((key) => key !== undefined), hasMore: entries.length > page.limit };
    },

    async create(owner, limits, now) {
      const { record, ...issued } = await draft(owner, limits, now);
      await write(record, maxKeysPerUser, now);
      return issued;
    },

    async rotate(key, limits, overlapMs, now) {
      refuseEnded(key, now);
      const { userId, account, id } = key.record;
      const { record, ...issued } = await draft({ userId, account }, await lessSpent(limits, key.record), now);
      if (!(await index.claimRotation(id, record.id))) {
        throw new GatewayError('conflict', `The key ${prefixOf(id)} was rotated before. Rotate its successor instead.`);
      }
      try {
        // One place more than allowed: the old key gives its own back at the end of the overlap.
        await write(record, maxKeysPerUser + 1, now);
        await end(key, overlapMs, now);
      } catch (error) {
        await undo(record);
        await index.unclaimRotation(id, record.id).catch(() => undefined);
        throw error;
      }
      return issued;
    },
  };
}

function isEnded(key: StoredKey, now: number): boolean {
  return key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now);
}

function refuseEnded(key: StoredKey, now: number): void {
  if (!isEnded(key, now)) return;
  const state = key.revokedAt === undefined ? 'has expired' : 'was revoked';
  throw new GatewayError('conflict', `The key ${prefixOf(key.record.id)} ${state}. Make a new one instead.`);
}
