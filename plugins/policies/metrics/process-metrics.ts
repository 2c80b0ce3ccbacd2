import { collectDefaultMetrics, Registry } from 'prom-client';

let registry: Registry | undefined;

/**
 * The metrics of the process itself: CPU, memory, lag of the event loop, garbage collection. Measured once, however many
 * gateways the process runs: prom-client never takes its observers away again.
 */
export function processMetrics(): Registry {
  if (registry) return registry;
  registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'tollgate_' });
  return registry;
}
