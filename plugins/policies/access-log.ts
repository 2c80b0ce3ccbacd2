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

/** Koa context state that core sets for a request. */
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

/**
 * Writes one log line per request, after its last byte. Lines have named fields only, never a body, a header or a
 * credential.
 */
export default definePlugin({
  name: 'access-log',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      health: { type: 'boolean', default: false, description: 'Also logs requests of health checks and metrics.' },
    },
  },
  setup(api, config) {
    api.use(async (ctx, next) => {
      const state: RequestState = ctx.state;
      if (!config.health && state.isProbe) return next();
      const started = performance.now();
      let isHandled = false;
      // The line waits for both events: the end of the handler (a stream's outcome) and of the socket (the last byte).
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

/** Maximum length of a field that a caller may have written, such as a model name or an error about it. */
const MAX_TEXT = 300;

/** Formatters of types that are not logged as they are. */
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

/** Call fields of a log line: JSON prefix and formatter of each. */
const CALL = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof CallSummary)[]).flatMap((name) => {
    const { log, type } = CALL_FIELDS[name];
    return log === undefined ? [] : [{ name, start: `,"${log}":`, write: WRITERS[type] ?? writeAny }];
  }),
);

/** Formats the fields of a line as JSON without braces; omits undefined fields. */
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
  // An index loop avoids the object that an iterator allocates per field.
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

/** Path segments that look like keys: long with digits, or with the prefix of a vendor's keys. */
const KEY_LIKE =
  /^(?=.*\d)(?=.*[a-z])[\w.~%+=:-]{16,}$|^(?:tg|sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|fw|bearer|eyj)[-_%. ]?[\w.~%+=:-]{6,}/i;

/** Redacts keys in a path without a route: callers may mistype a path and put a key into it. */
function hideKeys(path: string): string {
  return path
    .split('/')
    .map((part) => (KEY_LIKE.test(part) ? '[redacted]' : part))
    .join('/');
}
