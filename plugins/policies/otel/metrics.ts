import type { Call, Outcome } from '../../../contract/index.ts';
import { summaryOf } from '../kit/index.ts';
import { type AttributeValue, attributesOf, type Message } from './messages.ts';
import { ATTRIBUTES as A, METRIC_NAMES, OPERATIONS, PROVIDERS } from './names.ts';

/** Buckets of the conventions. Reasoning models take longer than the last one, so there is one more. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 900];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** Limits memory: callers may invent model names, so further ones count as `other`. */
const MAX_SERIES = 1000;

const CUMULATIVE = 2;

interface Point {
  readonly attributes: ReturnType<typeof attributesOf>;
  readonly buckets: number[];
  count: number;
  sum: number;
}

interface Histogram {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
  readonly bounds: readonly number[];
  readonly points: Map<string, Point>;
}

/** Histograms that the conventions define for model clients, since the start of the process. */
export interface CallMetrics {
  add(call: Call, outcome: Outcome): void;
  /** Returns OTLP metrics. */
  read(now: number): readonly Message[];
}

export function createCallMetrics(startedAt: number): CallMetrics {
  const histogram = (name: string, description: string, unit: string, bounds: readonly number[]): Histogram => ({
    name,
    description,
    unit,
    bounds,
    points: new Map(),
  });
  const duration = histogram(METRIC_NAMES.duration, 'Duration of a call, to its last byte.', 's', SECONDS);
  const firstChunk = histogram(METRIC_NAMES.firstChunk, 'Time to the first content of a stream.', 's', SECONDS);
  const tokens = histogram(METRIC_NAMES.tokens, 'Number of tokens of a call.', '{token}', TOKENS);
  return {
    add(call, outcome) {
      const { provider, model } = summaryOf(call, outcome);
      const labels = {
        [A.operation]: OPERATIONS[call.operation] ?? call.operation,
        [A.provider]: PROVIDERS[provider] ?? provider,
        [A.requestModel]: model,
      };
      const { usage, firstTokenMs, durationMs, error } = outcome;
      observe(duration, { ...labels, [A.errorType]: error?.code }, durationMs / 1000);
      if (firstTokenMs !== undefined) observe(firstChunk, labels, firstTokenMs / 1000);
      if (!usage) return;
      observe(tokens, { ...labels, [A.tokenType]: 'input' }, usage.prompt_tokens);
      observe(tokens, { ...labels, [A.tokenType]: 'output' }, usage.completion_tokens);
    },
    read: (now) => [duration, firstChunk, tokens].flatMap((each) => readHistogram(each, startedAt, now)),
  };
}

function observe(
  { points, bounds }: Histogram,
  labels: Readonly<Record<string, AttributeValue | undefined>>,
  value: number,
): void {
  const isFull = points.size >= MAX_SERIES;
  const known = points.get(JSON.stringify(labels));
  const counted = known || !isFull ? labels : { ...labels, [A.requestModel]: 'other' };
  const name = JSON.stringify(counted);
  let point = points.get(name);
  if (!point) {
    point = { attributes: attributesOf(counted), buckets: new Array(bounds.length + 1).fill(0), count: 0, sum: 0 };
    points.set(name, point);
  }
  const at = bounds.findIndex((bound) => value <= bound);
  const bucket = at < 0 ? bounds.length : at;
  point.buckets[bucket] = (point.buckets[bucket] ?? 0) + 1;
  point.count += 1;
  point.sum += value;
}

function readHistogram(
  { name, description, unit, bounds, points }: Histogram,
  startedAt: number,
  now: number,
): readonly Message[] {
  if (points.size === 0) return [];
  const dataPoints = [...points.values()].map(({ attributes, buckets, count, sum }) => ({
    startTimeUnixNano: startedAt,
    timeUnixNano: now,
    count,
    sum,
    bucketCounts: [...buckets],
    explicitBounds: bounds,
    attributes,
  }));
  return [{ name, description, unit, histogram: { dataPoints, aggregationTemporality: CUMULATIVE } }];
}
