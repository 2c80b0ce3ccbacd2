import { randomFillSync } from 'node:crypto';

const pool = Buffer.alloc(16 * 128);
let used = pool.length;

/**
 * 128 random bits as text. They are drawn 128 times at once, since the system takes as long for a few bytes as for
 * many.
 */
export function randomText(encoding: 'base64url' | 'hex'): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += 16;
  return pool.toString(encoding, used - 16, used);
}

/** A prefix and 22 url-safe random characters (128 bits), such as `req_…`. */
export function createId(prefix: string): string {
  return prefix + randomText('base64url');
}

/** Number of ids a millisecond. Ids have ten digits until the year 2083. */
const IDS_A_MS = 1024;

/** Maximum distance of an id from the clock: records are found by the time in their ids. */
const MAX_AHEAD = 1000 * IDS_A_MS;

let last = 0;

/**
 * Creates an id of the same length as {@link createId} that sorts after earlier ids, across processes as far as their
 * clocks agree, and until a clock is set back by more than a second. Entries under such ids are stored next to each
 * other. 72 bits of an id are random.
 */
export function createOrderedId(prefix: string): string {
  const now = Date.now() * IDS_A_MS;
  last = last - now > MAX_AHEAD ? now : Math.max(last + 1, now);
  return prefix + last.toString(36) + createId('').slice(0, 12);
}

const INBOUND = /^[\w.-]{8,128}$/;

/**
 * Returns the inbound `x-request-id` if its format is valid, else a new one. New ids grow with time, so the index of
 * records by request changes few pages.
 */
export function requestIdOf(inbound: string | string[] | undefined): string {
  return typeof inbound === 'string' && INBOUND.test(inbound) ? inbound : createOrderedId('req_');
}
