import type { CallFacts, LedgerEntry } from '../../../core/index.ts';
import { digest, entryId } from './check.ts';

/** The longest text that a record keeps whole. */
const MAX_TEXT = 256;
/** How much of a longer one is kept before its hash. */
const CLIPPED = 200;
/** What no record keeps as it is: NUL and half a surrogate pair. */
const UNSAFE = /[\0\p{Surrogate}]/u;
const MAX_TAGS = 20;
const MAX_UNITS = 32;

/** A text as records have it: itself, or its beginning with `~` and the hash of the whole, so that no two texts become one. Twice is as once. */
export function factText(text: string): string {
  if (text.length <= MAX_TEXT && !UNSAFE.test(text)) return text;
  return `${text.slice(0, CLIPPED).replace(/[\0\p{Surrogate}]/gu, '\u{fffd}')}~${digest(text)}`;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Facts as records have them: texts bounded, tags sorted and each once, numbers whole and not negative. */
export function cleanFacts(facts: CallFacts): CallFacts {
  const { session, requested, errorCode, lane, firstByteMs, saved } = facts;
  const units = Object.entries(facts.units).slice(0, MAX_UNITS);
  // One literal, and what not every call has put after it: spread together, it would be a hash table.
  const clean: Mutable<CallFacts> = {
    requestId: factText(facts.requestId),
    userId: factText(facts.userId),
    key: factText(facts.key),
    tags: facts.tags.length === 0 ? facts.tags : [...new Set(facts.tags.map(factText))].sort().slice(0, MAX_TAGS),
    operation: factText(facts.operation),
    provider: factText(facts.provider),
    model: factText(facts.model),
    stream: facts.stream,
    outcome: facts.outcome,
    attempts: whole(facts.attempts),
    startedAt: whole(facts.startedAt),
    durationMs: whole(facts.durationMs),
    units: Object.fromEntries(units.map(([unit, amount]) => [factText(unit), whole(amount)])),
    estimated: facts.estimated,
    priced: facts.priced,
  };
  if (session !== undefined) clean.session = factText(session);
  if (requested !== undefined) clean.requested = factText(requested);
  if (errorCode !== undefined) clean.errorCode = factText(errorCode);
  if (lane !== undefined) clean.lane = factText(lane);
  if (firstByteMs !== undefined) clean.firstByteMs = whole(firstByteMs);
  if (saved !== undefined) clean.saved = whole(saved);
  return clean;
}

/** The nearest whole number that a store can count with; 0 for what is none. */
function whole(value: unknown): number {
  const rounded = Math.round(Number(value));
  return rounded > 0 ? Math.min(rounded, Number.MAX_SAFE_INTEGER) : 0;
}

/** The reason that a charge shows in the books: `chat openai/gpt-5`. */
export function chargeReason(facts: CallFacts): string {
  const what = `${facts.operation} ${facts.provider}/${facts.model}`;
  return facts.outcome === EXPIRED ? `${what} (not settled in time: charged at its estimate)` : what;
}

/** The reason that a correction of the sweeper's charge shows in the books. */
export function correctionReason({ operation, provider, model }: CallFacts): string {
  return `${operation} ${provider}/${model} (settled late: corrected)`;
}

/** The outcome of a reservation that the sweeper settled. */
const EXPIRED = 'expired';

/** The facts that the sweeper settles a reservation with: nothing is known but what was planned. */
export function expiredFacts(facts: CallFacts): CallFacts {
  return { ...facts, outcome: EXPIRED, estimated: true };
}

/**
 * The facts that a reservation was stored with, also by a version that knew fewer of them. Never throws: a reservation whose facts
 * cannot be read is still money, and must not keep the sweeper from those after it.
 */
export function readFacts(text: unknown): CallFacts {
  try {
    const found = JSON.parse(String(text)) as Partial<Record<keyof CallFacts, unknown>> | null;
    const known = Object.entries(UNKNOWN_FACTS).map(([name, unknown]) => {
      const value = found?.[name as keyof CallFacts];
      return [name, isLike(value, unknown) ? value : unknown];
    });
    const { session, requested } = found ?? {};
    return cleanFacts({
      ...(Object.fromEntries(known) as unknown as CallFacts),
      ...(typeof session === 'string' && { session }),
      ...(typeof requested === 'string' && { requested }),
    });
  } catch {
    return UNKNOWN_FACTS;
  }
}

function isLike(value: unknown, sample: unknown): boolean {
  if (Array.isArray(sample)) return Array.isArray(value) && value.every((each) => typeof each === 'string');
  return typeof value === typeof sample && value !== null && !Array.isArray(value);
}

/** The facts of a call of which nothing is known. */
const UNKNOWN_FACTS: CallFacts = Object.freeze({
  requestId: '-',
  userId: '-',
  key: '-',
  tags: [],
  operation: 'unknown',
  provider: '-',
  model: '-',
  stream: false,
  outcome: 'unknown',
  attempts: 0,
  startedAt: 0,
  durationMs: 0,
  units: {},
  estimated: true,
  priced: true,
});

/** A row as a database's driver gives it. */
type Row = Readonly<Record<string, unknown>>;

/** An entry of the books out of a row; `toNumber` reads the driver's form of a whole number. */
export function readEntryRow(account: string, row: Row, toNumber: (value: unknown) => number): LedgerEntry {
  return {
    id: entryId(toNumber(row['n'])),
    account,
    kind: row['kind'] === 'credit' ? 'credit' : 'charge',
    amount: toNumber(row['amount']),
    reason: String(row['reason']),
    ref: String(row['ref']),
    at: toNumber(row['at']),
  };
}
