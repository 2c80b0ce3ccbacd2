import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import { type Call, definePlugin, type Outcome } from '../../core/index.ts';
import { addProcessMetrics } from './parts/process-metrics.ts';

/** Series a label may have before new values are counted as `_other`: a caller must not be able to fill the memory. */
const MAX_VALUES = 200;

/** Prometheus metrics under `/metrics`: base units, bounded labels, no user ids. */
export default definePlugin({
  name: 'metrics',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      path: { type: 'string', pattern: '^/[\\w/-]{1,64}$', default: '/metrics', description: 'Where the metrics are.' },
      auth: { type: 'boolean', default: false, description: 'Whether reading them takes an API key.' },
    },
  },
  setup(api, config) {
    const registry = new Registry();
    const ofProcess = addProcessMetrics(registry);
    api.onClose(() => ofProcess.close());
    const metrics = createMetrics(registry);
    const model = boundedLabel();
    const route = boundedLabel();
    new Gauge({
      name: 'tollgate_build_info',
      help: 'The version that runs.',
      labelNames: ['version'],
      registers: [registry],
    }).set({ version: api.settings.version }, 1);

    api.use(async (ctx, next) => {
      metrics.inflight.inc();
      const started = performance.now();
      ctx.res.once('close', () => {
        metrics.inflight.dec();
        const labels = { route: route(String(ctx.state['route'] ?? 'none')), status: String(ctx.res.statusCode) };
        metrics.requests.inc(labels);
        metrics.requestSeconds.observe({ route: labels.route }, (performance.now() - started) / 1000);
      });
      await next();
    });
    // A scrape reaches one worker of several; it answers for all of them.
    const gather = api.gather('metrics', async () => {
      await ofProcess.ready();
      return registry.getMetricsAsJSON();
    });
    api.hook('finish', (call, outcome) => count(metrics, model, call, outcome));
    api.route({
      method: 'GET',
      path: config.path,
      summary: 'Prometheus metrics',
      auth: config.auth ? ['key'] : 'none',
      responses: { 200: { description: 'Metrics in the text format.', contentType: 'text/plain' } },
      async handler(ctx) {
        const ofWorkers = await gather();
        const whole =
          ofWorkers.length > 1 ? (await import('prom-client')).AggregatorRegistry.aggregate([...ofWorkers]) : registry;
        ctx.body = await whole.metrics();
        ctx.type = registry.contentType;
      },
    });
  },
});

type Metrics = ReturnType<typeof createMetrics>;

function createMetrics(registry: Registry) {
  const registers = [registry];
  const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
  return {
    inflight: new Gauge({ name: 'tollgate_inflight_requests', help: 'Requests being worked on.', registers }),
    requests: new Counter({
      name: 'tollgate_http_requests_total',
      help: 'HTTP requests.',
      labelNames: ['route', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'tollgate_http_request_duration_seconds',
      help: 'HTTP requests, to the last byte.',
      labelNames: ['route'],
      buckets: seconds,
      registers,
    }),
    calls: new Counter({
      name: 'tollgate_calls_total',
      help: 'Model calls.',
      labelNames: ['operation', 'provider', 'model', 'status', 'error', 'stream'],
      registers,
    }),
    callSeconds: new Histogram({
      name: 'tollgate_call_duration_seconds',
      help: 'Model calls, to the last byte.',
      labelNames: ['operation', 'provider', 'stream'],
      buckets: seconds,
      registers,
    }),
    firstByteSeconds: new Histogram({
      name: 'tollgate_time_to_first_byte_seconds',
      help: 'From the request to the provider’s first byte.',
      labelNames: ['operation', 'provider'],
      buckets: seconds,
      registers,
    }),
    overheadSeconds: new Histogram({
      name: 'tollgate_overhead_seconds',
      help: 'What the gateway itself took of a call.',
      labelNames: ['operation'],
      buckets: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1],
      registers,
    }),
    attempts: new Counter({
      name: 'tollgate_upstream_attempts_total',
      help: 'Requests to providers.',
      labelNames: ['provider'],
      registers,
    }),
    tokens: new Counter({
      name: 'tollgate_tokens_total',
      help: 'Tokens, by type.',
      labelNames: ['provider', 'model', 'type'],
      registers,
    }),
    cost: new Counter({
      name: 'tollgate_cost_usd_total',
      help: 'Cost in US dollars by the price table.',
      labelNames: ['provider', 'model'],
      registers,
    }),
    unpriced: new Counter({
      name: 'tollgate_unpriced_calls_total',
      help: 'Calls whose model has no known price.',
      labelNames: ['provider', 'model'],
      registers,
    }),
  };
}

function count(metrics: Metrics, model: (value: string) => string, call: Call, outcome: Outcome): void {
  const { operation } = call;
  const stream = String(call.stream);
  const provider = outcome.target?.provider ?? 'none';
  const name = model(outcome.target?.model ?? 'none');
  metrics.calls.inc({
    operation,
    provider,
    model: name,
    status: outcome.status,
    error: outcome.error?.code ?? 'none',
    stream,
  });
  metrics.callSeconds.observe({ operation, provider, stream }, outcome.durationMs / 1000);
  metrics.overheadSeconds.observe({ operation }, Math.max(outcome.durationMs - outcome.upstreamMs, 0) / 1000);
  if (outcome.attempts > 0) metrics.attempts.inc({ provider }, outcome.attempts);
  if (outcome.firstByteMs !== undefined)
    metrics.firstByteSeconds.observe({ operation, provider }, outcome.firstByteMs / 1000);
  const { usage } = outcome;
  if (usage) {
    metrics.tokens.inc({ provider, model: name, type: 'input' }, usage.prompt_tokens);
    metrics.tokens.inc({ provider, model: name, type: 'output' }, usage.completion_tokens);
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    if (cached > 0) metrics.tokens.inc({ provider, model: name, type: 'cached_input' }, cached);
  }
  if (outcome.cost !== undefined) metrics.cost.inc({ provider, model: name }, outcome.cost / 1_000_000);
  else if (outcome.status === 'ok') metrics.unpriced.inc({ provider, model: name });
}

/** Keeps the first {@link MAX_VALUES} values of a label and calls the rest `_other`. */
function boundedLabel(): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= MAX_VALUES) return '_other';
    known.add(value);
    return value;
  };
}
