import Koa from 'koa';
import { requestIdOf } from '../calls/ids.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/log.ts';
import type { ErrorNote } from '../contract/route.ts';
import { createCors } from './cors.ts';
import { cutUrlCredentials, type UrlCredential } from './credentials.ts';
import { createDialectPrefixes, type DialectPrefixes } from './dialect-prefixes.ts';
import { answerError } from './error-answer.ts';
import type { InnerRequests } from './inner-requests.ts';
import type { Lifecycle } from './lifecycle.ts';
import { clientAddress, normalisePath } from './path-and-address.ts';
import { RequestState } from './request-state.ts';
import { MAX_HEADERS } from './server.ts';

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

export interface KoaDeps {
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
  /** The plugin of an error that nothing on its way noted as that plugin's own. */
  readonly findOwner?: (error: unknown) => string | undefined;
}

/** The Koa application: request id, errors as JSON, then the given middleware in order. */
export function createKoa(
  middleware: readonly Koa.Middleware[],
  {
    lifecycle,
    log,
    cors = { origins: [] },
    trustProxy = 0,
    probes,
    errorNotes,
    prefixes = createDialectPrefixes([]),
    inner,
    isUrlCredential = () => true,
    findOwner = () => undefined,
  }: KoaDeps,
): Koa {
  const app = new Koa();
  app.proxy = false;
  app.silent = true;
  app.on('error', (error: Error & { code?: string }) => {
    if (!CALLER_LEFT.has(error.code ?? '')) log.error({ err: error }, 'answer failed');
  });
  answerLateErrors(app, log);
  app.use(async (ctx, next) => {
    const { req, res } = ctx;
    const requestId = requestIdOf(req.headers['x-request-id']);
    const path = normalisePath(ctx.path);
    cutUrlCredentials(
      ctx,
      prefixes.queryNames,
      (each) => prefixes.placesAt(path).query.includes(each.name) || isUrlCredential(each),
    );
    const state = new RequestState(requestId, clientAddress(req, trustProxy), probes?.has(path), inner?.outerOf(req));
    state.dialect = prefixes.dialectAt(path, req.headers);
    // The router folds case.
    state.errorNote = errorNotes?.get(path.toLowerCase());
    ctx.state = state;
    res.setMaxListeners(MAX_LISTENERS);
    res.setHeader('x-request-id', requestId);
    res.setHeader('request-id', requestId);
    if (lifecycle.draining) res.setHeader('connection', 'close');
    try {
      if (req.rawHeaders.length > MAX_HEADERS * 2)
        throw new GatewayError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
      if (path !== ctx.path) ctx.path = path;
      await next();
    } catch (thrown) {
      answerError(ctx, thrown, log, findOwner);
    }
    // After all who listen for the end, such as the access log.
    if (res.closed) process.nextTick(release, state);
    else res.once('close', () => process.nextTick(release, state));
  });
  const crossOrigin = createCors(cors.origins);
  for (const each of crossOrigin ? [crossOrigin, ...middleware] : middleware) app.use(each);
  return app;
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
