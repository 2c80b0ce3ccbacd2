import type { CallRow, Ledger } from '../../../contract/index.ts';
import { listCalls } from './calls-query.ts';
import { type By, dimensionOf, isTimeUnit } from './dimensions.ts';
import { NONE } from './report.ts';

/** Maximum calls and time of a measurement: the latest calls of the range, so that millions of calls take no longer. */
export const MOST_CALLS = 5_000;
const MOST_MS = 250;

/** Durations of successful calls in milliseconds, by nearest rank. */
export interface Latency {
  readonly calls: number;
  readonly duration_p50_ms: number;
  readonly duration_p95_ms: number;
  /** Only calls whose provider's first byte was recorded. */
  readonly first_byte_p50_ms?: number;
  readonly first_byte_p95_ms?: number;
}

/** Latency of each row of a report, by its names as JSON, and overall. */
export interface Latencies {
  readonly rows: ReadonlyMap<string, Latency>;
  readonly totals: Latency | undefined;
  /** Number of measured calls, and whether these are all stored records of the range. */
  readonly calls: number;
  readonly isComplete: boolean;
}

interface Wanted {
  readonly filter: Parameters<typeof listCalls>[1]['filter'];
  readonly by: readonly By[];
  readonly edges: readonly number[];
  readonly names: readonly string[];
}

interface Times {
  readonly durations: number[];
  readonly firstBytes: number[];
}

/**
 * Measures the latest calls of a range, grouped like its report: percentiles need records, since sums do not suffice.
 */
export async function measureLatency(
  ledger: Pick<Ledger, 'calls'>,
  { filter, by, edges, names }: Wanted,
): Promise<Latencies> {
  const [from = 0] = edges;
  const to = edges.at(-1) ?? from;
  const page = await listCalls(ledger, { filter: { ...filter, outcome: 'ok' }, from, to, limit: MOST_CALLS }, MOST_MS);
  const groups = new Map<string, Times>();
  const all: Times = { durations: [], firstBytes: [] };
  for (const call of page.calls) {
    if (call.countedAt < from || call.countedAt >= to) continue;
    note(all, call);
    for (const tag of by.includes('tag') && call.tags.length > 0 ? new Set(call.tags) : [NONE]) {
      const key = JSON.stringify(by.map((word) => nameOf(word, call, tag, edges, names)));
      const times = groups.get(key) ?? { durations: [], firstBytes: [] };
      groups.set(key, times);
      note(times, call);
    }
  }
  const rows = new Map([...groups].map(([key, times]) => [key, latencyOf(times)]));
  const totals = all.durations.length > 0 ? latencyOf(all) : undefined;
  return { rows, totals, calls: page.calls.length, isComplete: page.next === undefined };
}

function note({ durations, firstBytes }: Times, { durationMs, firstByteMs }: CallRow): void {
  durations.push(durationMs);
  if (firstByteMs !== undefined) firstBytes.push(firstByteMs);
}

function nameOf(word: By, call: CallRow, tag: string, edges: readonly number[], names: readonly string[]): string {
  if (word === 'tag') return tag;
  if (isTimeUnit(word)) return names[edges.findLastIndex((edge) => edge <= call.countedAt)] ?? NONE;
  const { userId: user, ...own } = call;
  const dimension = dimensionOf(word);
  const value = dimension === 'user' ? user : dimension === 'tags' || !dimension ? undefined : own[dimension];
  return value || NONE;
}

function latencyOf({ durations, firstBytes }: Times): Latency {
  const [whole, first] = [ascending(durations), ascending(firstBytes)];
  return {
    calls: whole.length,
    duration_p50_ms: percentile(whole, 0.5),
    duration_p95_ms: percentile(whole, 0.95),
    ...(first.length > 0 && {
      first_byte_p50_ms: percentile(first, 0.5),
      first_byte_p95_ms: percentile(first, 0.95),
    }),
  };
}

function ascending(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b);
}

/** Smallest value that is not exceeded by this share of the ascending values. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
}
