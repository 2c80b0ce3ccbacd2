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
        const isAborted = !res.writableFinished;
        const status = isAborted && !res.headersSent ? 499 : res.statusCode;
        const durationMs = performance.now() - started;
        api.log.info(describe(ctx.state as RequestState, { method, path, status, durationMs, isAborted }), 'request');
      };
      res.on('close', write);
      const handled = next();
      handled.then(write, write);
      return handled;
    });
  },
});

const QUIET: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz', '/metrics']);

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  /** Whether the last byte never left. */
  readonly isAborted: boolean;
}

/** The fields of a line, always the same ones in the same order: engines are quick with those. Undefined ones are not told. */
function describe(state: RequestState, { method, path, status, durationMs, isAborted }: Exchange): object {
  const { requestId, ip, route, principal, outcomes } = state;
  const { call, outcome } = outcomes?.at(-1) ?? {};
  return {
    req_id: requestId,
    method,
    route: route ?? 'none',
    ip: ip || undefined,
    path: route === undefined ? path.slice(0, 200) : undefined,
    user: principal?.userId,
    key: principal?.keyId,
    operation: call?.operation,
    stream: call?.stream,
    outcome: outcome?.status,
    attempts: outcome?.attempts,
    calls: outcomes && outcomes.length > 1 ? outcomes.length : undefined,
    provider: outcome?.target?.provider,
    model: outcome?.target?.model.slice(0, 100),
    tokens_in: outcome?.usage?.prompt_tokens,
    tokens_out: outcome?.usage?.completion_tokens,
    cost_usd: outcome?.cost === undefined ? undefined : formatUsd(outcome.cost),
    ttfb_ms: rounded(outcome?.firstByteMs),
    upstream_ms: rounded(outcome?.upstreamMs),
    error: (state.error ?? outcome?.error)?.code,
    status,
    dur_ms: rounded(durationMs),
    aborted: isAborted || undefined,
  };
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 100) / 100;
}
