import type { CallFacts, CallRow, ReportDimension } from '../../../contract/index.ts';
import { whole } from './check.ts';

/** What the rollup counts by, beside the hour: all dimensions of a report but the session. */
export const ROLLUP_DIMENSIONS = Object.freeze([
  'account',
  'user',
  'key',
  'tags',
  'operation',
  'provider',
  'model',
] as const satisfies readonly ReportDimension[]);

/** Values of {@link ROLLUP_DIMENSIONS}, in their order. */
export type Dimensions = readonly string[];

/** The numbers that the rollup keeps of each group, and the order that {@link Sums} has them in. */
export const SUM_NAMES = Object.freeze([
  'requests',
  'errors',
  'estimated',
  'unpriced',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'characters',
  'cost',
  'saved',
] as const);

/** Numbers of one call or of many, in the order of {@link SUM_NAMES}. */
export type Sums = readonly number[];

/** The sums of {@link SUM_NAMES} that are money: over all accounts and any time they may pass 2^53, so reports have them as `bigint`. */
export const MONEY_SUMS: ReadonlySet<string> = new Set([
  'cost',
  'saved',
] satisfies readonly (typeof SUM_NAMES)[number][]);

/** As {@link Sums}, of any number of calls. */
export type Totals = readonly (number | bigint)[];

/** Totals as a database tells them, as texts where numbers would not be exact. */
export function readTotals(told: readonly unknown[]): Totals {
  return SUM_NAMES.map((name, at) => (MONEY_SUMS.has(name) ? BigInt(String(told[at])) : whole(told[at])));
}

/** The group of a call; `facts` are clean, and so is the account's name (`factText`). */
export function dimensionsOf(account: string, facts: CallFacts): Dimensions {
  const { userId, key, tags, operation, provider, model } = facts;
  return [account, userId, key, tags.length === 0 ? '[]' : JSON.stringify(tags), operation, provider, model];
}

/** What one call adds to its group; `facts` are clean. */
export function sumsOf({ outcome, estimated, priced, units, saved }: CallFacts, cost: number): Sums {
  return [
    1,
    Number(outcome === 'error'),
    Number(estimated),
    Number(!priced),
    units['prompt_tokens'] ?? 0,
    units['completion_tokens'] ?? 0,
    units['cached_tokens'] ?? 0,
    units['reasoning_tokens'] ?? 0,
    units['characters'] ?? 0,
    cost,
    saved ?? 0,
  ];
}

/** The same numbers, negative: what a correction takes out of a group. */
export function negated(sums: Sums): Sums {
  return sums.map((value) => 0 - value);
}

const HOUR_MS = 3_600_000;

/** A record is at most so much later than what it counts at: the records of a span of time are found by their own time. */
export const LONGEST_LAG_MS = HOUR_MS;

/** The start of the hour that an instant is in. */
export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS) * HOUR_MS;
}

/** The first start of an hour at an instant or after it. */
export function nextHour(at: number): number {
  return Math.ceil(at / HOUR_MS) * HOUR_MS;
}

/** What stores keep in columns of their own, to filter by. */
const COLUMNS: readonly (keyof CallFacts)[] = Object.freeze([
  ...(['requestId', 'userId', 'key', 'tags', 'operation', 'provider', 'model'] as const),
  ...(['session', 'outcome'] as const),
]);

/** What of clean facts is neither a dimension nor a column to filter by, as JSON. */
export function packFacts(facts: CallFacts): string {
  return JSON.stringify(otherFacts(facts));
}

/** Clean facts; undefined where they are a dimension or a column to filter by. */
export function otherFacts(facts: CallFacts): object {
  // A copy of one shape, in which JSON leaves out what is undefined, is the cheapest way to leave fields out.
  const packed: Record<string, unknown> = { ...facts };
  for (let at = 0; at < COLUMNS.length; at += 1) packed[COLUMNS[at] as string] = undefined;
  return packed;
}

/** A record as stores keep it. */
export interface PackedCall extends Pick<CallRow, 'id' | 'requestId' | 'cost' | 'at' | 'countedAt' | 'outcome'> {
  readonly dimensions: Dimensions;
  readonly session: string | undefined;
  /** What {@link packFacts} made. */
  readonly packed: string;
}

/** The record of a call out of what the store kept of it. Throws when that is not what {@link packFacts} made. */
export function unpackCall(call: PackedCall): CallRow {
  const { id, requestId, cost, at, countedAt, outcome, dimensions, session, packed } = call;
  const [account = '-', userId = '-', key = '-', tags = '[]', operation = '-', provider = '-', model = '-'] =
    dimensions;
  const rest = JSON.parse(packed) as Omit<CallFacts, 'requestId'>;
  return {
    ...{ id, account, requestId, userId, key, tags: JSON.parse(tags) as readonly string[] },
    ...(session !== undefined && { session }),
    ...{ operation, provider, model, outcome },
    ...rest,
    cost,
    at,
    countedAt,
  };
}
