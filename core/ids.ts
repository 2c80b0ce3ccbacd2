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

const INBOUND = /^[\w.-]{8,128}$/;

/** The inbound `x-request-id` when it has the form that is kept, else a new one. */
export function requestIdOf(inbound: string | string[] | undefined): string {
  return typeof inbound === 'string' && INBOUND.test(inbound) ? inbound : createId('req_');
}
