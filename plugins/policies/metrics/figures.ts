import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Figure, StoreWatcher } from '../../../core/index.ts';

/** Shows the numbers of other plugins from now on; another generation brings others. */
export function showFigures(registry: Registry): (figures: readonly Figure[]) => void {
  let shown: ReadonlyMap<string, Figure> = new Map();
  return (figures) => {
    shown = new Map(figures.map((figure) => [figure.name, figure]));
    for (const { name, help } of figures) {
      if (registry.getSingleMetric(`tollgate_${name}`)) continue;
      new Gauge({
        ...{ name: `tollgate_${name}`, help, registers: [registry], aggregator: 'sum' as const },
        collect() {
          this.reset();
          const value = shown.get(name)?.read();
          if (value !== undefined) this.set(value);
        },
      });
    }
  };
}

/** The buckets of what a store takes, in seconds: from memory to one that does not answer. */
const STORE_SECONDS: readonly number[] = Object.freeze([
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]);

/** Measures the operations of the store. */
export function measureStore(registry: Registry): StoreWatcher {
  const registers = [registry];
  const seconds = new Histogram({
    name: 'tollgate_store_duration_seconds',
    help: 'Operations of the store.',
    labelNames: ['operation'],
    buckets: [...STORE_SECONDS],
    registers,
  });
  const failures = new Counter({
    name: 'tollgate_store_failures_total',
    help: 'Operations of the store that it did not do.',
    labelNames: ['operation'],
    registers,
  });
  // Looked up once each: there are as many as the store has methods.
  const known = new Map<string, ReturnType<typeof seconds.labels>>();
  return (operation, ms, isOk) => {
    let ofOperation = known.get(operation);
    if (!ofOperation) {
      ofOperation = seconds.labels({ operation });
      known.set(operation, ofOperation);
    }
    ofOperation.observe(ms / 1000);
    if (!isOk) failures.inc({ operation });
  };
}
