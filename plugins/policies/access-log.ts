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
    api.use((ctx, next) => {
      if (!config.health && QUIET.has(ctx.path)) return next();
      const started = performance.now();
      const { res, method, path } = ctx;
      // The line waits for both: the handler (a stream's outcome) and the socket (the last byte).
      let awaited = 2;
      const write = () => {
        awaited -= 1;
        if (awaited > 0) return;
        const aborted = !res.writableFinished;
        const fields = describe(ctx.state as RequestState, method, path);
        fields['status'] = aborted && !res.headersSent ? 499 : res.statusCode;
        fields['dur_ms'] = round(performance.now() - started);
        if (aborted) fields['aborted'] = true;
        api.log.info(fields, 'request');
      };
      res.once('close', write);
      const handled = next();
      handled.then(write, write);
      return handled;
    });
  },
});

const QUIET: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz', '/metrics']);

function describe(state: RequestState, method: string, path: string): Record<string, unknown> {
  const { requestId, ip, route, principal, error, outcomes } = state;
  const fields: Record<string, unknown> = { req_id: requestId, method, route: route ?? 'none' };
  if (ip) fields['ip'] = ip;
  if (route === undefined) fields['path'] = path.slice(0, 200);
  if (principal) {
    fields['user'] = principal.userId;
    if (principal.keyId) fields['key'] = principal.keyId;
  }
  if (outcomes) describeCalls(fields, outcomes);
  if (error) fields['error'] = error.code;
  return fields;
}

function describeCalls(fields: Record<string, unknown>, outcomes: NonNullable<RequestState['outcomes']>): void {
  const last = outcomes.at(-1);
  if (!last) return;
  const { call, outcome } = last;
  const { usage, cost, target, error } = outcome;
  fields['operation'] = call.operation;
  fields['stream'] = call.stream;
  fields['outcome'] = outcome.status;
  fields['attempts'] = outcome.attempts;
  if (outcomes.length > 1) fields['calls'] = outcomes.length;
  if (target) {
    fields['provider'] = target.provider;
    fields['model'] = target.model.slice(0, 100);
  }
  if (usage) {
    fields['tokens_in'] = usage.prompt_tokens;
    fields['tokens_out'] = usage.completion_tokens;
  }
  if (cost !== undefined) fields['cost_usd'] = formatUsd(cost);
  if (outcome.firstByteMs !== undefined) fields['ttfb_ms'] = round(outcome.firstByteMs);
  fields['upstream_ms'] = round(outcome.upstreamMs);
  if (error) fields['error'] = error.code;
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
