import { TLSSocket } from 'node:tls';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import {
  type AttemptReport,
  type Call,
  definePlugin,
  type GatewayView,
  type GaugeDefinition,
  type HookReport,
  type Outcome,
  type RoutingState,
  type StoreWatcher,
  type Target,
  type TargetReport,
  type TargetState,
} from '../../../contract/index.ts';
import { endingTargets } from '../kit/ending-targets.ts';
import { Buckets, type Observations } from './buckets.ts';
import { boundedLabel, countCalls, countRequests } from './series.ts';

/** Counts attempts, and reports the state of targets. */
interface TargetMetrics {
  readonly countAttempt: (call: Call, attempt: AttemptReport) => void;
  /** Replaces the source of target states; each generation brings its own. */
  watch(watched: Watched): void;
}

/** Source of the target metrics. */
interface Watched {
  read(): RoutingState;
  isListed(target: Target): boolean;
  /** Configured aliases, each with its targets as `provider/model`. */
  readonly aliases: readonly (readonly [alias: string, targets: readonly string[]])[];
  /**
   * Models that the configuration names or that were called, with their shutdown times in Unix milliseconds. Only
   * shutdowns in the past or within 30 days.
   */
  endings(): readonly (readonly [target: Target, end: number])[];
}

const NOTHING: Watched = Object.freeze({
  read: () => ({ targets: [], retries: { live: 0, running: 0, allowed: 0, refused: 0 }, drained: [] }),
  isListed: () => false,
  aliases: [],
  endings: () => [],
});

/** Ordered by severity, so that the worst of several workers counts. */
const STATE: Readonly<Record<TargetState, number>> = Object.freeze({ closed: 0, 'half-open': 1, open: 2, drained: 3 });

const TARGET = ['provider', 'model'] as const;

/** Creates the metrics of targets. A model name becomes a label if a list has it or it has responded, as for calls. */
function countTargets(registry: Registry): TargetMetrics {
  const registers = [registry];
  const modelLabel = boundedLabel();
  let watched = NOTHING;
  const labelsOf = (target: Target, hasWorked: boolean) => ({
    provider: target.provider,
    model: modelLabel(target.model, () => (watched.isListed(target) ? 'listed' : hasWorked ? 'worked' : 'unknown')),
  });
  const nameOf = (target: Target): string => Object.values(labelsOf(target, false)).join('/');

  const failures = new Counter({
    name: 'tollgate_target_failures_total',
    help: 'Failed attempts by class of failure.',
    labelNames: [...TARGET, 'class'],
    registers,
  });
  const fallbacks = new Counter({
    name: 'tollgate_fallbacks_total',
    help: 'Fallbacks to another target, by the failed and the next target.',
    labelNames: ['from', 'to'],
    registers,
  });
  const retries = new Counter({
    name: 'tollgate_retries_total',
    help: 'Retries at the same target.',
    labelNames: TARGET,
    registers,
  });
  const hedges = new Counter({
    name: 'tollgate_hedges_total',
    help: 'Hedged requests to a second target while the first one was slow, by result.',
    labelNames: [...TARGET, 'result'],
    registers,
  });
  showState(registers, () => watched.read(), labelsOf);
  showAliases(registers, () => watched);
  showEndings(registers, () => watched.endings(), labelsOf);

  return {
    countAttempt(_call, { target, failure, next, nextTarget, isSecond }) {
      const hasResponded = next === 'respond';
      if (isSecond) {
        const result = hasResponded ? 'won' : failure ? 'failed' : 'left';
        hedges.inc({ ...labelsOf(target, hasResponded), result });
      }
      if (!failure) {
        labelsOf(target, hasResponded);
        return;
      }
      failures.inc({ ...labelsOf(target, false), class: failure.class ?? 'none' });
      if (next === 'retry') retries.inc(labelsOf(target, false));
      if (next === 'next target' && nextTarget) fallbacks.inc({ from: nameOf(target), to: nameOf(nextTarget) });
    },
    watch(next) {
      watched = next;
    },
  };
}

/** Reports shutdown times of configured and called models. */
function showEndings(
  registers: Registry[],
  endings: Watched['endings'],
  labelsOf: (target: Target, hasWorked: boolean) => Record<'provider' | 'model', string>,
): void {
  new Gauge({
    name: 'tollgate_model_shutdown_timestamp_seconds',
    help: 'Shutdown time of a model by its vendor, from 30 days before; for configured and called models.',
    labelNames: TARGET,
    registers,
    aggregator: 'max' as const,
    collect() {
      this.reset();
      for (const [target, end] of endings()) this.set(labelsOf(target, false), end / 1000);
    },
  });
}

/** Reports available targets per alias, as far as this process knows. Untried targets count as available. */
function showAliases(registers: Registry[], watched: () => Watched): void {
  new Gauge({
    name: 'tollgate_alias_targets_available',
    help: 'Healthy targets of an alias; minimum over workers.',
    labelNames: ['alias'],
    registers,
    aggregator: 'min' as const,
    collect() {
      this.reset();
      const { aliases, read } = watched();
      const { targets: known, drained } = read();
      const open = new Set(
        known.flatMap(({ state, provider, model, key }) =>
          state === 'open' && key === undefined ? [`${provider}/${model}`] : [],
        ),
      );
      const isLeft = (name: string): boolean =>
        open.has(name) || drained.some((each) => each === name || name.startsWith(`${each}/`));
      for (const [alias, targets] of aliases) this.set({ alias }, targets.filter((each) => !isLeft(each)).length);
    },
  });
}

/** Reports values that are read at the scrape. */
function showState(
  registers: Registry[],
  read: () => RoutingState,
  labelsOf: (target: Target, hasWorked: boolean) => { readonly provider: string; readonly model: string },
): void {
  const gauge = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    show: (gauge: Gauge<L>) => void,
    aggregator: 'max' | 'average' | 'sum' = 'max',
  ) =>
    new Gauge<L>({
      name,
      help,
      labelNames,
      registers,
      aggregator,
      collect() {
        this.reset();
        show(this);
      },
    });
  const targets = (): readonly TargetReport[] => read().targets.filter(({ key }) => key === undefined);
  gauge('tollgate_target_state', '0 closed, 1 half open, 2 open, 3 drained by an operator.', TARGET, (shown) => {
    for (const { state, attempts, ...target } of targets())
      shown.set(labelsOf(target, attempts > 0 && state === 'closed'), STATE[state]);
  });
  gauge(
    'tollgate_provider_key_state',
    'Worst circuit state per provider key: 0 closed, 1 half open, 2 open.',
    ['provider', 'key'],
    (shown) => {
      for (const [labels, state] of worstOfKeys(read().targets)) shown.set(labels, state);
    },
  );
  gauge(
    'tollgate_target_error_ratio',
    'Share of recent attempts that failed.',
    TARGET,
    (shown) => {
      for (const { errorRate, ...target } of targets()) shown.set(labelsOf(target, false), errorRate);
    },
    'average',
  );
  gauge(
    'tollgate_target_latency_seconds',
    'Recent latency of a target: to a whole response, or to the first token of a stream.',
    [...TARGET, 'stream'],
    (shown) => {
      for (const { wholeMs, firstTokenMs, ...target } of targets()) {
        if (wholeMs !== undefined) shown.set({ ...labelsOf(target, true), stream: 'false' }, wholeMs / 1000);
        if (firstTokenMs !== undefined) shown.set({ ...labelsOf(target, true), stream: 'true' }, firstTokenMs / 1000);
      }
    },
    'average',
  );
  for (const [name, help, field] of RETRIES) gauge(name, help, [], (shown) => shown.set(read().retries[field]), 'sum');
}

const RETRIES = [
  ['tollgate_retries_running', 'Running retries.', 'running'],
  ['tollgate_retries_allowed', 'Maximum number of running retries.', 'allowed'],
  ['tollgate_retries_refused', 'Retries skipped since the start because too many were running.', 'refused'],
] as const;

type KeyLabels = { readonly provider: string; readonly key: string };

function worstOfKeys(targets: readonly TargetReport[]): Iterable<readonly [labels: KeyLabels, state: number]> {
  const worst = new Map<string, readonly [KeyLabels, number]>();
  for (const { provider, key, state } of targets)
    if (key !== undefined && STATE[state] >= (worst.get(`${provider} ${key}`)?.[1] ?? 0))
      worst.set(`${provider} ${key}`, [{ provider, key }, STATE[state]]);
  return worst.values();
}

/** Reports the numbers of other plugins; each generation brings its own. */
function showGauges(registry: Registry): (gauges: readonly GaugeDefinition[]) => void {
  let shown: ReadonlyMap<string, GaugeDefinition> = new Map();
  return (gauges) => {
    shown = new Map(gauges.map((metric) => [metric.name, metric]));
    for (const { name, help } of gauges) {
      if (registry.getSingleMetric(`tollgate_${name}`)) continue;
      new Gauge({
        name: `tollgate_${name}`,
        help,
        registers: [registry],
        aggregator: 'sum' as const,
        collect() {
          this.reset();
          const value = shown.get(name)?.read();
          if (value !== undefined) this.set(value);
        },
      });
    }
  };
}

/** Reports the results of plugin hooks; each generation brings its own plugins. */
function showHooks(registry: Registry): (gateway: Pick<GatewayView, 'plugins'>) => void {
  let gateway: Pick<GatewayView, 'plugins'> = { plugins: () => [] };
  const counter = (name: string, help: string, read: (report: HookReport) => number): void => {
    new Counter({
      name: `tollgate_plugin_hook_${name}`,
      help,
      labelNames: ['plugin', 'hook'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { name: plugin, counts } of gateway.plugins())
          for (const report of counts) this.inc({ plugin, hook: report.hook }, read(report));
      },
    });
  };
  counter('calls_total', 'Hook calls; the transform of a stream is called once per chunk.', ({ calls }) => calls);
  counter('failures_total', 'Failed hook calls, without rejections.', ({ failures }) => failures);
  counter('skipped_total', 'Calls that skipped a hook because it timed out repeatedly.', (each) => each.skipped);
  counter('seconds_sum', 'Duration of asynchronous hooks.', ({ timedMs }) => timedMs / 1000);
  counter('seconds_count', 'Calls of asynchronous hooks.', ({ timed }) => timed);
  return (next) => {
    gateway = next;
  };
}

/** Histogram buckets of store operations in seconds, from memory to a store that times out. */
const STORE_SECONDS: readonly number[] = Object.freeze([
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]);

/** Measures the operations of the store. */
function measureStore(registry: Registry): StoreWatcher {
  const seconds = new Buckets({
    name: 'tollgate_store_duration_seconds',
    help: 'Store operations.',
    bounds: STORE_SECONDS,
    registry,
  });
  const failures = new Counter({
    name: 'tollgate_store_failures_total',
    help: 'Failed store operations.',
    labelNames: ['operation'],
    registers: [registry],
  });
  // Bounded by the number of store methods.
  const known = new Map<string, Observations>();
  return (operation, ms, isOk) => {
    let ofOperation = known.get(operation);
    if (!ofOperation) {
      ofOperation = seconds.of({ operation });
      known.set(operation, ofOperation);
    }
    ofOperation.observe(ms / 1000);
    if (!isOk) failures.inc({ operation });
  };
}

/** Prometheus metrics at `/metrics`: base units, bounded labels, no user ids. */
export default definePlugin({
  name: 'metrics',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['operators'],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      path: { type: 'string', pattern: '^/[\\w/-]{1,64}$', default: '/metrics', description: 'Path of the metrics.' },
      auth: {
        enum: ['admin', 'none'],
        default: 'admin',
        description:
          'Access: `admin` requires a key, token or session with the scope `metrics:read`; `none` allows everyone who can reach the gateway.',
      },
    },
  },
  setup(api, config) {
    // Counters survive a configuration reload.
    const kept = api.keep('metrics', () => createMetrics(api.settings.version));
    const { ours, countRequest, countCall, targets } = kept;
    api.use(countRequest);
    // Models that an operator names in an alias are not made up by callers.
    const named = new Set(api.models.aliases().flatMap(([, targets]) => targets));
    const isListed = ({ provider, model }: Target): boolean =>
      named.has(`${provider}/${model}`) || api.models.list().some(({ id }) => id === `${provider}/${model}`);
    const finish = (call: Call, outcome: Outcome): void => countCall(call, outcome, isListed);
    api.hook('attempt', targets.countAttempt);
    api.operators.watchStore(kept.watchStore);
    api.onReady(() => {
      targets.watch({
        read: () => api.models.routing(),
        isListed,
        aliases: api.models.aliases(),
        endings: () => endingTargets(api),
      });
      kept.showFigures(api.operators.gauges());
      kept.showHooks(api.operators.gateway);
    });
    api.hook('finish', finish);
    api.hook('finish', { operations: ['count'], handler: finish });

    // A scrape reaches one of several workers, which responds for all of them.
    const own = (): Registry => Registry.merge([ours, processMetrics()]);
    const gather = api.operators.gather('metrics', () => own().getMetricsAsJSON());
    api.route({
      method: 'GET',
      path: config.path,
      summary: 'Prometheus metrics',
      ...(config.auth === 'none'
        ? { auth: 'none' as const }
        : { auth: ['key', 'token'] as const, role: 'admin' as const, scope: 'metrics:read' }),
      isProbe: true,
      responses: { 200: { description: 'Metrics in Prometheus text format.', contentType: 'text/plain' } },
      async handler(ctx) {
        kept.showCertificate(ctx.req.socket);
        const ofWorkers = await gather();
        const whole = ofWorkers.length > 1 ? AggregatorRegistry.aggregate([...ofWorkers]) : own();
        ctx.body = await whole.metrics();
        ctx.type = whole.contentType;
      },
    });
  },
});

function createMetrics(version: string) {
  const ours = new Registry();
  new Gauge({
    name: 'tollgate_build_info',
    help: 'Running version.',
    labelNames: ['version'],
    registers: [ours],
  }).set({ version }, 1);
  return {
    ours,
    countRequest: countRequests(ours),
    countCall: countCalls(ours),
    targets: countTargets(ours),
    showFigures: showGauges(ours),
    showHooks: showHooks(ours),
    watchStore: measureStore(ours),
    showCertificate: showCertificate(ours),
  };
}

/** Reports the expiry of the gateway's TLS certificate, from the connection of a scrape. Absent without TLS. */
function showCertificate(registry: Registry): (socket: object) => void {
  const end = new Gauge({
    name: 'tollgate_tls_certificate_end_timestamp_seconds',
    help: 'Expiry of the gateway’s TLS certificate.',
    registers: [registry],
    aggregator: 'max' as const,
  });
  end.remove();
  return (socket) => {
    const certificate = socket instanceof TLSSocket ? socket.getCertificate() : null;
    const validTo = certificate && 'valid_to' in certificate ? certificate.valid_to : undefined;
    if (typeof validTo === 'string') end.set(Date.parse(validTo) / 1000);
  };
}

let ofProcess: Registry | undefined;

/**
 * Metrics of the process: CPU, memory, event loop lag, garbage collection. Registered once, however many gateways the
 * process runs: prom-client cannot remove its observers.
 */
function processMetrics(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess, prefix: 'tollgate_' });
  return ofProcess;
}
