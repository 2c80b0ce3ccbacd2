import type { Registry } from 'prom-client';

/** Well after the start. */
const DELAY_MS = 1000;

/** The metrics of the process itself: CPU, memory, lag of the event loop, garbage collection. */
export interface ProcessMetrics {
  /** Resolves when they are in the registry. */
  ready(): Promise<void>;
  close(): void;
}

/**
 * Adds the metrics of the process to a registry: a moment after the start, or with the first scrape when that is sooner.
 * For them alone `prom-client` loads most of its files and the API of OpenTelemetry, 40 ms of a start.
 */
export function addProcessMetrics(registry: Registry): ProcessMetrics {
  let loading: Promise<void> | undefined;
  const load = async (): Promise<void> => {
    const { collectDefaultMetrics } = await import('prom-client');
    collectDefaultMetrics({ register: registry, prefix: 'tollgate_' });
  };
  const ready = (): Promise<void> => (loading ??= load());
  // What cannot be loaded is told to whoever scrapes.
  const timer = setTimeout(() => void ready().catch(() => {}), DELAY_MS).unref();
  return { ready, close: () => clearTimeout(timer) };
}
