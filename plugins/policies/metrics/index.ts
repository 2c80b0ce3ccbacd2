import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { type Call, definePlugin, type Outcome, type Target } from '../../../core/index.ts';
import { measureStore, showFigures } from './figures.ts';
import { countCalls, countRequests } from './series.ts';
import { countTargets } from './targets.ts';

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
      auth: {
        enum: ['admin', 'none'],
        default: 'admin',
        description:
          'Who may read them: `admin` takes an admin key or a token with the admin permission; `none` lets everybody who reaches the gateway.',
      },
    },
  },
  setup(api, config) {
    // Counters go on when the configuration changes.
    const kept = api.keep('metrics', () => createMetrics(api.settings.version));
    const { ours, countRequest, countCall, targets } = kept;
    api.use(countRequest);
    // What an operator named in an alias is no name that callers made up.
    const named = new Set(api.aliases().flatMap(([, targets]) => targets));
    const isListed = ({ provider, model }: Target): boolean =>
      named.has(`${provider}/${model}`) || api.models().some(({ id }) => id === `${provider}/${model}`);
    const finish = (call: Call, outcome: Outcome): void => countCall(call, outcome, isListed);
    api.hook('attempt', (call, attempt) => targets.countAttempt(call, attempt));
    api.watchStore(kept.watchStore);
    api.onReady(() => {
      targets.watch({ read: () => api.routing(), isListed, aliases: api.aliases() });
      kept.showFigures(api.figures());
    });
    api.hook('finish', finish);
    api.hook('finish', { operations: ['count'], handler: finish });

    // A scrape reaches one worker of several; it answers for all of them.
    const own = (): Registry => Registry.merge([ours, processMetrics()]);
    const gather = api.gather('metrics', () => own().getMetricsAsJSON());
    api.route({
      method: 'GET',
      path: config.path,
      summary: 'Prometheus metrics',
      ...(config.auth === 'none'
        ? { auth: 'none' as const }
        : { auth: ['key', 'token'] as const, role: 'admin' as const }),
      isProbe: true,
      responses: { 200: { description: 'Metrics in the text format.', contentType: 'text/plain' } },
      async handler(ctx) {
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
    help: 'The version that runs.',
    labelNames: ['version'],
    registers: [ours],
  }).set({ version }, 1);
  return {
    ours,
    countRequest: countRequests(ours),
    countCall: countCalls(ours),
    targets: countTargets(ours),
    showFigures: showFigures(ours),
    watchStore: measureStore(ours),
  };
}

let ofProcess: Registry | undefined;

/**
 * The metrics of the process itself: CPU, memory, lag of the event loop, garbage collection. Measured once, however many
 * gateways the process runs: prom-client never takes its observers away again.
 */
function processMetrics(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess, prefix: 'tollgate_' });
  return ofProcess;
}
