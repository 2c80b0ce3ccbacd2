import { GatewayError, type UserLimits } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf } from './format.ts';
import { type ApiKeyInfo, describeKey } from './info.ts';
import { discardKey, draftKey, findAll, type IssuedKey, type KeyringParts, type Owner, storeKey } from './issue-key.ts';
import { memberOf, type Page } from './key-index.ts';
import { isEnded, type KeyLimits, limitsIdOf, type StoredKey } from './records.ts';

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
   * Makes a successor with `limits`, which it shares with the old key, spent budget included; that one lives for
   * `overlapMs` more, or is revoked at once when that is 0. Throws `conflict` for a key that has ended or has a successor.
   */
  rotate(
    key: StoredKey,
    limits: KeyLimits,
    userLimits: UserLimits | undefined,
    overlapMs: number,
    now: number,
  ): Promise<IssuedKey>;
}

export function createKeyring(parts: KeyringParts): Keyring {
  const { records, index, maxKeysPerUser } = parts;
  return {
    find: records.find,
    revoke: (key, now) => revokeKey(parts, key, now),
    describe: (key) => describeKey(key, records, parts.ledger),

    async list(userId, page) {
      const wanted = { ...page, limit: page.limit + 1 };
      const entries = await (userId === undefined ? index.listAll(wanted) : index.listUser(userId, wanted));
      const keys = await findAll(records, entries.slice(0, page.limit));
      return { keys: keys.filter((key) => key !== undefined), hasMore: entries.length > page.limit };
    },

    async create(owner, limits, now) {
      const issued = await draftKey(parts.readPeppers, owner, limits, now);
      await storeKey(parts, issued.key.record, maxKeysPerUser, now);
      return issued;
    },

    async rotate(key, limits, userLimits, overlapMs, now) {
      refuseEnded(key, now);
      const { id } = key.record;
      const { userId, account } = key.record;
      const owner = { userId, account, limitsId: limitsIdOf(key.record), ...omitUndefined({ userLimits }) };
      const issued = await draftKey(parts.readPeppers, owner, limits, now);
      const { record } = issued.key;
      if (!(await index.claimRotation(id, record.id))) {
        throw new GatewayError('conflict', `The key ${prefixOf(id)} was rotated before. Rotate its successor instead.`);
      }
      try {
        // One key more than allowed: the old one stops counting at the end of the overlap.
        await storeKey(parts, record, maxKeysPerUser + 1, now);
        if (overlapMs === 0) await revokeKey(parts, key, now);
        else await records.retire(key, now + overlapMs);
        parts.onEnd(id);
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

async function revokeKey({ records, index, onEnd }: KeyringParts, key: StoredKey, now: number): Promise<StoredKey> {
  const revoked = await records.revoke(key, now);
  onEnd(key.record.id);
  await index.drop(key.record.userId, memberOf(key.record));
  return revoked;
}

function refuseEnded(key: StoredKey, now: number): void {
  if (!isEnded(key, now)) return;
  const state = key.revokedAt === undefined ? 'has expired' : 'was revoked';
  throw new GatewayError('conflict', `The key ${prefixOf(key.record.id)} ${state}. Make a new one instead.`);
}
