import {
  type Call,
  type CallHook,
  definePlugin,
  formatUsd,
  type GatewayError,
  type Outcome,
  type PluginApi,
  type Principal,
} from '../../contract/index.ts';
import { CALL_FIELDS, type CallFieldType, type CallSummary, describeHooks, logFields, summaryOf } from './kit/index.ts';

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
        if (isHandled && ctx.res.closed) logFields(api.log, fieldsOf(ctx, performance.now() - started), 'request');
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

/** The longest text of a field, which a caller may have written: a model's name, an error about it. */
const MAX_TEXT = 300;

/** How values of a type are written that are not written as they are. */
const WRITERS: Readonly<Partial<Record<CallFieldType, (value: unknown) => string>>> = Object.freeze({
  usd: (value) => text(formatUsd(value as number)),
  ms: (value) => String(hundredths(value as number)),
  texts: (value) => text((value as readonly string[]).join(', ').slice(0, MAX_TEXT)),
  hooks: (value) =>
    text(
      describeHooks(value as readonly CallHook[])
        .join(', ')
        .slice(0, MAX_TEXT),
    ),
});

function writeAny(value: unknown): string {
  if (typeof value === 'string') return text(value.slice(0, MAX_TEXT));
  return JSON.stringify(Array.isArray(value) ? value.length : value);
}

/** The fields of a call that a line has: the beginning of each there, and how its value is written. */
const CALL = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof CallSummary)[]).flatMap((name) => {
    const { log, type } = CALL_FIELDS[name];
    return log === undefined ? [] : [{ name, start: `,"${log}":`, write: WRITERS[type] ?? writeAny }];
  }),
);

/** The fields of a line as JSON, without the braces; undefined ones are not in it. */
function fieldsOf({ method, path, res, state }: Context, durationMs: number): string {
  const { requestId, ip, route, principal, outcomes, error }: RequestState = state;
  const last = outcomes?.at(-1);
  const isAborted = !res.writableFinished;
  const code = (error ?? last?.outcome.error)?.code;
  let line = `"request_id":${text(requestId)},"method":${text(method)},"route":${text(route ?? 'none')}`;
  if (ip) line += `,"ip":${text(ip)}`;
  if (route === undefined) line += `,"path":${text(hideKeys(path).slice(0, 200))}`;
  if (principal) {
    line += `,"user":${text(principal.userId)}`;
    if (principal.keyId !== undefined) line += `,"key":${text(principal.keyId)}`;
  }
  if (outcomes && outcomes.length > 1) line += `,"calls":${outcomes.length}`;
  if (code !== undefined) line += `,"error":${text(code)}`;
  line += `,"status":${isAborted && !res.headersSent ? 499 : res.statusCode},"dur_ms":${hundredths(durationMs)}`;
  if (isAborted) line += ',"aborted":true';
  if (!last) return line;
  const summary = summaryOf(last.call, last.outcome);
  // By index: an iterator makes an object for each field.
  for (let at = 0; at < CALL.length; at += 1) {
    const field = CALL[at];
    const value = field && summary[field.name];
    if (field && value !== undefined) line += field.start + field.write(value);
  }
  return line;
}

const text: (value: string) => string = JSON.stringify;

function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
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
