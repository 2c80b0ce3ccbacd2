import { GatewayError, parseUsd } from '../../../../contract/index.ts';
import type { Raise } from './budget-window.ts';

/** Raise in a request of an operator. */
export interface RaiseValues {
  readonly amount_usd: string | number;
  /** ISO 8601 with a zone. */
  readonly until: string;
}

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/i;
/** Maximum number of concurrent raises of one budget, and maximum duration of a raise. */
const MAX_RAISES = 20;
const LONGEST_RAISE_MS = 5 * 366 * 86_400_000;
/** Same maximum as for budgets: larger sums would exceed the safe integers. */
const MAX_RAISED = parseUsd(9_000_000);

/** Reads a raise; throws `invalid_request` naming the field. */
export function readRaise({ amount_usd, until }: RaiseValues, now: number): Raise {
  return { amount: readAmount(amount_usd), until: readUntil(until, now) };
}

/** Returns the active raises. */
export function runningOf(raises: readonly Raise[], now: number): readonly Raise[] {
  return raises.filter(({ until }) => until > now);
}

/** Adds a raise; throws `conflict` if there are too many. */
export function withRaise(raises: readonly Raise[], raise: Raise): readonly Raise[] {
  const all = [...raises, raise];
  if (all.length <= MAX_RAISES && all.reduce((sum, { amount }) => sum + amount, 0) <= MAX_RAISED) return all;
  throw new GatewayError(
    'conflict',
    `The maximum of ${MAX_RAISES} active raises of this budget is reached. End them first.`,
  );
}

function readAmount(amount: string | number): number {
  try {
    const nano = parseUsd(amount);
    if (nano > 0) return nano;
  } catch {
    // The error below covers every invalid amount.
  }
  throw new GatewayError(
    'invalid_request',
    'Invalid raise, which must be above 0 US dollars: write "5", "0.50" or "12.345678", at most 9000000.',
    { param: 'amount_usd' },
  );
}

function readUntil(text: string, now: number): number {
  const until = DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (until > now && until < now + LONGEST_RAISE_MS) return until;
  throw new GatewayError(
    'invalid_request',
    Number.isNaN(until)
      ? '"until" is not a date-time with a time zone: write 2027-01-31T12:00:00Z.'
      : '"until" must be in the future, at most five years ahead.',
    { param: 'until' },
  );
}
