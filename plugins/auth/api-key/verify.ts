import { hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { GatewayError, type Principal } from '../../../core/index.ts';
import { idIn, parseKey } from './format.ts';
import type { Peppers } from './peppers.ts';
import type { KeyRecord, KeyRecords, StoredKey } from './records.ts';

/** How old an answer of the store may be: every node sees a revocation after this at the latest, by itself. */
const KNOWN_MS = 2000;
const UNKNOWN_MS = 1000;
const KNOWN_MAX = 20_000;
const UNKNOWN_MAX = 2000;

/** Compared with when there is no record, so that an unknown id takes the same steps as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

interface Entry {
  readonly id: string;
  readonly readAt: number;
  readonly stored: StoredKey | undefined;
  readonly principal: Principal | undefined;
  readonly hash: Buffer;
  readonly peppers: Peppers;
  /** SHA-256 of the credential that proved right, so that the next request need not be hashed with the pepper. */
  proof: Buffer | undefined;
}

export interface Verifier {
  /**
   * Who holds this key. Throws `invalid_api_key`, `revoked_api_key` or `expired_api_key`, and `store_unavailable` when
   * the store does not answer. Answers at once when it knows, else with a promise.
   */
  verify(credential: string, now: number): Principal | Promise<Principal>;
  /** Makes this node ask the store again: at once, also for look-ups that are under way. */
  forget(id: string): void;
}

export function createVerifier(
  records: Pick<KeyRecords, 'find'>,
  readPeppers: () => Promise<Peppers>,
  onUse: (id: string, now: number) => void,
): Verifier {
  const known = new LRUCache<string, Entry>({ max: KNOWN_MAX });
  const unknown = new LRUCache<string, Entry>({ max: UNKNOWN_MAX });
  const pending = new Map<string, Promise<Entry>>();

  const load = async (id: string, now: number): Promise<Entry> => {
    const peppers = await readPeppers();
    const stored = await records.find(id);
    return {
      id,
      readAt: now,
      stored,
      principal: stored && toPrincipal(stored.record),
      hash: stored ? Buffer.from(stored.record.hash, 'hex') : NO_HASH,
      peppers,
      proof: undefined,
    };
  };

  /** One look-up for all who ask for one id at once. A look-up that `forget` overtook is not remembered. */
  const loadOnce = (id: string, now: number): Promise<Entry> => {
    const running = pending.get(id);
    if (running) return running;
    const promise: Promise<Entry> = load(id, now).then(
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

  const check = (entry: Entry, id: string, credential: string, now: number): Principal => {
    const principal = judge(entry, credential, now);
    onUse(id, now);
    return principal;
  };

  return {
    verify(credential, now) {
      const proven = freshEntry(known.get(idIn(credential)), KNOWN_MS, now);
      // What proved right before needs no look at its shape: only the same text has the same hash.
      if (proven?.proof) return check(proven, proven.id, credential, now);
      const id = parseKey(credential)?.id;
      if (id === undefined) throw invalid();
      const entry = proven ?? freshEntry(unknown.get(id), UNKNOWN_MS, now);
      if (entry) return check(entry, id, credential, now);
      return loadOnce(id, now).then((loaded) => check(loaded, id, credential, now));
    },
    forget(id) {
      known.delete(id);
      unknown.delete(id);
      pending.delete(id);
    },
  };
}

/** A clock that was set back makes an entry old, never young. */
function freshEntry(entry: Entry | undefined, maxAgeMs: number, now: number): Entry | undefined {
  const age = entry ? now - entry.readAt : -1;
  return age >= 0 && age < maxAgeMs ? entry : undefined;
}

/** Only who holds the secret learns that a key is revoked or expired. */
function judge(entry: Entry, credential: string, now: number): Principal {
  if (!proves(entry, credential) || !entry.principal) throw invalid();
  const { revokedAt, expiresAt } = entry.stored ?? {};
  if (revokedAt !== undefined) {
    throw new GatewayError('revoked_api_key', 'This API key was revoked. Use another key, or make a new one.');
  }
  if (expiresAt !== undefined && now >= expiresAt) {
    throw new GatewayError('expired_api_key', 'This API key has expired. Use another key, or make a new one.');
  }
  return entry.principal;
}

/** The SHA-256 of the credential that is being looked at. */
const digest = Buffer.alloc(32);

function proves(entry: Entry, credential: string): boolean {
  // As text into bytes that are there: a buffer of its own would cost more than the hash.
  digest.write(hash('sha256', credential, 'binary'), 'binary');
  if (entry.proof) return timingSafeEqual(entry.proof, digest);
  const pepper = entry.stored && entry.peppers.find(entry.stored.record.pepperId);
  const expected = pepper ? entry.hash : NO_HASH;
  const matches = timingSafeEqual((pepper ?? entry.peppers.current).hash(credential), expected);
  if (!matches || !pepper) return false;
  entry.proof = Buffer.from(digest);
  return true;
}

function toPrincipal({ id, userId, account, name, plan, models, providers, rpm, tpm, budget }: KeyRecord): Principal {
  return Object.freeze({
    credential: 'key',
    userId,
    account,
    keyId: id,
    keyName: name,
    ...(plan !== undefined && { plan }),
    ...(models && { models: Object.freeze([...models]) }),
    ...(providers && { providers: Object.freeze([...providers]) }),
    ...(rpm !== undefined && { rpm }),
    ...(tpm !== undefined && { tpm }),
    ...(budget !== undefined && { budget }),
  });
}

function invalid(): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    'This API key is not valid here: check that it was copied whole, and that it belongs to this gateway.',
  );
}
