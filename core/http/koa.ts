import cors from '@koa/cors';
import Koa from 'koa';
import { requestIdOf } from '../calls/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/plugin.ts';
import type { ErrorNote } from '../contract/route.ts';
import { createDialectPrefixes, cutUrlCredentials, type DialectPrefixes, type UrlCredential } from './authenticate.ts';
import { answerError } from './error-answer.ts';
import type { InnerRequests } from './inner-requests.ts';
import { clientAddress, normalisePath, RequestState } from './request-state.ts';
import { type Lifecycle, MAX_HEADERS } from './server.ts';

/** Socket errors of callers who left; Koa reports each closed tab as one. */
const CALLER_LEFT = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ECONNRESET',
  'EPIPE',
  'ERR_STREAM_DESTROYED',
  'ECONNABORTED',
]);

/** Of one answer. Koa sets eight for a body that is a stream; Node warns of a leak at eleven. */
const MAX_LISTENERS = 20;

interface KoaDeps {
  readonly lifecycle: Lifecycle;
  readonly log: Log;
  readonly cors?: { readonly origins: readonly string[] };
  /** How many proxies in front are believed about the caller's address. */
  readonly trustProxy?: number;
  /** The paths of the routes that monitors ask. */
  readonly probes?: ReadonlySet<string>;
  /** What errors end with, by path. */
  readonly errorNotes?: ReadonlyMap<string, ErrorNote>;
  /** What dialects say of paths. */
  readonly prefixes?: DialectPrefixes;
  /** Requests that the gateway makes to itself. */
  readonly inner?: InnerRequests;
  /** Whether a parameter of a URL that may be a credential is one, where no dialect takes it as such. */
  readonly isUrlCredential?: (credential: UrlCredential) => boolean;
  /** Runs at the end of each response, before all others who wait for it. */
  readonly onClosed?: (() => void) | undefined;
  /** The plugin of an error that nothing on its way noted as that plugin's own. */
  readonly findOwner?: (error: unknown) => string | undefined;
}

/** The Koa application: request id, errors as JSON, then the given middleware in order. */
export function createKoa(middleware: readonly Koa.Middleware[], deps: KoaDeps): Koa {
  const { lifecycle, log, cors: crossOrigin = { origins: [] }, onClosed, findOwner = () => undefined } = deps;
  const app = new Koa();
  app.proxy = false;
  app.silent = true;
  app.on('error', (error: Error & { code?: string }) => {
    if (!CALLER_LEFT.has(error.code ?? '')) log.error({ err: error }, 'answer failed');
  });
  answerLateErrors(app, log);
  const createState = stateMaker(deps);
  app.use(async (ctx, next) => {
    const { req, res } = ctx;
    let state: RequestState | undefined;
    // The one listener for the end of the response; all others are told by it.
    const end = (): void => {
      onClosed?.();
      state?.close();
    };
    if (res.closed) end();
    else res.once('close', end);
    const path = normalisePath(ctx.path);
    state = createState(ctx, path);
    if (res.closed) state.close();
    ctx.state = state;
    res.setMaxListeners(MAX_LISTENERS);
    res.setHeader('x-request-id', state.requestId);
    res.setHeader('request-id', state.requestId);
    if (lifecycle.draining) res.setHeader('connection', 'close');
    try {
      if (req.rawHeaders.length > MAX_HEADERS * 2)
        throw new GatewayError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
      if (path !== ctx.path) ctx.path = path;
      await next();
    } catch (thrown) {
      answerError(ctx, thrown, log, findOwner);
    }
    // After all who wait for the end, also those with a listener of their own.
    state.onClosed(() => process.nextTick(release, state));
  });
  if (crossOrigin.origins.length > 0) app.use(createCors(crossOrigin.origins));
  for (const each of middleware) app.use(each);
  return app;
}

/** Makes what is known of a request before any middleware of plugins sees it; credentials are cut out of its URL. */
function stateMaker({
  trustProxy = 0,
  probes,
  errorNotes,
  prefixes = createDialectPrefixes([]),
  inner,
  isUrlCredential = () => true,
}: KoaDeps): (ctx: Koa.Context, path: string) => RequestState {
  return (ctx, path) => {
    const { req } = ctx;
    const isCredential = (each: UrlCredential): boolean =>
      prefixes.placesAt(path).query.includes(each.name) || isUrlCredential(each);
    cutUrlCredentials(ctx, prefixes.queryNames, isCredential);
    const requestId = requestIdOf(req.headers['x-request-id']);
    const state = new RequestState(requestId, clientAddress(req, trustProxy), probes?.has(path), inner?.outerOf(req));
    state.dialect = prefixes.dialectAt(path, req.headers);
    // The router ignores case.
    state.errorNote = errorNotes?.get(path.toLowerCase());
    return state;
  };
}

function release(state: RequestState): void {
  state.release();
}

/** Koa writes the body after all middleware; what fails then (a body that is no JSON) it would answer in plain text. */
function answerLateErrors(app: Koa, log: Log): void {
  const { onerror } = app.context;
  app.context.onerror = function (this: Koa.Context, error: Error) {
    // Koa also calls it, with nothing, when an answer is over.
    if (!(error instanceof Error) || this.headerSent || !this.writable) {
      onerror.call(this, error);
      return;
    }
    answerError(this, error, log, () => (this.state as RequestState).plugin);
    if (this.respond !== false) this.res.end(this.body);
  };
}

/** What a browser's script may read of a response, beside the body. */
const EXPOSED = [
  'x-request-id',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'server-timing',
  ...['provider', 'model', 'attempts', 'cost-usd', 'dropped', 'lane', 'skipped', 'estimated'].map(
    (name) => `x-tollgate-${name}`,
  ),
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
].join(', ');

/** Which origin a response is for, as its header says it: none for pages that are not allowed. */
function originFor(ctx: Koa.Context, origins: readonly string[]): string {
  const origin = ctx.get('origin');
  if (origin !== '' && origins.includes('*')) return '*';
  return origins.includes(origin) ? origin : '';
}

/**
 * Cross-origin calls from web pages, for the origins of `server.cors.origins`. Requested headers are reflected, because
 * each SDK release brings new ones; errors carry the same headers, or a page could not read them. Credentials (cookies)
 * are never allowed: a key comes in a header.
 */
function createCors(origins: readonly string[]): Koa.Middleware {
  return cors({
    origin: (ctx) => originFor(ctx, origins),
    allowMethods: 'GET, POST, DELETE, OPTIONS',
    exposeHeaders: EXPOSED,
    // How long a browser remembers a preflight, in seconds.
    maxAge: 600,
    // Ours stay on an error; the library would write them to the error, which may be frozen.
    keepHeadersOnError: false,
  });
}
