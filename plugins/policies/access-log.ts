import {
  type Call,
  definePlugin,
  formatUsd,
  type GatewayError,
  type Outcome,
  type PluginApi,
  type Principal,
} from '../../core/index.ts';

/** What core leaves in the Koa context of a request. */
interface RequestState {
  readonly requestId: string;
  readonly ip?: string;
  readonly isProbe?: boolean;
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
      health: { type: 'boolean', default: false, description: 'Whether health checks and metrics get a line too.' },
    },
  },
  setup(api, config) {
    api.use(async (ctx, next) => {
      if (!config.health && (ctx.state as RequestState).isProbe) return next();
      const started = performance.now();
      let isHandled = false;
      // The line waits for both: the handler (a stream's outcome) and the socket (the last byte).
      const write = (): void => {
        if (isHandled && ctx.res.closed) api.log.info(fieldsOf(ctx, performance.now() - started), 'request');
      };
      ctx.res.once('close', write);
      try {
        await next();
      } finally {
        isHandled = true;
        write();
      }
    });
  },
});

type Context = Parameters<Parameters<PluginApi['use']>[0]>[0];

/** The fields of a line; undefined ones are not in it. */
function fieldsOf({ method, path, res, state }: Context, durationMs: number): object {
  const { requestId, ip, route, principal, outcomes, error }: RequestState = state;
  const { call, outcome } = outcomes?.at(-1) ?? {};
  const isAborted = !res.writableFinished;
  return {
    req_id: requestId,
    method,
    route: route ?? 'none',
    ip: ip || undefined,
    path: route === undefined ? hideKeys(path).slice(0, 200) : undefined,
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
    saved_usd: outcome?.saved === undefined ? undefined : formatUsd(outcome.saved),
    ttfb_ms: rounded(outcome?.firstByteMs),
    upstream_ms: rounded(outcome?.upstreamMs),
    error: (error ?? outcome?.error)?.code,
    status: isAborted && !res.headersSent ? 499 : res.statusCode,
    dur_ms: rounded(durationMs),
    aborted: isAborted || undefined,
  };
}

/** What looks like a key: a part of a path that is long and has digits, or that begins as vendors' keys do. */
const KEY_LIKE =
  /^(?=.*\d)(?=.*[a-z])[\w.~%+=:-]{16,}$|^(?:tg|sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|fw|bearer|eyj)[-_%. ]?[\w.~%+=:-]{6,}/i;

/** A path that no route has, as callers mistype it, without the keys that they put into it. */
function hideKeys(path: string): string {
  return path
    .split('/')
    .map((part) => (KEY_LIKE.test(part) ? '[redacted]' : part))
    .join('/');
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 100) / 100;
}
