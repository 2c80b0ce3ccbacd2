import type { Registry } from 'prom-client';
import Gauge from 'prom-client/lib/gauge.js';
import type { PluginApi } from '../../../core/index.ts';
import { boundedLabel } from './labels.ts';
import { type Count, createCounter, createHistogram, type Distribution, SECONDS } from './series.ts';

type Middleware = Parameters<PluginApi['use']>[0];

/** The series of one route. */
interface RouteSeries {
  readonly seconds: Distribution;
  readonly byStatus: Map<number, Count>;
}

/** Counts HTTP requests, each after its last byte. */
export function countRequests(registry: Registry): Middleware {
  let inflight = 0;
  new Gauge({
    name: 'tollgate_inflight_requests',
    help: 'Requests being worked on.',
    registers: [registry],
    collect() {
      this.set(inflight);
    },
  });
  const requests = createCounter(registry, { name: 'tollgate_http_requests_total', help: 'HTTP requests.' });
  const requestSeconds = createHistogram(registry, {
    name: 'tollgate_http_request_duration_seconds',
    help: 'HTTP requests, to the last byte.',
    buckets: SECONDS,
  });
  const routeLabel = boundedLabel();
  const known = new Map<string, RouteSeries>();

  const count = (route: string, status: number, seconds: number): void => {
    let series = known.get(route);
    if (!series) {
      series = { seconds: requestSeconds({ route }), byStatus: new Map() };
      known.set(route, series);
    }
    let answers = series.byStatus.get(status);
    if (!answers) {
      answers = requests({ route, status: String(status) });
      series.byStatus.set(status, answers);
    }
    answers.add(1);
    series.seconds.observe(seconds);
  };

  return (ctx, next) => {
    const { res } = ctx;
    const started = performance.now();
    inflight += 1;
    res.on('close', () => {
      inflight -= 1;
      const route = routeLabel(String(ctx.state['route'] ?? 'none'));
      count(route, res.statusCode, (performance.now() - started) / 1000);
    });
    return next();
  };
}
