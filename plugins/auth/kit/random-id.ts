import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Returns 256 random bits as text. */
export function randomId(): string {
  return randomBytes(32).toString('base64url');
}

/** Hash stored in place of a secret, which it does not reveal. */
export function hashId(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Derives a secret from another one and a word. */
export function deriveSecret(secret: string, word: string): string {
  return createHmac('sha256', secret).update(word).digest('base64url');
}

/** Compares two texts in constant time. */
export function isSame(one: string, other: string): boolean {
  return timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest());
}
