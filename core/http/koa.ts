import type { IncomingHttpHeaders } from 'node:http';
import cors from '@koa/cors';
import Router, { type RouterContext } from '@koa/router';
import type { ValidateFunction } from 'ajv';
import Koa from 'koa';
import type { Principal, RequestOrigin } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { deepFreeze, isObject } from '../../contract/json.ts';
import type { Log, Route, RouteContext } from '../../contract/plugin.ts';
import type { ErrorNote, RefusalWatcher } from '../../contract/route.ts';
import { MAX_TAGS, refuseTag, type TagRules, tagName } from '../../contract/units.ts';
import { readEndUser } from '../calls/end-user.ts';
import { requestIdOf } from '../calls/ids.ts';
import { readTrace } from '../calls/trace.ts';
import { CORE, runAttributed } from '../plugins/attribution.ts';
import { type Attributed, type CompileRoute, createRouteCompiler, type RequestSchemas } from '../plugins/registry.ts';
import {
  type Authentication,
  createAuthenticator,
  createDialectPrefixes,
  cutUrlCredentials,
  type DialectPrefixes,
  dialectOfList,
  sessionOf,
  type UrlCredential,
} from './authenticate.ts';
import { shapeOf } from './dialect-routes.ts';
import { answerError, requestError } from './error-answer.ts';
import type { RespondOnce } from './idempotency.ts';
import type { InnerRequests } from './inner-requests.ts';
import { clientAddress, endWithCaller, type Lifecycle, normalisePath, RequestState } from './lifecycle.ts';
import { createMemory, LARGE_BYTES, type Memory, ownerOf } from './memory.ts';
import type { CountAdmin } from './operator-rights.ts';
import type { Paths } from './paths.ts';
import { type Form, formBytes, RequestBody, readForm } from './read-body.ts';
import { RouteIndex } from './route-index.ts';
import { MAX_HEADERS } from './server.ts';

/** Socket errors of disconnected callers; Koa reports one for each closed browser tab. */
const CALLER_LEFT = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ECONNRESET',
  'EPIPE',
  'ERR_STREAM_DESTROYED',
  'ECONNABORTED',
]);

/** Per response. Koa adds eight for a stream body; Node warns of a leak at eleven. */
const MAX_LISTENERS = 20;

/** Characters that proxies and URL parsers interpret differently: as the end of the path or as a slash. */
const AMBIGUOUS = /^[^?]*[#\\]/;

interface KoaDeps {
  readonly lifecycle: Lifecycle;
  readonly log: Log;
  readonly cors?: { readonly origins: readonly string[] };
  /** Number of trusted proxies in front, for the caller's address. */
  readonly trustProxy?: number;
  /** Paths of monitoring routes. */
  readonly probes?: ReadonlySet<string>;
  /** Texts appended to errors, by path. */
  readonly errorNotes?: ReadonlyMap<string, ErrorNote>;
  /** Path rules of dialects. */
  readonly prefixes?: DialectPrefixes;
  /** Paths with several spellings; default: none. */
  readonly paths?: Paths;
  /** Requests of the gateway to itself. */
  readonly inner?: InnerRequests;
  /** Returns whether a possible credential in a URL parameter is one, if no dialect accepts it. */
  readonly isUrlCredential?: (credential: UrlCredential) => boolean;
  /** Idle time of an event stream before a keep-alive; default: that of the writer. */
  readonly sseKeepAliveMs?: number | undefined;
  /** Runs at the end of each response, before all other listeners. */
  readonly onClosed?: (() => void) | undefined;
  /** Returns the plugin of an unattributed error. */
  readonly findOwner?: (error: unknown) => string | undefined;
}

/** Creates the Koa application: request id, errors as JSON, then the given middleware in order. */
export function createKoa(middleware: readonly Koa.Middleware[], deps: KoaDeps): Koa {
  const { lifecycle, log, cors: crossOrigin = { origins: [] }, trustProxy = 0, inner, onClosed } = deps;
  const { probes, errorNotes, paths, sseKeepAliveMs } = deps;
  const { findOwner = () => undefined, prefixes = createDialectPrefixes([]), isUrlCredential = () => true } = deps;
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
    const state = new RequestState(requestId, clientAddress(req, trustProxy), inner?.outer.get(req.socket));
    state.inner = inner;
    state.sseKeepAliveMs = sseKeepAliveMs;
    if (onClosed) state.onClosed(onClosed);
    if (res.closed) state.close();
    else res.once('close', state.close);
    ctx.state = state;
    res.setMaxListeners(MAX_LISTENERS);
    res.setHeader('x-request-id', requestId);
    res.setHeader('request-id', requestId);
    if (lifecycle.draining) res.setHeader('connection', 'close');
    try {
      // Facts of the path are set before any plugin middleware runs.
      const path = normalisePath(ctx.path);
      const { dialect, lists, places, meant } = prefixes.rulesAt(path, ctx.headers);
      state.places = places;
      state.dialect = (lists.length > 0 ? dialectOfList(lists, ctx.headers) : undefined) ?? dialect;
      // Misspelled paths need the note too.
      state.errorNote = errorNotes?.get(path.toLowerCase());
      cutUrlCredentials(ctx, prefixes.queryNames, (each) => places.query.includes(each.name) || isUrlCredential(each));
      if (AMBIGUOUS.test(req.url ?? ''))
        throw new GatewayError('invalid_request', 'The path of a URL must not contain "#" or "\\"; write %23 or %5C.');
      // A header decides between formats, also where this one has no route: another format's route is not what the client means.
      if (meant && paths && (meant.isSure || (!paths.isKnown(path) && paths.isForModels(meant.path)))) {
        state.alias = { path, model: meant.model };
        ctx.path = meant.path;
      } else if (path !== ctx.path && paths?.isForModels(path)) ctx.path = path;
      state.isProbe ||= probes?.has(ctx.path) === true;
      if (req.rawHeaders.length > MAX_HEADERS * 2)
        throw new GatewayError('headers_too_large', `The request has more than ${MAX_HEADERS} headers.`);
      await next();
    } catch (thrown) {
      if (state.route === undefined) state.dialect ??= prefixes.dialectOfClient(ctx.headers);
      answerError(ctx, thrown, log, findOwner);
    }
    state.isServed = true;
    if (res.closed) state.close();
  });
  if (crossOrigin.origins.length > 0) app.use(createCors(crossOrigin.origins));
  for (const each of middleware) app.use(each);
  return app;
}

/**
 * Koa writes the body after all middleware, and reports errors in that step (such as a body that cannot be serialized) as plain
 * text. This responds with JSON instead.
 */
function answerLateErrors(app: Koa, log: Log): void {
  const { onerror } = app.context;
  app.context.onerror = function (this: Koa.Context, error: Error) {
    // Koa also calls it without an error at the end of a response.
    if (!(error instanceof Error) || this.headerSent || !this.writable) {
      onerror.call(this, error);
      return;
    }
    answerError(this, error, log, () => (this.state as RequestState).plugin);
    if (this.respond !== false) this.res.end(this.body);
  };
}

export interface RouterDeps extends Authentication {
  readonly routes: readonly Attributed<Route>[];
  /** Compiles the routes' schemas. */
  readonly requests: RequestSchemas;
  /** Tags that requests may name; default: none. */
  readonly tags?: TagRules;
  /** Header with the end user of a request, in lower case; default: none. */
  readonly endUserHeader?: string | undefined;
  readonly lifecycle: Lifecycle;
  readonly maxBodyBytes: number;
  /** Returns the client format of a route's errors; default: OpenAI's. */
  readonly dialectOf?: (route: Route) => DialectDefinition | undefined;
  /** Responds to requests with an idempotency key, on routes that support it. Default: the key is ignored. */
  readonly respondOnce?: RespondOnce | undefined;
  /** Throws for callers whose large bodies must not be read. */
  readonly arrive?: ((principal: Principal) => void | Promise<void>) | undefined;
  /** Counts requests to operator routes; default: unlimited. */
  readonly countAdmin?: CountAdmin;
  /** Receive rejected callers of operator routes. */
  readonly refusalWatchers?: readonly RefusalWatcher[];
  /** Memory accounting shared by all generations; default: a new one. */
  readonly memory?: Memory;
  /** Suggests the right path for a wrong one. */
  readonly paths?: Paths;
}

type Handler = (ctx: Koa.Context) => Promise<void>;

/** Creates one middleware for all routes; the first registered wins. Throws a PluginError for an invalid route. */
export function createRouter(deps: RouterDeps): Koa.Middleware {
  const compile = createRouteCompiler(deps.requests);
  const memory = deps.memory ?? createMemory();
  const index = new RouteIndex<Handler>();
  const all: { readonly route: Route; readonly handler: Handler }[] = [];
  /** Routes that need pattern matching, with their position among all. */
  const patterns: { readonly order: number; readonly method: string; readonly path: RegExp }[] = [];
  for (const [order, { owner, value: route }] of deps.routes.entries()) {
    const handle = createHandler(deps, memory, compile, owner, route);
    const handler = route.role === 'admin' ? tellRefused(handle, deps.refusalWatchers) : handle;
    all.push({ route, handler });
    if (index.add(route.method, route.path, order, handler)) continue;
    const layer = newRouter().register(route.path, [route.method], handler);
    if ('regexp' in layer && layer.regexp instanceof RegExp)
      patterns.push({ order, method: route.method, path: layer.regexp });
  }
  /** Returns whether an earlier route matches as well. */
  const isBehind = (order: number, { method, path }: Koa.Context): boolean => {
    for (const pattern of patterns) {
      if (pattern.order > order) return false;
      if (pattern.method === method && pattern.path.test(path)) return true;
    }
    return false;
  };
  const createDispatch = (): ReturnType<Router['routes']> => {
    const router = newRouter();
    for (const { route, handler } of all) router.register(route.path, [route.method], handler);
    return router.routes();
  };
  let dispatch: ReturnType<Router['routes']> | undefined;
  return (ctx) => {
    const found = index.find(ctx.method, ctx.path);
    if (found && !isBehind(found.order, ctx)) {
      ctx['params'] = found.params;
      return found.handler(ctx);
    }
    // Compiling a pattern for each route takes a fifth of the time of a start, and few requests need one.
    dispatch ??= createDispatch();
    return dispatch(ctx as RouterContext, async () => {
      // Handlers never call next, so next means that no route matched.
      throw unmatched(ctx as RouterContext, deps.paths);
    });
  };
}

const newRouter = (): Router => new Router({ strict: true, sensitive: true });

/** Reports rejected callers to the watchers. */
function tellRefused(handle: Handler, watchers: RouterDeps['refusalWatchers'] = []): Handler {
  return (ctx) =>
    handle(ctx).catch((error: unknown) => {
      const { route = '', ip, principal } = ctx.state as RequestState;
      if (isGatewayError(error) && (error.status === 401 || error.status === 403))
        for (const tell of watchers) tell({ error, route, ip, principal });
      throw error;
    });
}

/** Handles a request to a route in this order: caller, query, body, handler. */
function createHandler(deps: RouterDeps, memory: Memory, compile: CompileRoute, owner: string, route: Route): Handler {
  const validateBody = compile(owner, route, 'body');
  const validateQuery = compile(owner, route, 'query');
  const dialect = deps.dialectOf?.(route);
  const authenticate = createAuthenticator(deps, route, dialect?.isSubscription);
  const countAdmin = route.role === 'admin' && !route.isProbe ? deps.countAdmin : undefined;
  const { endUserHeader } = deps;
  const maxBytes = route.form ? formBytes(route.form) : (route.maxBodyBytes ?? deps.maxBodyBytes);
  const label = `${route.method} ${route.path}`;
  const shape = dialect && shapeOf(dialect);
  // Core handles the routes of dialects itself.
  const handle: Route['handler'] =
    owner === CORE || dialect ? route.handler : (ctx) => runAttributed(owner, () => route.handler(ctx));
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = label;
    if (owner !== CORE) state.plugin = owner;
    state.dialect = dialect ?? state.dialect;
    // The caller is unknown so far, or not needed.
    const hold = memory.book(`address ${state.ip}`);
    state.hold = hold;
    const body = new RequestBody(ctx.req, { maxBytes, hold, memory });
    const found = authenticate?.(ctx as RouteContext, body);
    const principal = found instanceof Promise ? await found : found;
    let queueMs = 0;
    if (principal) {
      const line = hold.assign(ownerOf(principal));
      if (line) {
        const lineMs = performance.now();
        await line;
        queueMs = performance.now() - lineMs;
      }
      countAdmin?.(principal);
      state.principal =
        TAG_HEADER in ctx.headers ? withRequestTags(principal, ctx.headers, deps.tags ?? {}, route) : principal;
    }
    // Before the body costs time and memory; a chunked body may have any size.
    if (principal && route.isIdempotent && deps.arrive && !(Number(ctx.headers['content-length']) <= LARGE_BYTES))
      await deps.arrive(principal);
    state.session = sessionOf(ctx.headers);
    const endUser = endUserHeader === undefined ? undefined : readEndUser(ctx.headers[endUserHeader]);
    const origin: { -readonly [Name in keyof RequestOrigin]: RequestOrigin[Name] } = {
      ip: state.ip,
      endUser,
      receiveMs: 0,
      queueMs,
    };
    state.trace = readTrace(ctx.headers, origin);
    if (validateQuery) assertQuery(validateQuery, ctx.querystring);
    state.signal = deps.lifecycle.abortSignal(ctx.res, state, route.isEndless);
    if (route.isEndless && authenticate)
      state.signal = endWithCaller(state, state.signal, () => authenticate(ctx as RouteContext, body));
    let form: Form | undefined;
    try {
      if (route.form) {
        form = await readForm(ctx, route.form, { hold, memory, bytes: await body.reading });
        takeForm(state, form, validateBody);
      } else if (validateBody) {
        const { value: sent, empty, raw } = await body.json({ shape });
        const value = state.alias ? withModel(sent, state) : sent;
        if (!(empty && route.bodyOptional) && !validateBody(value)) throw wrong(validateBody, value);
        if (route.isIdempotent && deps.respondOnce && !state.outer && 'idempotency-key' in ctx.headers)
          return await deps.respondOnce(ctx, raw);
        state.body = value;
      }
      origin.receiveMs = performance.now() - state.arrivedMs;
      const work = handle(ctx as RouteContext);
      if (work) await work;
      // Koa would respond with 404 if a handler sets no response.
      if (ctx.body === undefined && ctx.status === 404 && ctx.respond !== false && !ctx.headerSent)
        throw new Error(`plugin "${owner}": the handler for ${label} did not set a response`);
    } finally {
      if (form) await form.remove();
    }
  };
}

function takeForm(state: RequestState, form: Form, validate: ReturnType<CompileRoute>): void {
  const fields = withModel(form.fields, state);
  if (validate && !validate(fields)) throw wrong(validate, fields);
  state.body = deepFreeze(fields);
  state.files = deepFreeze(form.files);
}

/** Returns the body with the model from the path, if any. */
function withModel(body: unknown, { alias }: Pick<RequestState, 'alias'>): unknown {
  return alias?.model === undefined || !isObject(body) ? body : Object.freeze({ ...body, model: alias.model });
}

/** Header with the tags of a request's calls: `team=search`. Several are separated by commas or sent in repeated headers. */
const TAG_HEADER = 'x-tollgate-tag';

/** Returns the caller with the request's tags after its own; all of its calls carry them. */
function withRequestTags(
  principal: Principal,
  headers: IncomingHttpHeaders,
  rules: TagRules,
  { auth, role }: Pick<Route, 'auth' | 'role'>,
): Principal {
  const sent = headers[TAG_HEADER];
  // Routes without model calls book nothing.
  if (sent === undefined || role === 'admin' || !auth.includes('key')) return principal;
  const { tags: own = [] } = principal;
  const tags = readTags(String(sent), own, rules);
  if (tags.length === own.length) return principal;
  return Object.freeze({ ...principal, tags, requestTags: Object.freeze(tags.slice(own.length)) });
}

/** Returns the tags of a header after those of the key or token; throws a 400 for invalid ones. */
export function readTags(header: string, own: readonly string[], rules: TagRules): readonly string[] {
  const sent = header
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const tags = [...own];
  for (const tag of sent) {
    if (tags.includes(tag)) continue;
    const reason = refuseTag(tag, rules);
    if (reason !== undefined) throw wrongTag(reason);
    const name = tagName(tag);
    if (own.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" is set by this key or token and cannot be set by a request. Remove it.`);
    if (tags.some((each) => tagName(each) === name))
      throw wrongTag(`The tag "${name}" has two values. Send one value per tag.`);
    if (tags.length >= MAX_TAGS)
      throw wrongTag(`A call can have at most ${MAX_TAGS} tags, including those of its key or token.`);
    tags.push(tag);
  }
  return Object.freeze(tags);
}

function wrongTag(message: string): GatewayError {
  return new GatewayError('invalid_request', `${TAG_HEADER}: ${message}`, { param: TAG_HEADER });
}

function assertQuery(validate: ValidateFunction, text: string): void {
  const query = Object.fromEntries(new URLSearchParams(text));
  if (!validate(query)) throw wrong(validate, query, 'query');
}

/** Returns the error for the last failure of a validator. */
function wrong({ errors }: ValidateFunction, value: unknown, where?: 'query'): GatewayError {
  const [error] = errors ?? [];
  if (!error) throw new TypeError('a validator refuses with an error');
  return requestError(error, value, where);
}

/** Returns the error for an unmatched request: 405 if its path has other methods, else 404. */
function unmatched(ctx: RouterContext, paths: Paths | undefined): GatewayError {
  const sent = `${paths?.basePath ?? ''}${(ctx.state as RequestState).alias?.path ?? ctx.path}`;
  const path = sent.length > 200 ? `${sent.slice(0, 197)}…` : sent;
  const methods = [...new Set(ctx.matched?.flatMap((layer) => layer.methods))].sort().join(', ');
  const hint = paths?.hint(ctx.method, ctx.path, methods !== '');
  if (methods === '')
    return new GatewayError('unknown_url', `Unknown request URL: ${ctx.method} ${path}${hint ? `. ${hint}` : ''}`);
  const message = `${path} does not support ${ctx.method}. Use ${methods}.${hint ? ` ${hint}` : ''}`;
  return new GatewayError('method_not_allowed', message, { headers: { allow: methods } });
}

/** Returns the allowed origin for the response header; empty for other origins. */
function originFor(ctx: Koa.Context, origins: readonly string[]): string {
  const origin = ctx.get('origin');
  if (origin !== '' && origins.includes('*')) return '*';
  return origins.includes(origin) ? origin : '';
}

/**
 * Cross-origin calls of web pages, for the origins of `server.cors.origins`. Requested headers are reflected, because SDK releases
 * add new ones. Errors carry the same headers, so that pages can read them. Credentials (cookies) are never allowed: a key comes in
 * a header. A page may therefore read every response header by the wildcard, which applies to calls without cookies.
 */
function createCors(origins: readonly string[]): Koa.Middleware {
  return cors({
    origin: (ctx) => originFor(ctx, origins),
    allowMethods: 'GET, POST, DELETE, OPTIONS',
    exposeHeaders: '*',
    // Cache time of a preflight in browsers, in seconds.
    maxAge: 600,
    // Our headers stay on an error; the library would write them to the error object, which may be frozen.
    keepHeadersOnError: false,
  });
}
