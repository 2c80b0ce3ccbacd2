import {
  CALL_FIELDS,
  type CallFacts,
  type CallFieldType,
  type LedgerEntry,
  makeFacts,
  UNKNOWN_FACTS,
} from '../../../core/index.ts';
import { digest, entryId } from './check.ts';

/** The longest text that a record keeps whole. */
const MAX_TEXT = 256;
/** How much of a longer one is kept before its hash. */
const CLIPPED = 200;
/** What no record keeps as it is: NUL and half a surrogate pair. */
const UNSAFE = /[\0\p{Surrogate}]/u;
const MAX_TAGS = 20;
const MAX_UNITS = 32;
const MAX_ATTEMPTS = 20;

/** A text as records have it: itself, or its beginning with `~` and the hash of the whole, so that no two texts become one. Twice is as once. */
export function factText(text: string): string {
  if (text.length <= MAX_TEXT && !UNSAFE.test(text)) return text;
  return `${text.slice(0, CLIPPED).replace(/[\0\p{Surrogate}]/gu, '\u{fffd}')}~${digest(text)}`;
}

/** Facts as records have them: texts bounded, tags sorted and each once, numbers whole and not negative. Twice is as once. */
export function cleanFacts(facts: CallFacts): CallFacts {
  return makeFacts((name) => {
    const value = facts[name];
    return value === undefined ? undefined : cleanValue(CALL_FIELDS[name].type, value);
  });
}

/** A value as its type is kept. What is typed otherwise than its field never comes here. */
function cleanValue<T>(type: CallFieldType, value: T): T {
  const clean = CLEANERS[type];
  return clean ? (clean(value) as T) : value;
}

const CLEANERS: Readonly<Partial<Record<CallFieldType, (value: unknown) => unknown>>> = Object.freeze({
  text: (text) => factText(String(text)),
  texts: (texts) => cleanTags(texts as CallFacts['tags']),
  count: whole,
  ms: whole,
  time: whole,
  usd: whole,
  units: (units) => cleanUnits(units as CallFacts['units']),
  attempts: (attempts) => cleanAttempts(attempts as CallFacts['attempts']),
});

function cleanTags(tags: CallFacts['tags']): CallFacts['tags'] {
  return tags.length === 0 ? tags : [...new Set(tags.map(factText))].sort().slice(0, MAX_TAGS);
}

function cleanUnits(units: CallFacts['units']): CallFacts['units'] {
  const kept = Object.entries(units).slice(0, MAX_UNITS);
  return Object.fromEntries(kept.map(([unit, amount]) => [factText(unit), whole(amount)]));
}

function cleanAttempts(attempts: CallFacts['attempts']): CallFacts['attempts'] {
  return attempts.slice(0, MAX_ATTEMPTS).map(({ target, status, class: kind, reason, ms }) => ({
    ...{ target: factText(target), ms: whole(ms) },
    ...(status !== undefined && { status: whole(status) }),
    ...(kind !== undefined && { class: kind }),
    ...(reason !== undefined && { reason: factText(reason) }),
  }));
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
    const found = JSON.parse(String(text)) as Partial<CallFacts> | null;
    return cleanFacts(
      makeFacts((name) => {
        const value = found?.[name];
        return isLike(value, UNKNOWN_FACTS[name] ?? '') ? value : undefined;
      }),
    );
  } catch {
    return UNKNOWN_FACTS;
  }
}

function isLike(value: unknown, sample: unknown): boolean {
  if (Array.isArray(sample)) return Array.isArray(value) && value.every((each) => typeof each === 'string');
  return typeof value === typeof sample && value !== null && !Array.isArray(value);
}

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
