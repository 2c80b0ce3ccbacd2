import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** 256 random bits, as text. */
export function randomId(): string {
  return randomBytes(32).toString('base64url');
}

/** What is stored in place of a secret: it leads to nothing without that. */
export function hashId(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A secret that follows from another one and a word. */
export function deriveSecret(secret: string, word: string): string {
  return createHmac('sha256', secret).update(word).digest('base64url');
}

/** Compares in a time that says nothing about where two texts differ. */
export function isSame(one: string, other: string): boolean {
  return timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest());
}
