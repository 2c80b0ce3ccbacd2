import { parseJson, type ReportDimension, type ReportRow, readArray } from '../../../contract/index.ts';
import { END_USER_TAG, tagName } from '../kit/index.ts';
import { type By, dimensionOf, isTimeUnit } from './dimensions.ts';

/** Sums of calls; money in nano-dollars. */
export interface Sums {
  readonly requests: number;
  readonly errors: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly reasoning_tokens: number;
  readonly characters: number;
  readonly cost: bigint;
  readonly saved: bigint;
  /** Requests with estimated units. */
  readonly estimated: number;
  /** Requests without a known price, for which nothing was charged. */
  readonly unpriced: number;
}

/** Row with a name for each word of `by`. */
export interface UsageRow {
  readonly names: readonly string[];
  /** Number of its time interval. */
  readonly interval: number;
  readonly sums: Sums;
}

/** Complete report: `totals` counts each call once, even if it is in several rows. */
export interface UsageReport {
  readonly rows: readonly UsageRow[];
  readonly totals: Sums;
  /** Present in a report by tag. */
  readonly shared?: SharedSums;
}

/** Calls in more than one row because they have several tags. */
export interface SharedSums {
  readonly calls: Sums;
  /** Excess of the rows' sum over the totals. */
  readonly repeated: Sums;
}

/** Sums of no calls. */
export const NOTHING: Sums = Object.freeze({
  requests: 0,
  errors: 0,
  prompt_tokens: 0,
  cached_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  characters: 0,
  cost: 0n,
  saved: 0n,
  estimated: 0,
  unpriced: 0,
});

/** Placeholder for a missing key, tag, session or account. */
export const NONE = '-';

/** Store dimensions that a report needs. */
export function dimensionsOf(by: readonly By[]): readonly ReportDimension[] {
  return [...new Set(by.flatMap((word) => dimensionOf(word) ?? []))];
}

/** Creates the report from the store's sums; `intervals` are the names of the time intervals. */
export function makeReport(found: readonly ReportRow[], by: readonly By[], intervals: readonly string[]): UsageReport {
  const rows = new Map<string, UsageRow>();
  let totals = NOTHING;
  let calls = NOTHING;
  let repeated = NOTHING;
  for (const row of found) {
    const sums = sumsOf(row);
    totals = add(totals, sums);
    const tags = by.includes('tag') ? tagsOf(row) : [NONE];
    if (tags.length > 1) {
      calls = add(calls, sums);
      repeated = add(repeated, sums, tags.length - 1);
    }
    for (const tag of tags) {
      const names = by.map((word) => nameOf(word, row, tag, intervals));
      const key = JSON.stringify(names);
      const known = rows.get(key);
      rows.set(key, { names, interval: row.interval, sums: known ? add(known.sums, sums) : sums });
    }
  }
  const whole = { rows: [...rows.values()], totals };
  return by.includes('tag') ? { ...whole, shared: { calls, repeated } } : whole;
}

function nameOf(word: By, row: ReportRow, tag: string, intervals: readonly string[]): string {
  if (word === 'tag') return tag;
  if (word === 'end_user') return endUserOf(row);
  if (isTimeUnit(word)) return intervals[row.interval] ?? NONE;
  const dimension = dimensionOf(word);
  return (dimension && row[dimension]) || NONE;
}

/** Tags of a group without duplicates: a call with several tags is in the row of each. */
function tagsOf(row: ReportRow): readonly string[] {
  const names = allTagsOf(row).filter((tag) => tagName(tag) !== END_USER_TAG);
  return names.length === 0 ? [NONE] : [...new Set(names)];
}

function allTagsOf({ tags = '[]' }: ReportRow): readonly string[] {
  return readArray(parseJson(tags)).filter((tag) => typeof tag === 'string');
}

function endUserOf(row: ReportRow): string {
  const tag = allTagsOf(row).find((each) => tagName(each) === END_USER_TAG);
  return tag?.slice(END_USER_TAG.length + 1) || NONE;
}

function sumsOf({ requests, errors, units, cost, saved, estimated, unpriced }: ReportRow): Sums {
  return { requests, errors, ...units, cost, saved, estimated, unpriced };
}

function add(a: Sums, b: Sums, times = 1): Sums {
  return {
    requests: a.requests + b.requests * times,
    errors: a.errors + b.errors * times,
    prompt_tokens: a.prompt_tokens + b.prompt_tokens * times,
    cached_tokens: a.cached_tokens + b.cached_tokens * times,
    completion_tokens: a.completion_tokens + b.completion_tokens * times,
    reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens * times,
    characters: a.characters + b.characters * times,
    cost: a.cost + b.cost * BigInt(times),
    saved: a.saved + b.saved * BigInt(times),
    estimated: a.estimated + b.estimated * times,
    unpriced: a.unpriced + b.unpriced * times,
  };
}
