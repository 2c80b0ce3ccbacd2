import type { Metric, Registry } from 'prom-client';

/** A number that only grows. */
export interface Count {
  add(amount: number): void;
}

/** How often a value fell into which bucket. */
export interface Distribution {
  observe(value: number): void;
}

type Labels = Readonly<Record<string, string>>;

/** All series of one metric: one for each combination of labels, made when it is asked for first. */
export type Family<S> = (labels: Labels) => S;

/** The buckets of what takes time, in seconds. */
export const SECONDS: readonly number[] = Object.freeze([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900,
]);

interface Described {
  readonly name: string;
  readonly help: string;
}

/**
 * A counter that prom-client tells, but does not count: its own spells out and checks all labels every time, and this
 * one when a series is made.
 */
export function createCounter(registry: Registry, described: Described): Family<Count> {
  const series = new Map<string, { readonly labels: Labels; value: number } & Count>();
  register(registry, described, 'counter', () => [...series.values()].map(({ labels, value }) => ({ labels, value })));
  return (labels) =>
    madeOnce(series, labels, () => ({
      labels,
      value: 0,
      add(amount) {
        assertCountable(amount);
        this.value += amount;
      },
    }));
}

/** The same for a histogram with the upper bounds `buckets`, in ascending order. */
export function createHistogram(
  registry: Registry,
  described: Described & { readonly buckets: readonly number[] },
): Family<Distribution> {
  const { name, buckets } = described;
  const series = new Map<string, Observed>();
  register(registry, described, 'histogram', () => [...series.values()].flatMap((one) => one.values(name)));
  return (labels) => madeOnce(series, labels, () => new Observed(labels, buckets));
}

class Observed implements Distribution {
  readonly #labels: Labels;
  readonly #buckets: readonly number[];
  /** By bucket; values above the last bound are in none. */
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(labels: Labels, buckets: readonly number[]) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = buckets.map(() => 0);
  }

  observe(value: number): void {
    assertCountable(value);
    this.#sum += value;
    this.#count += 1;
    let at = 0;
    for (const bound of this.#buckets) {
      if (value <= bound) break;
      at += 1;
    }
    const known = this.#counts[at];
    if (known !== undefined) this.#counts[at] = known + 1;
  }

  values(name: string): readonly Value[] {
    const labels = this.#labels;
    const bucket = (le: number | string, value: number): Value => ({
      labels: { le, ...labels },
      value,
      metricName: `${name}_bucket`,
    });
    let below = 0;
    return [
      ...this.#buckets.map((bound, at) => {
        below += this.#counts[at] ?? 0;
        return bucket(bound, below);
      }),
      bucket('+Inf', this.#count),
      { labels, value: this.#sum, metricName: `${name}_sum` },
      { labels, value: this.#count, metricName: `${name}_count` },
    ];
  }
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

/** Registers what prom-client needs of a metric to write it, here and over all workers; its types ask for its own classes. */
function register(
  registry: Registry,
  { name, help }: Described,
  type: 'counter' | 'histogram',
  read: () => readonly Value[],
): void {
  const get = () => Promise.resolve({ name, help, type, values: read(), aggregator: 'sum' });
  registry.registerMetric({ name, help, type, get } as unknown as Metric);
}

function madeOnce<S>(series: Map<string, S>, labels: Labels, make: () => S): S {
  const key = JSON.stringify(Object.values(labels));
  const known = series.get(key) ?? make();
  series.set(key, known);
  return known;
}

function assertCountable(value: number): void {
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) throw new RangeError(`${value} cannot be counted`);
}
