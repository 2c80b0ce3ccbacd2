import { randomFillSync } from 'node:crypto';

const pool = Buffer.alloc(16 * 128);
let used = pool.length;

/** A prefix and 22 url-safe random characters (128 bits), such as `req_…`; random bytes are drawn 128 ids at a time. */
export function createId(prefix: string): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = pool.toString('base64url', used, used + 16);
  used += 16;
  return prefix + id;
}

let last = 0;

/**
 * An id as long as {@link createId}'s that is greater, as text, than those this process made before it and (but for clocks)
 * those that others did: what is stored under it lies beside what was stored just before. 72 bits of it are random.
 */
export function createOrderedId(prefix: string): string {
  // Room for a thousand ids a millisecond; ten digits until the year 2083.
  last = Math.max(last + 1, Date.now() * 1024);
  return prefix + last.toString(36) + createId('').slice(0, 12);
}

const INBOUND = /^[\w.-]{8,128}$/;

/** The inbound `x-request-id` when it has the form that is kept, else a new one. */
export function requestIdOf(inbound: string | string[] | undefined): string {
  return typeof inbound === 'string' && INBOUND.test(inbound) ? inbound : createId('req_');
}
