import type { Histogram, Registry } from 'prom-client';

interface BucketsOptions {
  readonly name: string;
  readonly help: string;
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  readonly registry: Registry;
}

type Labels = Readonly<Record<string, string>>;

/** Observations with the same labels. */
export class Observations {
  readonly labels: Labels;
  readonly #bounds: readonly number[];
  /** Number of observations by the first bound that they are not above. */
  readonly counts: number[];
  count = 0;
  sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.count += 1;
    this.sum += value;
    for (let at = 0; at < this.#bounds.length; at += 1) {
      if (value > (this.#bounds[at] ?? 0)) continue;
      this.counts[at] = (this.counts[at] ?? 0) + 1;
      return;
    }
  }
}

/** Value of a metric in prom-client's form. */
interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * Histogram in a registry of prom-client. Observers keep the {@link Observations} of their labels; prom-client's own
 * histogram builds a text of all labels at each observation.
 */
export class Buckets {
  readonly name: string;
  readonly #options: BucketsOptions;
  readonly #all = new Map<string, Observations>();

  constructor(options: BucketsOptions) {
    this.name = options.name;
    this.#options = options;
    options.registry.registerMetric(this as unknown as Histogram);
  }

  /** Returns the observations of these labels: the same object for the same labels in the same order. */
  of(labels: Labels): Observations {
    const key = Object.values(labels).join('\0');
    let found = this.#all.get(key);
    if (!found) {
      found = new Observations(labels, this.#options.bounds);
      this.#all.set(key, found);
    }
    return found;
  }

  /** Called by the registry. */
  async get() {
    const { name, help, bounds } = this.#options;
    const values: Value[] = [];
    for (const { labels, counts, count, sum } of this.#all.values()) {
      let below = 0;
      for (const [at, le] of bounds.entries()) {
        below += counts[at] ?? 0;
        values.push({ metricName: `${name}_bucket`, labels: { le, ...labels }, value: below });
      }
      values.push({ metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count });
      values.push({ metricName: `${name}_sum`, labels, value: sum });
      values.push({ metricName: `${name}_count`, labels, value: count });
    }
    return { name, help, type: 'histogram', values, aggregator: 'sum' };
  }
}
