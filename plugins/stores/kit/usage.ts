import type { LedgerEntry, UsageFacts, UsageRow } from '../../../core/index.ts';
import { entryId } from './check.ts';

/** What one settled call adds to its usage row. */
interface UsageCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly characters: number;
}

/** The numbers of a call's facts; absent ones count as 0. */
export function countUsage(facts: UsageFacts): UsageCounts {
  return {
    promptTokens: facts.tokens?.prompt_tokens ?? 0,
    completionTokens: facts.tokens?.completion_tokens ?? 0,
    characters: facts.characters ?? 0,
  };
}

/** The reason that a charge shows in the books: `chat openai/gpt-5`. */
export function chargeReason(facts: UsageFacts): string {
  const what = `${facts.operation} ${facts.provider}/${facts.model}`;
  return facts.outcome === EXPIRED ? `${what} (not settled in time: charged at its estimate)` : what;
}

/** The reason that a correction of the sweeper's charge shows in the books. */
export function correctionReason({ operation, provider, model }: UsageFacts): string {
  return `${operation} ${provider}/${model} (settled late: corrected)`;
}

/** The outcome of a reservation that the sweeper settled. */
const EXPIRED = 'expired';

/** The facts that the sweeper settles a reservation with: nothing is known but what was planned. */
export function expiredFacts(facts: UsageFacts): UsageFacts {
  return { ...facts, outcome: EXPIRED, estimated: true };
}

/**
 * The facts that a reservation was stored with. Never throws: a reservation whose facts cannot be read is still money,
 * and must not keep the sweeper from those after it.
 */
export function readFacts(text: unknown): UsageFacts {
  try {
    const { operation, provider, model, key } = JSON.parse(String(text)) as UsageFacts;
    return { ...UNKNOWN_FACTS, operation: `${operation}`, provider: `${provider}`, model: `${model}`, key: `${key}` };
  } catch {
    return UNKNOWN_FACTS;
  }
}

/** The facts of a call of which nothing is known. */
const UNKNOWN_FACTS: UsageFacts = Object.freeze({
  operation: 'unknown',
  provider: '-',
  model: '-',
  key: '-',
  outcome: 'unknown',
  estimated: true,
});

let lastDay = { number: -1, text: '' };

/** `YYYY-MM-DD` of a Unix time in milliseconds, UTC. Remembers the last day: every call of a day needs the same. */
export function dayOf(time: number): string {
  const number = Math.floor(time / 86_400_000);
  if (number !== lastDay.number) lastDay = { number, text: new Date(time).toISOString().slice(0, 10) };
  return lastDay.text;
}

const DAY_MS = 86_400_000;

/** The longest range of days of a usage report. */
export const USAGE_DAYS = 400;

/** The days from `from` to `to` (`YYYY-MM-DD`, inclusive); of a longer range the newest {@link USAGE_DAYS}. */
export function daysBetween(from: string, to: string): string[] {
  const last = Date.parse(`${to}T00:00:00Z`);
  const first = Math.max(Date.parse(`${from}T00:00:00Z`), last - (USAGE_DAYS - 1) * DAY_MS);
  const days: string[] = [];
  for (let day = first; day <= last; day += DAY_MS) days.push(new Date(day).toISOString().slice(0, 10));
  return days;
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

/** A row of usage; `toNumber` reads the driver's form of a whole number. */
export function readUsageRow(row: Row, toNumber: (value: unknown) => number): UsageRow {
  return {
    day: String(row['day']),
    operation: String(row['operation']),
    provider: String(row['provider']),
    model: String(row['model']),
    key: String(row['key']),
    requests: toNumber(row['requests']),
    prompt_tokens: toNumber(row['prompt_tokens']),
    completion_tokens: toNumber(row['completion_tokens']),
    characters: toNumber(row['characters']),
    cost: toNumber(row['cost']),
  };
}
