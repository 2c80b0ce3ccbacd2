import type { CallFacts, CallRow, ReportDimension } from '../../../contract/index.ts';
import { whole } from './check.ts';

/** Dimensions of the rollup in addition to the hour: all dimensions of a report except the session. */
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

/** Sums that the rollup stores per group, in the order of {@link Sums}. */
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

/** Sums of one or more calls, in the order of {@link SUM_NAMES}. */
export type Sums = readonly number[];

/**
 * Sums of {@link SUM_NAMES} that are money. Over all accounts and any time they may exceed 2^53, so reports use
 * `bigint`.
 */
export const MONEY_SUMS: ReadonlySet<string> = new Set([
  'cost',
  'saved',
] satisfies readonly (typeof SUM_NAMES)[number][]);

/** Sums of any number of calls, in the order of {@link SUM_NAMES}. */
export type Totals = readonly (number | bigint)[];

/** Reads totals from a database row; numbers that would not be exact are strings. */
export function readTotals(reported: readonly unknown[]): Totals {
  return SUM_NAMES.map((name, at) => (MONEY_SUMS.has(name) ? BigInt(String(reported[at])) : whole(reported[at])));
}

/** Returns the group of a call. `facts` and the account name must be clean (`factText`). */
export function dimensionsOf(account: string, facts: CallFacts): Dimensions {
  const { userId, key, tags, operation, provider, model } = facts;
  return [account, userId, key, tags.length === 0 ? '[]' : JSON.stringify(tags), operation, provider, model];
}

/** Returns the sums that one call adds to its group. `facts` must be clean. */
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

/** Negates sums: a correction subtracts them from a group. */
export function negated(sums: Sums): Sums {
  return sums.map((value) => 0 - value);
}

const HOUR_MS = 3_600_000;

/**
 * Maximum delay between the counting time of a call and its record. Reports find the records of a period by their own
 * time.
 */
export const LONGEST_LAG_MS = HOUR_MS;

/** Returns the start of the hour that contains an instant. */
export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS) * HOUR_MS;
}

/** Returns the first start of an hour at or after an instant. */
export function nextHour(at: number): number {
  return Math.ceil(at / HOUR_MS) * HOUR_MS;
}

/** Facts that stores keep in separate columns for filters. */
const COLUMNS: readonly (keyof CallFacts)[] = Object.freeze([
  ...(['requestId', 'userId', 'key', 'tags', 'operation', 'provider', 'model'] as const),
  ...(['session', 'outcome'] as const),
]);

/** Packs the clean facts that are neither a dimension nor a filter column as JSON. */
export function packFacts(facts: CallFacts): string {
  return JSON.stringify(otherFacts(facts));
}

/** Returns clean facts; those that are a dimension or a filter column are undefined. */
export function otherFacts(facts: CallFacts): object {
  // A copy of one shape is the cheapest way to omit fields: JSON omits undefined values.
  const packed: Record<string, unknown> = { ...facts };
  for (let at = 0; at < COLUMNS.length; at += 1) {
    const name = COLUMNS[at];
    // A new field, even an undefined one, would change the shape.
    if (name && packed[name] !== undefined) packed[name] = undefined;
  }
  return packed;
}

/** Record as stores keep it. */
export interface PackedCall extends Pick<CallRow, 'id' | 'requestId' | 'cost' | 'at' | 'countedAt' | 'outcome'> {
  readonly dimensions: Dimensions;
  readonly session: string | undefined;
  /** Output of {@link packFacts}. */
  readonly packed: string;
}

/** Restores the record of a call from its stored form. Throws if `packed` is not an output of {@link packFacts}. */
export function unpackCall(call: PackedCall): CallRow {
  const { id, requestId, cost, at, countedAt, outcome, dimensions, session, packed } = call;
  const [account = '-', userId = '-', key = '-', tags = '[]', operation = '-', provider = '-', model = '-'] =
    dimensions;
  const rest = JSON.parse(packed) as Omit<
    CallFacts,
    'requestId' | 'userId' | 'key' | 'tags' | 'operation' | 'provider' | 'model' | 'outcome'
  >;
  return {
    id,
    account,
    requestId,
    userId,
    key,
    tags: JSON.parse(tags) as readonly string[],
    ...(session !== undefined && { session }),
    operation,
    provider,
    model,
    outcome,
    ...rest,
    cost,
    at,
    countedAt,
  };
}
