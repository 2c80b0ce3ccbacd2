import { hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type AuthRequest, GatewayError, type Log, type Principal } from '../../../contract/index.ts';
import { maxEntries } from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { createAddressCheck } from './addresses.ts';
import { ID_END, ID_START, parseKey } from './format.ts';
import { rightsOfKey } from './key-rights.ts';
import type { Peppers } from './peppers.ts';
import { isOfOperator, type KeyRecords, type StoredKey } from './records.ts';

export interface Verifier {
  /**
   * Authenticates a key: synchronously from the cache, else as a promise. Throws `invalid_api_key`, `revoked_api_key`
   * or `expired_api_key`, `permission_denied` for an address that the key does not allow, and `store_unavailable` if
   * the store does not reply. A key verified here before is always looked up, any other one only as often as
   * `beforeLookup` allows.
   */
  verify(request: Pick<AuthRequest, 'credential' | 'now' | 'address' | 'beforeLookup'>): Principal | Promise<Principal>;
  /** Admits a key by its id, for a holder authenticated in another way. */
  admit(id: string, request: Pick<AuthRequest, 'now' | 'address'>): Promise<Principal>;
  /** Makes this node read the store again: at once, also for look-ups in progress. */
  forget(id: string): void;
}

/** Request with a credential to verify; without one the holder was authenticated in another way. */
type Presented = Pick<AuthRequest, 'now' | 'address'> & { readonly credential?: string };

export function createVerifier(
  records: Pick<KeyRecords, 'find'>,
  readPeppers: () => Promise<Peppers>,
  onUse: (id: string, now: number) => void,
): Verifier {
  /** Recently read keys, and unknown ids. */
  const known = new LRUCache<string, CachedKey>(maxEntries(KNOWN_MAX));
  const unknown = new LRUCache<string, CachedKey>(maxEntries(UNKNOWN_MAX));
  const loader = createLoader(records, readPeppers, (key) => (key.stored ? known : unknown).set(key.id, key));

  /** Only the holder of the secret learns that a key is revoked or expired. */
  const accept = (key: CachedKey, { credential, now, address }: Presented): Principal => {
    if ((credential !== undefined && !matchesHash(key, credential)) || !key.principal) throw invalidKey();
    const { revokedAt, blockedAt, expiresAt } = key.stored ?? {};
    if (revokedAt !== undefined)
      throw new GatewayError('revoked_api_key', 'This API key was revoked. Use another key or create a new one.');
    if (blockedAt !== undefined)
      throw new GatewayError(
        'permission_denied',
        'This API key is blocked by an operator of this gateway. Ask them to unblock it, or use another key.',
      );
    if (expiresAt !== undefined && now >= expiresAt)
      throw new GatewayError('expired_api_key', 'This API key has expired. Use another key or create a new one.');
    if (key.isAllowedFrom && !key.isAllowedFrom(address))
      throw new GatewayError(
        'permission_denied',
        'This API key is not allowed from the address of this request. Use an allowed address, or ask an operator to change "addresses" of the key.',
      );
    onUse(key.id, now);
    return key.principal;
  };

  return {
    verify(request) {
      const { credential, now } = request;
      const last = known.get(credential.slice(ID_START, ID_END));
      const key = ifFresh(last, KNOWN_MS, now);
      // A credential verified before needs no format check: only the same text has the same hash.
      if (key?.proof) return accept(key, request);
      const id = parseKey(credential)?.id;
      if (id === undefined) throw invalidKey();
      const found = key ?? ifFresh(unknown.get(id), UNKNOWN_MS, now);
      if (found) return accept(found, request);
      if (!last || !matchesHash(last, credential)) request.beforeLookup();
      return loader.load(id, now).then((loaded) => accept(loaded, request));
    },
    async admit(id, request) {
      const key = ifFresh(known.get(id), KNOWN_MS, request.now) ?? (await loader.load(id, request.now));
      return accept(key, { now: request.now, address: request.address });
    },
    forget(id) {
      known.delete(id);
      unknown.delete(id);
      loader.forget(id);
    },
  };
}

/** SHA-256 of the credential in process. */
const digest = Buffer.alloc(32);

function matchesHash(key: CachedKey, credential: string): boolean {
  // Written into an existing buffer: a new one would cost more than the hash.
  digest.write(hash('sha256', credential, 'binary'), 'binary');
  if (key.proof) return timingSafeEqual(key.proof, digest);
  const pepper = key.stored && key.peppers.find(key.stored.record.pepperId);
  const expected = pepper ? key.hash : NO_HASH;
  const matches = timingSafeEqual((pepper ?? key.peppers.current).hash(credential), expected);
  if (!matches || !pepper) return false;
  key.proof = Buffer.from(digest);
  return true;
}

/** Error for a key that is not valid here. */
export function invalidKey(): GatewayError {
  return new GatewayError('invalid_api_key', 'Invalid API key. Check that it is complete and belongs to this gateway.');
}

/** Maximum age of cached store data: every node sees a revocation within this time. */
const KNOWN_MS = 2000;
const UNKNOWN_MS = 1000;
const KNOWN_MAX = 20_000;
const UNKNOWN_MAX = 2000;

/** Compared if there is no record, so that an unknown id takes the same steps as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

/** Cached store data of an id. */
interface CachedKey {
  readonly id: string;
  readonly readAt: number;
  readonly stored: StoredKey | undefined;
  readonly principal: Principal | undefined;
  /** Stored hash; zeros for an unknown id. */
  readonly hash: Buffer;
  readonly peppers: Peppers;
  /** Absent for a key without address restrictions. */
  readonly isAllowedFrom: ((address: string) => boolean) | undefined;
  /** SHA-256 of the verified credential, so that the next request needs no hash with the pepper. */
  proof: Buffer | undefined;
}

interface Loader {
  /** Reads the store; concurrent reads of one id are merged. */
  load(id: string, now: number): Promise<CachedKey>;
  /** Discards a look-up of this id in progress. */
  forget(id: string): void;
}

function createLoader(
  records: Pick<KeyRecords, 'find'>,
  readPeppers: () => Promise<Peppers>,
  keep: (key: CachedKey) => void,
): Loader {
  const loading = new Map<string, Promise<CachedKey>>();
  const read = async (id: string, now: number): Promise<CachedKey> => {
    const peppers = await readPeppers();
    const stored = await records.find(id);
    const principal = stored && toPrincipal(stored);
    const hash = stored ? Buffer.from(stored.record.hash, 'hex') : NO_HASH;
    const { addresses } = stored?.record ?? {};
    const isAllowedFrom = addresses && createAddressCheck(addresses);
    return { id, readAt: now, stored, principal, hash, peppers, isAllowedFrom, proof: undefined };
  };
  return {
    load(id, now) {
      const running = loading.get(id);
      if (running) return running;
      const promise: Promise<CachedKey> = read(id, now).then(
        (key) => {
          if (loading.get(id) === promise) {
            loading.delete(id);
            keep(key);
          }
          return key;
        },
        (error) => {
          if (loading.get(id) === promise) loading.delete(id);
          throw error;
        },
      );
      loading.set(id, promise);
      return promise;
    },
    forget: (id) => void loading.delete(id),
  };
}

/** After the clock was set back an entry counts as old, never as new. */
function ifFresh(entry: CachedKey | undefined, maxAgeMs: number, now: number): CachedKey | undefined {
  const age = entry ? now - entry.readAt : -1;
  return age >= 0 && age < maxAgeMs ? entry : undefined;
}

/** Returns the caller that a key authenticates. */
export function toPrincipal({ record, expiresAt }: StoredKey): Principal {
  const { id, userId, account, name, plan, models, providers, serverTools, rpm, tpm, budget, budgets } = record;
  const { limitsId, userLimits, budgetsSince } = record;
  const copy = (list: readonly string[] | undefined) => list && Object.freeze([...list]);
  const lists = { models: copy(models), providers: copy(providers), serverTools: copy(serverTools) };
  return Object.freeze({
    credential: 'key',
    userId,
    account,
    keyId: id,
    keyName: name,
    // The sessions of an operator's key end with it.
    ...(isOfOperator(record) && { ...rightsOfKey(record), ...omitUndefined({ expiresAt }) }),
    ...omitUndefined({
      plan,
      ...lists,
      rpm,
      tpm,
      budget,
      budgets,
      budgetsSince,
      tags: copy(record.tags),
      limitsId,
      userLimits: userLimits && Object.freeze({ ...userLimits }),
    }),
  });
}

const EVERY_MS = 60_000;
const MAX_KEYS = 20_000;

interface LastUsed {
  /** Records a use; returns at once, and writes at most once a minute per key. */
  touch(id: string, now: number): void;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
}

/** Writes the time of a key's last use, in a separate document and without delaying a request. */
export function createLastUsed(records: Pick<KeyRecords, 'markUsed'>, log: Log): LastUsed {
  const written = new LRUCache<string, number>(maxEntries(MAX_KEYS));
  const writing = new Set<Promise<void>>();

  return {
    touch(id, now) {
      const before = written.get(id);
      if (before !== undefined && Math.abs(now - before) < EVERY_MS) return;
      written.set(id, now);
      const write = records.markUsed(id, now).catch((error: unknown) => {
        log.debug({ keyId: id, err: error }, 'The last use of an API key could not be stored.');
      });
      writing.add(write);
      void write.finally(() => writing.delete(write));
    },
    async flush() {
      await Promise.all(writing);
    },
  };
}
