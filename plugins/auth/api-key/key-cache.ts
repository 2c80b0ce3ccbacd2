import { LRUCache } from 'lru-cache';
import type { Principal } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import type { Peppers } from './peppers.ts';
import type { KeyRecord, KeyRecords, StoredKey } from './records.ts';

/** How old what the store said may be: every node sees a revocation after this at the latest, by itself. */
const KNOWN_MS = 2000;
const UNKNOWN_MS = 1000;
const KNOWN_MAX = 20_000;
const UNKNOWN_MAX = 2000;

/** Compared with when there is no record, so that an unknown id takes the same steps as a wrong secret. */
export const NO_HASH = Buffer.alloc(32);

/** What the store said about an id. */
export interface CachedKey {
  readonly id: string;
  readonly readAt: number;
  readonly stored: StoredKey | undefined;
  readonly principal: Principal | undefined;
  /** The stored hash; zeros for an id that the store did not know. */
  readonly hash: Buffer;
  readonly peppers: Peppers;
  /** SHA-256 of the credential that was verified, so that the next request need not be hashed with the pepper. */
  proof: Buffer | undefined;
}

/** Keys as the store had them a moment ago, and ids that it did not know. */
export interface KeyCache {
  /** A key of the store that is fresh. */
  findKnown(id: string, now: number): CachedKey | undefined;
  /** That the store did not know an id, when that is fresh. */
  findUnknown(id: string, now: number): CachedKey | undefined;
  /** Reads the store: once for all that need one id at the same time. */
  load(id: string, now: number): Promise<CachedKey>;
  /** Forgets an id at once; a look-up that is under way is not remembered. */
  forget(id: string): void;
}

export function createKeyCache(records: Pick<KeyRecords, 'find'>, readPeppers: () => Promise<Peppers>): KeyCache {
  const known = new LRUCache<string, CachedKey>({ max: KNOWN_MAX });
  const unknown = new LRUCache<string, CachedKey>({ max: UNKNOWN_MAX });
  const pending = new Map<string, Promise<CachedKey>>();

  const read = async (id: string, now: number): Promise<CachedKey> => {
    const peppers = await readPeppers();
    const stored = await records.find(id);
    const principal = stored && toPrincipal(stored.record);
    const hash = stored ? Buffer.from(stored.record.hash, 'hex') : NO_HASH;
    return { id, readAt: now, stored, principal, hash, peppers, proof: undefined };
  };

  const load = (id: string, now: number): Promise<CachedKey> => {
    const running = pending.get(id);
    if (running) return running;
    const promise: Promise<CachedKey> = read(id, now).then(
      (entry) => {
        if (pending.get(id) === promise) {
          pending.delete(id);
          (entry.stored ? known : unknown).set(id, entry);
        }
        return entry;
      },
      (error) => {
        if (pending.get(id) === promise) pending.delete(id);
        throw error;
      },
    );
    pending.set(id, promise);
    return promise;
  };

  return {
    findKnown: (id, now) => ifFresh(known.get(id), KNOWN_MS, now),
    findUnknown: (id, now) => ifFresh(unknown.get(id), UNKNOWN_MS, now),
    load,
    forget(id) {
      known.delete(id);
      unknown.delete(id);
      pending.delete(id);
    },
  };
}

/** A clock that was set back makes an entry old, never young. */
function ifFresh(entry: CachedKey | undefined, maxAgeMs: number, now: number): CachedKey | undefined {
  const age = entry ? now - entry.readAt : -1;
  return age >= 0 && age < maxAgeMs ? entry : undefined;
}

function toPrincipal(record: KeyRecord): Principal {
  const { id, userId, account, name, plan, models, providers, serverTools, rpm, tpm, budget } = record;
  const { limitsId, userLimits } = record;
  const copy = (list: readonly string[] | undefined) => list && Object.freeze([...list]);
  const lists = { models: copy(models), providers: copy(providers), serverTools: copy(serverTools) };
  return Object.freeze({
    credential: 'key',
    userId,
    account,
    keyId: id,
    keyName: name,
    ...omitUndefined({
      plan,
      ...lists,
      rpm,
      tpm,
      budget,
      limitsId,
      userLimits: userLimits && Object.freeze({ ...userLimits }),
    }),
  });
}
