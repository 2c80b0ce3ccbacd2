import { createHash } from 'node:crypto';
import { GatewayError, parseUsd, type Reservation } from '../../../contract/index.ts';
import { misuse, unreadable } from './failure.ts';

/** Lowest limit that a store compares with. Replaces `-Infinity`, which neither SQL nor Lua accepts. */
const LOWEST = -Number.MAX_SAFE_INTEGER;

/** Minimum time to remember a released or settled request id, so that a late repetition is `duplicate`. */
export const REMEMBER_MS = 86_400_000;

/** Time to remember a charge of the sweeper: its call may still end and correct the charge. Such charges are rare. */
export const CORRECTABLE_MS = 30 * REMEMBER_MS;

const NAMESPACE = /^[a-z0-9][a-z0-9._-]{0,159}$/;
const MAX_TEXT = 512;

/** Throws if a name is not a valid namespace. The namespace of a plugin's documents is `group.instance.name`. */
export function checkNamespace(name: string): void {
  if (!NAMESPACE.test(name))
    throw misuse(
      `"${name}" is not a namespace: use at most 160 lower-case letters, digits, dots, underscores and hyphens.`,
    );
}

/** Maximum number of budgets of one reservation. */
const MAX_BUDGETS = 32;

/**
 * Throws if an amount of a reservation is negative or not whole nano-dollars, or if budgets are too many or repeated.
 */
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

/** Throws if a credit is not whole nano-dollars. Negative credits withdraw money. */
export function checkCredit(amount: number): void {
  if (!Number.isSafeInteger(amount)) throw misuse('A credit must be whole nano-dollars.');
}

/**
 * Maximum total credit of an account (after withdrawals), and maximum spend of an account or budget. Sums stay safe
 * integers.
 */
export const MOST_MONEY = parseUsd(9_000_000);

/** Throws `invalid_request` if the total credit of an account exceeds the maximum. */
export function checkCredited(credited: number): void {
  if (Math.abs(credited) <= MOST_MONEY) return;
  throw new GatewayError(
    'invalid_request',
    'The credits of an account cannot exceed 9,000,000 USD. Use another account for more.',
    { param: 'amount' },
  );
}

/** Error for a call whose account would spend more than {@link MOST_MONEY}. */
export function spentTooMuch(): GatewayError {
  return new GatewayError(
    'insufficient_balance',
    'This account reached the spend limit of 9,000,000 USD. Charge another account.',
    { refusedBy: 'balance of the account' },
  );
}

/** Error for an amount that is negative or not whole nano-dollars. */
export function noAmount(): GatewayError {
  return misuse('An amount must be whole nano-dollars and not negative.');
}

/** Reads a whole number from the store; some drivers return text. Throws for numbers beyond the safe integers. */
export function whole(value: unknown): number {
  const number = Number(value);
  if (value === null || !Number.isSafeInteger(number)) throw unreadable('balance');
  return number;
}

/** Clamps a limit to what every store can compare with: `Infinity` becomes the largest safe integer. */
export function finite(limit: number): number {
  return Math.max(LOWEST, Math.min(Number.MAX_SAFE_INTEGER, Math.floor(limit)));
}

/** Throws if a text cannot be a member of a set: 1 to 512 characters, no NUL, no lone surrogate. */
export function checkMember(member: string): void {
  if (member.length === 0 || member.length > MAX_TEXT || member.includes('\0') || /\p{Surrogate}/u.test(member)) {
    throw new GatewayError(
      'invalid_request',
      `A name must have 1 to ${MAX_TEXT} characters of well-formed text without NUL.`,
    );
  }
}

/** Reads the number of a ledger entry id; throws `invalid_request` for an invalid cursor. */
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

/** Returns the id of the `n`th ledger entry of an account: 16 digits, so that text order is numeric order. */
export function entryId(n: number): string {
  return String(n).padStart(16, '0');
}

/** Clamps a page size to 1 to 1,000. */
export function pageLimit(limit: number): number {
  return Math.min(1000, Math.max(1, Math.floor(limit)));
}

/** Maximum length of an unhashed key. Postgres and `@keyv/postgres` limit the length. */
const MAX_PLAIN = 200;
const PLAIN = /^[\w.:@+/|=-]*$/;
/** NUL ends a text in SQLite, and Postgres rejects it. A lone surrogate has no UTF-8 form. `~` marks a hash. */
const UNSAFE = /^~|\0|\p{Surrogate}/u;

/**
 * Converts any text to a key that every database compares exactly. Short well-formed texts are their own key; others
 * become `~` and their SHA-256.
 */
export function storeKey(text: string): string {
  if (text.length <= MAX_PLAIN && (PLAIN.test(text) || !UNSAFE.test(text))) return text;
  return `~${digest(text)}`;
}

/**
 * SHA-256 of a text in base64url (43 characters). Hashes UTF-16: in UTF-8, lone surrogates would become the same
 * replacement character.
 */
export function digest(text: string): string {
  return createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('base64url');
}
