import { createHash } from 'node:crypto';

/** The longest text that is a key as it is; longer ones are hashed (Postgres and `@keyv/postgres` have limits). */
const MAX_PLAIN = 200;
const PLAIN = /^[\w.:@+/|=-]*$/;
/** NUL ends a text in SQLite and is refused by Postgres; half a surrogate pair has no UTF-8; `~` marks a hash. */
const UNSAFE = /^~|\0|\p{Surrogate}/u;

/**
 * A text of any length and content as a key that every database compares exactly: the text itself when it is short and
 * well-formed, else `~` and its SHA-256.
 */
export function storeKey(text: string): string {
  if (text.length <= MAX_PLAIN && (PLAIN.test(text) || !UNSAFE.test(text))) return text;
  return `~${digest(text)}`;
}

/** The SHA-256 of a text in base64url (43 characters). UTF-16, so that no two texts meet in one replacement character. */
export function digest(text: string): string {
  return createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('base64url');
}
