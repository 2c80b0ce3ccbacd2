import { Session } from 'node:inspector';
import { getHeapStatistics } from 'node:v8';
import { definePlugin, GatewayError, parseDuration, type RouteState } from '../../contract/index.ts';

/** Measurement interval of the event loop and the heap. */
const TICK_MS = 100;

/** Weight of the newest measurement: a single garbage collection pause refuses no request, a busy process does. */
const WEIGHT = 0.3;

/** A heap that seems full is collected before a request is refused, and again at this interval while it stays full. */
const COLLECT_MS = 5_000;

const REASONS = Object.freeze({
  lag: 'The gateway is overloaded.',
  memory: 'The gateway is short of memory.',
});

/**
 * Refuses new requests with 503 `overloaded` while the gateway's own work delays the event loop or the heap is nearly
 * full; running requests continue.
 */
export default definePlugin({
  name: 'overload',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      maxLag: {
        type: 'string',
        format: 'duration',
        default: '500ms',
        description: 'Maximum event loop delay caused by the gateway, as a moving average over a third of a second.',
      },
      maxHeap: {
        type: 'number',
        minimum: 0.1,
        maximum: 1,
        default: 0.85,
        description: 'Maximum used share of the heap, whose size is Node’s `--max-old-space-size`.',
      },
    },
  },
  setup(api, config) {
    const maxLagMs = parseDuration(config.maxLag);
    let isFull = false;
    let collectedAt = Number.NEGATIVE_INFINITY;
    let lagMs = 0;
    let last = performance.now();
    let lastCpu = process.cpuUsage();
    let inFlight = 0;
    let reason: keyof typeof REASONS | undefined;
    const measure = (): void => {
      const now = performance.now();
      const cpu = process.cpuUsage();
      const ownMs = (cpu.user - lastCpu.user + cpu.system - lastCpu.system) / 1000;
      // Without own work the loop is late because other processes occupy the cores: refusing calls would not help.
      const busyMs = Math.min(now - last, ownMs);
      lagMs += (Math.max(busyMs - TICK_MS, 0) - lagMs) * WEIGHT;
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
      const fullBytes = limit * config.maxHeap;
      // V8 keeps garbage until it needs the space, and a gateway that refuses every request needs none. The heap is
      // therefore collected before it counts as full, and regularly while it stays full.
      if (used <= fullBytes) isFull = false;
      else if (now - collectedAt > COLLECT_MS) {
        collectedAt = now;
        collectGarbage(() => {
          isFull = getHeapStatistics().used_heap_size > fullBytes;
        });
      }
      const next = isFull ? 'memory' : lagMs > maxLagMs ? 'lag' : undefined;
      const fields = { reason: next ?? reason, lag_ms: Math.round(lagMs), heap_used: used };
      if (next !== undefined && reason === undefined) api.log.warn(fields, 'shedding load');
      else if (next === undefined && reason !== undefined) api.log.info(fields, 'taking requests again');
      reason = next;
      last = performance.now();
      lastCpu = cpu;
      if (inFlight === 0 && reason === undefined && lagMs < 1) endMeasuring();
    };
    let timer: NodeJS.Timeout | undefined;
    // Measures from a request until the gateway rests: a start is always busy, and no request waits yet.
    const beginMeasuring = (): void => {
      last = performance.now();
      lastCpu = process.cpuUsage();
      timer = setInterval(measure, TICK_MS).unref();
    };
    const endMeasuring = (): void => {
      clearInterval(timer);
      timer = undefined;
    };
    api.onClose(endMeasuring);

    api.use((ctx, next) => {
      // Health checks must get a response during an overload.
      if (ctx.state['isProbe'] === true) return next();
      if (timer === undefined) beginMeasuring();
      // The only call in flight has nothing to wait for.
      if (reason === undefined || (reason === 'lag' && inFlight === 0)) {
        inFlight += 1;
        (ctx.state as Pick<RouteState, 'onClosed'>).onClosed(() => {
          inFlight -= 1;
        });
        return next();
      }
      throw new GatewayError('overloaded', `${REASONS[reason]} Try again in a moment.`, { retryAfterMs: 1000 });
    });
  },
});

/** Collects the heap through the inspector: https://chromedevtools.github.io/devtools-protocol/v8/HeapProfiler/ */
function collectGarbage(onDone: () => void): void {
  const session = new Session();
  session.connect();
  session.post('HeapProfiler.collectGarbage', () => {
    onDone();
    // Deferred: a session closed within its own callback never returns.
    setImmediate(() => session.disconnect());
  });
}
