import {
  type Call,
  definePlugin,
  formatUsd,
  type GatewayError,
  type Outcome,
  type Principal,
} from '../../core/index.ts';

/** What core leaves in the Koa context of a request. */
interface RequestState {
  readonly requestId: string;
  readonly ip?: string;
  readonly route?: string;
  readonly principal?: Principal;
  readonly error?: GatewayError;
  readonly outcomes?: readonly { readonly call: Call; readonly outcome: Outcome }[];
}

/** One line per request, after its last byte: named fields only, never a body, a header or a credential. */
export default definePlugin({
  name: 'access-log',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      health: { type: 'boolean', default: false, description: 'Whether health checks and `/metrics` get a line too.' },
    },
  },
  setup(api, config) {
    api.use(async (ctx, next) => {
      if (!config.health && QUIET.has(ctx.path)) return next();
      const started = performance.now();
      const closed = new Promise<void>((resolve) => ctx.res.once('close', resolve));
      const write = () => {
        const aborted = !ctx.res.writableFinished;
        const fields = describe(ctx.state as RequestState, ctx.method, ctx.path);
        api.log.info(
          {
            ...fields,
            status: aborted && !ctx.res.headersSent ? 499 : ctx.res.statusCode,
            dur_ms: round(performance.now() - started),
            ...(aborted && { aborted }),
          },
          'request',
        );
      };
      // The line waits for both: the handler (a stream's outcome) and the socket (the last byte).
      const handled = next();
      void Promise.allSettled([handled, closed]).then(write);
      return handled;
    });
  },
});

const QUIET: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz', '/metrics']);

function describe(state: RequestState, method: string, path: string): Record<string, unknown> {
  const { requestId, ip, route, principal, error, outcomes } = state;
  return {
    req_id: requestId,
    method,
    route: route ?? 'none',
    ...(ip && { ip }),
    ...(route === undefined && { path: path.slice(0, 200) }),
    ...(principal && { user: principal.userId, ...(principal.keyId && { key: principal.keyId }) }),
    ...(outcomes && describeCalls(outcomes)),
    ...(error && { error: error.code }),
  };
}

function describeCalls(outcomes: NonNullable<RequestState['outcomes']>): Record<string, unknown> {
  const [first] = outcomes;
  const last = outcomes.at(-1);
  if (!first || !last) return {};
  const { call, outcome } = last;
  const { usage, cost, target, error } = outcome;
  return {
    operation: call.operation,
    stream: call.stream,
    outcome: outcome.status,
    attempts: outcome.attempts,
    ...(outcomes.length > 1 && { calls: outcomes.length }),
    ...(target && { provider: target.provider, model: target.model.slice(0, 100) }),
    ...(usage && { tokens_in: usage.prompt_tokens, tokens_out: usage.completion_tokens }),
    ...(cost !== undefined && { cost_usd: formatUsd(cost) }),
    ...(outcome.firstByteMs !== undefined && { ttfb_ms: round(outcome.firstByteMs) }),
    upstream_ms: round(outcome.upstreamMs),
    ...(error && { error: error.code }),
  };
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
