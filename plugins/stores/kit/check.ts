import { createHash } from 'node:crypto';
import { GatewayError, parseUsd, type Reservation } from '../../../contract/index.ts';
import { misuse, unreadable } from './failure.ts';

/** The lowest limit a store compares with; stands for `-Infinity`, which neither SQL nor Lua takes. */
const LOWEST = -Number.MAX_SAFE_INTEGER;

/** How long a released or settled request id is remembered at least, so that a late repetition is `duplicate`. */
export const REMEMBER_MS = 86_400_000;

/** How long a charge of the sweeper is remembered: its call may still end and correct it. Such charges are rare. */
export const CORRECTABLE_MS = 30 * REMEMBER_MS;

const NAMESPACE = /^[a-z0-9][a-z0-9._-]{0,159}$/;
const MAX_TEXT = 512;

/** Throws unless the name may be a namespace; that of a plugin's documents is `group.instance.name`. */
export function checkNamespace(name: string): void {
  if (!NAMESPACE.test(name))
    throw misuse(
      `"${name}" is not a namespace: use at most 160 lower-case letters, digits, dots, underscores and hyphens.`,
    );
}

/** How many budgets one reservation may count in. */
const MAX_BUDGETS = 32;

/** Throws unless all amounts of a reservation are whole nano-dollars and not negative, and its budgets few and different. */
export function checkReservation({ amount, floor, budgets = [] }: Reservation): void {
  if (!Number.isSafeInteger(amount) || amount < 0) throw noAmount();
  if (Number.isNaN(floor)) throw misuse('The floor of a reservation must be a number.');
  if (budgets.length === 0) return;
  if (
    budgets.length > MAX_BUDGETS ||
    (budgets.length > 1 && new Set(budgets.map(({ id }) => id)).size < budgets.length)
  )
    throw misuse(`A reservation counts in at most ${MAX_BUDGETS} budgets, each once.`);
  for (const { limit } of budgets) if (Number.isNaN(limit)) throw misuse('The limit of a budget must be a number.');
}

/** Throws unless the credit is whole nano-dollars; negative takes money back. */
export function checkCredit(amount: number): void {
  if (!Number.isSafeInteger(amount)) throw misuse('A credit must be whole nano-dollars.');
}

/** The most that an account may be credited with, less what was taken back, and that it or a budget may spend: sums stay whole numbers. */
export const MOST_MONEY = parseUsd(9_000_000);

/** Throws `invalid_request` when all credits of an account come to more than it may have. */
export function checkCredited(credited: number): void {
  if (Math.abs(credited) <= MOST_MONEY) return;
  throw new GatewayError(
    'invalid_request',
    'The credits of an account cannot exceed 9,000,000 USD. Use another account for more.',
    { param: 'amount' },
  );
}

/** The refusal of a call whose account would spend more than {@link MOST_MONEY}. */
export function spentTooMuch(): GatewayError {
  return new GatewayError(
    'insufficient_balance',
    'This account reached the spend limit of 9,000,000 USD. Charge another account.',
    { refusedBy: 'balance of the account' },
  );
}

/** The error of an amount that is not whole nano-dollars, or negative. */
export function noAmount(): GatewayError {
  return misuse('An amount must be whole nano-dollars and not negative.');
}

/** A whole number that the store gives, as text where its driver does. Throws for one that JavaScript cannot count with. */
export function whole(value: unknown): number {
  const number = Number(value);
  if (value === null || !Number.isSafeInteger(number)) throw unreadable('balance');
  return number;
}

/** A finite limit that every store can compare with: `Infinity` becomes the largest whole number. */
export function finite(limit: number): number {
  return Math.max(LOWEST, Math.min(Number.MAX_SAFE_INTEGER, Math.floor(limit)));
}

/** Throws unless the text can be a member of a set: 1 to 512 characters, no NUL, no half of a surrogate pair. */
export function checkMember(member: string): void {
  if (member.length === 0 || member.length > MAX_TEXT || member.includes('\0') || /\p{Surrogate}/u.test(member)) {
    throw new GatewayError(
      'invalid_request',
      `A name must have 1 to ${MAX_TEXT} characters of well-formed text without NUL.`,
    );
  }
}

/** The number in the id of a ledger entry; throws `invalid_request` for a cursor that is none. */
export function readCursor(after: string | undefined): number {
  if (after === undefined) return Number.MAX_SAFE_INTEGER;
  if (!/^\d{1,16}$/.test(after)) {
    throw new GatewayError(
      'invalid_request',
      'after must be the id of a ledger entry, from the last entry of the previous page.',
      {
        param: 'after',
      },
    );
  }
  return Math.min(Number(after), Number.MAX_SAFE_INTEGER);
}

/** The id of the `n`th ledger entry of an account: sixteen digits, so that text order is number order. */
export function entryId(n: number): string {
  return String(n).padStart(16, '0');
}

/** How many rows a page may hold: the wanted number, between 1 and 1,000. */
export function pageLimit(limit: number): number {
  return Math.min(1000, Math.max(1, Math.floor(limit)));
}

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
