import type { CallAttempt, CallFacts, CallHook, CostPart, HookTime, LedgerEntry } from '../../../contract/index.ts';
import { CALL_FIELDS, type CallFieldType, FACT_NAMES, UNKNOWN_FACTS } from '../../policies/kit/index.ts';
import { digest, entryId } from './check.ts';

/** Maximum length of an unclipped text in a record. */
const MAX_TEXT = 256;
/** Length of a clipped text before its hash. */
const CLIPPED = 200;
/** Characters that records replace: NUL and lone surrogates. */
const UNSAFE = /[\0\p{Surrogate}]/u;
const MAX_TAGS = 20;
const MAX_UNITS = 32;
const MAX_ATTEMPTS = 20;
const MAX_HOOKS = 20;

/**
 * Cleans a text for records. Long or unsafe texts become their beginning, `~` and the hash of the whole text, so
 * different texts stay different. Idempotent.
 */
export function factText(text: string): string {
  if (text.length <= MAX_TEXT && !UNSAFE.test(text)) return text;
  return `${text.slice(0, CLIPPED).replace(/[\0\p{Surrogate}]/gu, '\u{fffd}')}~${digest(text)}`;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Copies {@link UNKNOWN_FACTS}. Not by a spread: on Node 20, each copy would get a hidden class of its own. */
function createFacts(): Mutable<CallFacts> {
  const { requestId, userId, key, tags, operation, provider, model } = UNKNOWN_FACTS;
  const { stream, outcome, attempts, startedAt, durationMs, units, estimated, priced } = UNKNOWN_FACTS;
  return {
    requestId,
    userId,
    key,
    tags,
    operation,
    provider,
    model,
    stream,
    outcome,
    attempts,
    startedAt,
    durationMs,
    units,
    estimated,
    priced,
  };
}

/** Cleans facts for records: bounded texts, sorted unique tags, whole numbers of at least 0. Idempotent. */
export function cleanFacts(facts: CallFacts): CallFacts {
  const clean: Mutable<CallFacts> & Record<string, unknown> = createFacts();
  for (let at = 0; at < FACTS.length; at += 1) {
    const field = FACTS[at];
    const value = field && facts[field.name];
    if (field && value !== undefined) clean[field.name as string] = field.clean ? field.clean(value) : value;
  }
  return clean;
}

/** Cleaner of each fact type. Types without one need no cleaning. */
const CLEANERS: Readonly<Partial<Record<CallFieldType, (value: never) => unknown>>> = Object.freeze({
  text: (value: unknown) => factText(String(value)),
  texts: (texts: readonly string[]) =>
    texts.length === 0 ? NO_TEXTS : [...new Set(texts.map(factText))].sort().slice(0, MAX_TAGS),
  units: cleanUnits,
  parts: (parts: readonly CostPart[]) => parts.slice(0, MAX_UNITS).map(cleanPart),
  attempts: (attempts: readonly CallAttempt[]) => attempts.slice(0, MAX_ATTEMPTS).map(cleanAttempt),
  hooks: (hooks: readonly CallHook[]) => hooks.slice(0, MAX_HOOKS).map(cleanHook),
  times: (times: readonly HookTime[]) => times.slice(0, MAX_HOOKS).map(cleanTime),
  count: whole,
  ms: whole,
  time: whole,
  usd: whole,
});

const NO_TEXTS: readonly string[] = Object.freeze([]);

/** All facts with their cleaners. */
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

function cleanTime({ plugin, hook, startMs, ms }: HookTime): HookTime {
  return { plugin: factText(plugin), hook: factText(hook), startMs: whole(startMs), ms: whole(ms) };
}

/** Rounds to a safe integer of at least 0; invalid numbers become 0. */
function whole(value: unknown): number {
  const rounded = Math.round(Number(value));
  return rounded > 0 ? Math.min(rounded, Number.MAX_SAFE_INTEGER) : 0;
}

/** Reason of a charge in the ledger: `chat openai/gpt-5`. */
export function chargeReason(facts: CallFacts): string {
  const what = `${facts.operation} ${facts.provider}/${facts.model}`;
  if (facts.outcome === EXPIRED) return `${what} (not settled in time: charged at its estimate)`;
  return facts.priced ? what : `${what} (its cost is not known)`;
}

/** Reason of a correction to the sweeper's charge in the ledger. */
export function correctionReason({ operation, provider, model }: CallFacts): string {
  return `${operation} ${provider}/${model} (settled late: corrected)`;
}

/** Outcome of a reservation that the sweeper settled. */
const EXPIRED = 'expired';

/** Facts of a settlement by the sweeper. Only the planned facts are known. */
export function expiredFacts(facts: CallFacts): CallFacts {
  return { ...facts, outcome: EXPIRED, estimated: true };
}

/** Packs the facts of a reservation as JSON for {@link readFacts}; omits unknown facts. */
export function packPlanned(facts: CallFacts): string {
  return JSON.stringify(plannedFacts(facts));
}

/** Returns the facts of a reservation; unknown facts are undefined. */
export function plannedFacts(facts: CallFacts): object {
  // A copy of one shape: JSON omits undefined values.
  const packed: Record<string, unknown> = { ...facts };
  if (facts.tags.length === 0) packed['tags'] = undefined;
  if (facts.attempts.length === 0) packed['attempts'] = undefined;
  for (let at = 0; at < PLAIN_FACTS.length; at += 1) {
    const name = PLAIN_FACTS[at];
    if (name && packed[name] === UNKNOWN_FACTS[name]) packed[name] = undefined;
  }
  return packed;
}

/** Required facts, apart from lists. They have a default while unknown. */
const PLAIN_FACTS = Object.freeze([
  ...(['requestId', 'userId', 'key', 'operation', 'provider', 'model'] as const),
  ...(['stream', 'outcome', 'durationMs', 'estimated', 'priced'] as const),
]);

/**
 * Reads the facts of a stored reservation, including those of versions with fewer facts. Never throws: a reservation
 * with unreadable facts still holds money, and must not block the sweeper.
 */
export function readFacts(text: unknown): CallFacts {
  try {
    const found = JSON.parse(String(text)) as Partial<CallFacts> | null;
    const facts: Mutable<CallFacts> & Record<string, unknown> = createFacts();
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

/** Row as the database driver returns it. */
type Row = Readonly<Record<string, unknown>>;

/** Converts a row to a ledger entry. `toNumber` reads whole numbers as the driver returns them. */
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
