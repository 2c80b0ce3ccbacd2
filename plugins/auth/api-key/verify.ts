import { hash, timingSafeEqual } from 'node:crypto';
import { GatewayError, type Principal } from '../../../core/index.ts';
import { idIn, parseKey } from './format.ts';
import { type CachedKey, createKeyCache, NO_HASH } from './key-cache.ts';
import type { Peppers } from './peppers.ts';
import type { KeyRecords } from './records.ts';

export interface Verifier {
  /**
   * Who holds this key: at once when it is in the cache, else as a promise. Throws `invalid_api_key`, `revoked_api_key`
   * or `expired_api_key`, and `store_unavailable` when the store does not answer.
   */
  verify(credential: string, now: number): Principal | Promise<Principal>;
  /** Makes this node read the store again: at once, also for look-ups that are under way. */
  forget(id: string): void;
}

export function createVerifier(
  records: Pick<KeyRecords, 'find'>,
  readPeppers: () => Promise<Peppers>,
  onUse: (id: string, now: number) => void,
): Verifier {
  const cache = createKeyCache(records, readPeppers);
  const accept = (key: CachedKey, credential: string, now: number): Principal => {
    const principal = checkKey(key, credential, now);
    onUse(key.id, now);
    return principal;
  };
  return {
    verify(credential, now) {
      const known = cache.findKnown(idIn(credential), now);
      // A credential that was verified before needs no look at its shape: only the same text has the same hash.
      if (known?.proof) return accept(known, credential, now);
      const id = parseKey(credential)?.id;
      if (id === undefined) throw invalidKey();
      const key = known ?? cache.findUnknown(id, now);
      if (key) return accept(key, credential, now);
      return cache.load(id, now).then((loaded) => accept(loaded, credential, now));
    },
    forget: cache.forget,
  };
}

/** Only who holds the secret learns that a key is revoked or expired. */
function checkKey(key: CachedKey, credential: string, now: number): Principal {
  if (!matchesHash(key, credential) || !key.principal) throw invalidKey();
  const { revokedAt, expiresAt } = key.stored ?? {};
  if (revokedAt !== undefined) {
    throw new GatewayError('revoked_api_key', 'This API key was revoked. Use another key, or make a new one.');
  }
  if (expiresAt !== undefined && now >= expiresAt) {
    throw new GatewayError('expired_api_key', 'This API key has expired. Use another key, or make a new one.');
  }
  return key.principal;
}

/** The SHA-256 of the credential that is being checked. */
const digest = Buffer.alloc(32);

function matchesHash(key: CachedKey, credential: string): boolean {
  // Written into bytes that are there already: a buffer of its own would cost more than the hash.
  digest.write(hash('sha256', credential, 'binary'), 'binary');
  if (key.proof) return timingSafeEqual(key.proof, digest);
  const pepper = key.stored && key.peppers.find(key.stored.record.pepperId);
  const expected = pepper ? key.hash : NO_HASH;
  const matches = timingSafeEqual((pepper ?? key.peppers.current).hash(credential), expected);
  if (!matches || !pepper) return false;
  key.proof = Buffer.from(digest);
  return true;
}

function invalidKey(): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    'This API key is not valid here: check that it was copied whole, and that it belongs to this gateway.',
  );
}
