import type { CallAttempt, CallFacts, CallHook, CostPart, LedgerEntry } from '../../../contract/index.ts';
import { CALL_FIELDS, type CallFieldType, FACT_NAMES, UNKNOWN_FACTS } from '../../policies/kit/index.ts';
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
const MAX_HOOKS = 20;

/** A text as records have it: itself, or its beginning with `~` and the hash of the whole, so that no two texts become one. Twice is as once. */
export function factText(text: string): string {
  if (text.length <= MAX_TEXT && !UNSAFE.test(text)) return text;
  return `${text.slice(0, CLIPPED).replace(/[\0\p{Surrogate}]/gu, '\u{fffd}')}~${digest(text)}`;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Facts as records have them: texts bounded, tags sorted and each once, numbers whole and not negative. Twice is as once. */
export function cleanFacts(facts: CallFacts): CallFacts {
  const clean: Mutable<CallFacts> & Record<string, unknown> = { ...UNKNOWN_FACTS };
  for (let at = 0; at < FACTS.length; at += 1) {
    const field = FACTS[at];
    const value = field && facts[field.name];
    if (field && value !== undefined) clean[field.name as string] = field.clean ? field.clean(value) : value;
  }
  return clean;
}

/** How a fact of a type is made clean; absent for those that are as they are. */
const CLEANERS: Readonly<Partial<Record<CallFieldType, (value: never) => unknown>>> = Object.freeze({
  text: (value: unknown) => factText(String(value)),
  texts: (texts: readonly string[]) =>
    texts.length === 0 ? NO_TEXTS : [...new Set(texts.map(factText))].sort().slice(0, MAX_TAGS),
  units: cleanUnits,
  parts: (parts: readonly CostPart[]) => parts.slice(0, MAX_UNITS).map(cleanPart),
  attempts: (attempts: readonly CallAttempt[]) => attempts.slice(0, MAX_ATTEMPTS).map(cleanAttempt),
  hooks: (hooks: readonly CallHook[]) => hooks.slice(0, MAX_HOOKS).map(cleanHook),
  count: whole,
  ms: whole,
  time: whole,
  usd: whole,
});

const NO_TEXTS: readonly string[] = Object.freeze([]);

/** All facts, with what makes each clean. */
const FACTS = Object.freeze(
  FACT_NAMES.map((name) => ({
    name,
    clean: CLEANERS[CALL_FIELDS[name].type] as ((value: unknown) => unknown) | undefined,
  })),
);

function cleanUnits(units: CallFacts['units']): CallFacts['units'] {
  const clean: Record<string, number> = {};
  let count = 0;
  for (const unit in units) {
    count += 1;
    if (count > MAX_UNITS) break;
    clean[factText(unit)] = whole(units[unit]);
  }
  return clean;
}

function cleanPart({ unit, quantity, usd }: CostPart): CostPart {
  return { unit: factText(unit), quantity: Math.max(quantity, 0) || 0, usd };
}

function cleanAttempt({ target, key, status, class: kind, reason, ms }: CallAttempt): CallAttempt {
  const clean: Mutable<CallAttempt> = { target: factText(target), ms: whole(ms) };
  if (key !== undefined) clean.key = factText(key);
  if (status !== undefined) clean.status = whole(status);
  if (kind !== undefined) clean.class = kind;
  if (reason !== undefined) clean.reason = factText(reason);
  return clean;
}

function cleanHook({ plugin, hook, action, ms }: CallHook): CallHook {
  return { plugin: factText(plugin), hook: factText(hook), action, ...(ms !== undefined && { ms: whole(ms) }) };
}

/** The nearest whole number that a store can count with; 0 for what is none. */
function whole(value: unknown): number {
  const rounded = Math.round(Number(value));
  return rounded > 0 ? Math.min(rounded, Number.MAX_SAFE_INTEGER) : 0;
}

/** The reason that a charge shows in the books: `chat openai/gpt-5`. */
export function chargeReason(facts: CallFacts): string {
  const what = `${facts.operation} ${facts.provider}/${facts.model}`;
  if (facts.outcome === EXPIRED) return `${what} (not settled in time: charged at its estimate)`;
  return facts.priced ? what : `${what} (its cost is not known)`;
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

/** Facts of a reservation as JSON for {@link readFacts}, without those that nothing is known of yet. */
export function packPlanned(facts: CallFacts): string {
  return JSON.stringify(plannedFacts(facts));
}

/** Facts of a reservation; undefined where nothing is known yet. */
export function plannedFacts(facts: CallFacts): object {
  // A copy of one shape: JSON leaves out what is undefined.
  const packed: Record<string, unknown> = { ...facts };
  if (facts.tags.length === 0) packed['tags'] = undefined;
  if (facts.attempts.length === 0) packed['attempts'] = undefined;
  for (let at = 0; at < PLAIN_FACTS.length; at += 1) {
    const name = PLAIN_FACTS[at];
    if (name && packed[name] === UNKNOWN_FACTS[name]) packed[name] = undefined;
  }
  return packed;
}

/** Facts that a call has whether or not they are known, and that are no lists. */
const PLAIN_FACTS = Object.freeze([
  ...(['requestId', 'userId', 'key', 'operation', 'provider', 'model'] as const),
  ...(['stream', 'outcome', 'durationMs', 'estimated', 'priced'] as const),
]);

/**
 * The facts that a reservation was stored with, also by a version that knew fewer of them. Never throws: a reservation whose facts
 * cannot be read is still money, and must not keep the sweeper from those after it.
 */
export function readFacts(text: unknown): CallFacts {
  try {
    const found = JSON.parse(String(text)) as Partial<CallFacts> | null;
    const facts: Mutable<CallFacts> & Record<string, unknown> = { ...UNKNOWN_FACTS };
    for (const name of FACT_NAMES)
      if (isLike(found?.[name], UNKNOWN_FACTS[name] ?? '')) facts[name as string] = found?.[name];
    return cleanFacts(facts);
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
