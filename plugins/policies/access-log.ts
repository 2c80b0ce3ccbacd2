import {
  type Call,
  definePlugin,
  formatUsd,
  type GatewayError,
  type Outcome,
  type PluginApi,
  type Principal,
} from '../../core/index.ts';
import { CALL_FIELDS, type CallSummary, describeHooks, summaryOf } from './kit/index.ts';

/** What core leaves in the Koa context of a request. */
interface RequestState {
  readonly requestId: string;
  readonly ip?: string;
  readonly isProbe?: boolean;
  readonly route?: string;
  readonly principal?: Principal;
  readonly error?: GatewayError;
  onClosed(listener: () => void): void;
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
      const state: RequestState = ctx.state;
      if (!config.health && state.isProbe) return next();
      const started = performance.now();
      let isHandled = false;
      // The line waits for both: the handler (a stream's outcome) and the socket (the last byte).
      const write = (): void => {
        if (isHandled && ctx.res.closed) api.log.info(fieldsOf(ctx, performance.now() - started), 'request');
      };
      state.onClosed(write);
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

/** The fields of a call that a line has, with their names there. */
const CALL = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof CallSummary)[]).flatMap((name) => {
    const { log, type } = CALL_FIELDS[name];
    return log === undefined ? [] : [{ name, log, type }];
  }),
);

/** The fields of a line; undefined ones are not in it. */
function fieldsOf({ method, path, res, state }: Context, durationMs: number): object {
  const { requestId, ip, route, principal, outcomes, error }: RequestState = state;
  const last = outcomes?.at(-1);
  const isAborted = !res.writableFinished;
  const fields: Record<string, unknown> = {
    request_id: requestId,
    method,
    route: route ?? 'none',
    ip: ip || undefined,
    path: route === undefined ? hideKeys(path).slice(0, 200) : undefined,
    user: principal?.userId,
    key: principal?.keyId,
    calls: outcomes && outcomes.length > 1 ? outcomes.length : undefined,
    error: (error ?? last?.outcome.error)?.code,
    status: isAborted && !res.headersSent ? 499 : res.statusCode,
    dur_ms: Math.round(durationMs * 100) / 100,
    aborted: isAborted || undefined,
  };
  if (last) {
    const summary = summaryOf(last.call, last.outcome);
    for (const { name, log, type } of CALL) {
      const value = summary[name];
      if (typeof value === 'string') fields[log] = value.slice(0, MAX_TEXT);
      else if (type === 'usd' && typeof value === 'number') fields[log] = formatUsd(value);
      else if (type === 'ms' && typeof value === 'number') fields[log] = Math.round(value * 100) / 100;
      else if (type === 'texts') fields[log] = value && (value as readonly string[]).join(', ').slice(0, MAX_TEXT);
      else if (type === 'hooks')
        fields[log] = summary.hooks && describeHooks(summary.hooks).join(', ').slice(0, MAX_TEXT);
      else fields[log] = Array.isArray(value) ? value.length : value;
    }
  }
  return fields;
}

/** The longest text of a field, which a caller may have written: a model's name, an error about it. */
const MAX_TEXT = 300;

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
