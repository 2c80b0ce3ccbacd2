import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PluginApi } from '../../../core/index.ts';
import { SECONDS } from './buckets.ts';
import { boundedLabel } from './labels.ts';

type Middleware = Parameters<PluginApi['use']>[0];

/** Counts HTTP requests, each after its last byte. */
export function countRequests(registry: Registry): Middleware {
  const registers = [registry];
  const inflight = new Gauge({ name: 'tollgate_inflight_requests', help: 'Requests being worked on.', registers });
  const requests = new Counter({
    name: 'tollgate_http_requests_total',
    help: 'HTTP requests.',
    labelNames: ['route', 'status'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'tollgate_http_request_duration_seconds',
    help: 'HTTP requests, to the last byte.',
    labelNames: ['route'],
    buckets: [...SECONDS],
    registers,
  });
  const routeLabel = boundedLabel();

  return (ctx, next) => {
    const { res } = ctx;
    const started = performance.now();
    inflight.inc();
    res.on('close', () => {
      inflight.dec();
      const route = routeLabel(String(ctx.state['route'] ?? 'none'), () => 'listed');
      requests.inc({ route, status: String(res.statusCode) });
      requestSeconds.observe({ route }, (performance.now() - started) / 1000);
    });
    return next();
  };
}
