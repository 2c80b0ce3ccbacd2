import type { RequestListener } from 'node:http';
import Router, { type RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { Generation } from '../calls/generation.ts';
import type { CredentialKind } from '../contract/call.ts';
import { CHAT_REQUEST } from '../contract/chat-schemas.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import { deepFreeze, type Schema } from '../contract/json.ts';
import type { FormLimits, Plugin, Route, RouteContext, UpgradeHandler } from '../contract/plugin.ts';
import type { TagRules } from '../contract/units.ts';
import { CORE, runOwned } from '../plugins/attribution.ts';
import { createInstanceStore } from '../plugins/instance-store.ts';
import { isBuiltinOwner } from '../plugins/load-config.ts';
import {
  type CompileRoute,
  createRouteCompiler,
  type Owned,
  type RequestSchemas,
  type Validate,
} from '../plugins/registry.ts';
import { findStrayOwner } from '../plugins/stray-owner.ts';
import {
  type Asking,
  type Authenticate,
  type CredentialReader,
  createAuthenticator,
  createDialectPrefixes,
  readCredential,
  sessionOf,
  type UrlCredential,
  withoutBlocked,
  withRequestTags,
} from './authenticate.ts';
import { createDialectRoutes } from './dialect-routes.ts';
import { requestError } from './error-answer.ts';
import {
  createIdempotency,
  createKeptResults,
  type KeptResult,
  type RespondOnce,
  readIdempotencyKey,
} from './idempotency.ts';
import type { InnerRequests } from './inner-requests.ts';
import { createKoa } from './koa.ts';
import { createMemory, type Memory, ownerAt, ownerOf } from './memory.ts';
import { createOpenApi } from './openapi.ts';
import type { CountAdmin } from './operator-routes.ts';
import { type FormSource, formBytes, readBodyBytes, readForm, readJsonBody } from './read-body.ts';
import type { RequestState } from './request-state.ts';
import { coreRoutes } from './routes.ts';
import type { Lifecycle } from './server.ts';
import type { UpgradeRules } from './upgrades.ts';

/** A generation as HTTP sees it. */
export interface Served {
  readonly listener: RequestListener;
  readonly upgrades: UpgradeRules;
  /** Made when it is first asked for. */
  openApi(): Schema;
}

/** What all generations that a server serves share. */
export interface ServeDeps {
  readonly lifecycle: Lifecycle;
  readonly memory: Memory;
  readonly countAdmin: CountAdmin;
  readonly inner: InnerRequests;
  /** Runs at the end of each response. */
  readonly onClosed?: () => void;
}

/** Makes the listener of a generation: middleware of plugins, then all routes. Throws for a route that cannot work. */
export function serveGeneration(
  generation: Generation,
  { lifecycle, memory, inner, countAdmin, onClosed }: ServeDeps,
): Served {
  const { registry, deps, catalog, settings, foundation, requests } = generation;
  const { server } = generation.loaded.config;
  const owned = [...registry.dialects.values()];
  const spoken = owned.map(({ value }) => value);
  const dialects = createDialectRoutes(owned, deps, server.sseKeepAliveMs);
  let openApi: Schema | undefined;
  let openApiText: string | undefined;
  const describe = (): Schema => (openApi ??= createOpenApi(routes, schemas, settings.version, credentials));
  const own = coreRoutes({
    catalog,
    aliases: deps.aliases,
    dialects: owned,
    phase: () => lifecycle.phase,
    reloadProblem: () => lifecycle.reloadProblem,
    storeHealth: () => foundation.store.health(),
    gather: (topic) => foundation.gatherer.gather(topic),
    reloads: () => lifecycle.reloads,
    audit: (change) => generation.audit.add(change),
    openApi: () => (openApiText ??= JSON.stringify(describe())),
  });
  registry.refuseRoutesOf([
    ...own.filter(({ isFallback }) => !isFallback),
    ...dialects.routes.map(({ value }) => value),
  ]);
  const routes = [
    ...dialects.routes,
    ...own.filter((route) => !isReplaced(route, registry)).map((value) => ({ owner: CORE, value })),
    ...registry.routes.values(),
  ];
  const prefixes = createDialectPrefixes(spoken);
  const isCredential = credentialShape(generation.loaded.plugins);
  const schemas = [...registry.schemas.values()].map(({ value }) => value);
  const credentials = knownCredentials(generation.loaded.plugins);
  const authenticate = withoutBlocked(deps.partsOf('chat').hooks.authenticate, generation.refuseBlocked);
  const router = createRouter({
    ...{ routes, requests, lifecycle, memory, countAdmin, tags: settings.tags },
    dialectOf: dialects.dialectOf,
    authenticate,
    credentials,
    readCredential: ({ req, path }) => readCredential(req, { places: prefixes.placesAt(path), isCredential }),
    maxBodyBytes: server.bodyLimitBytes,
    respondOnce: createRespondOnce(generation, inner),
  });
  const probes = new Set(routes.flatMap(({ value }) => (value.isProbe ? [value.path] : [])));
  const errorNotes = new Map(
    routes.flatMap(({ value }) => (value.errorNote ? [[value.path.toLowerCase(), value.errorNote] as const] : [])),
  );
  const koa = createKoa([...ownedMiddleware(generation), router], {
    ...{ ...server, lifecycle, log: foundation.log, probes, errorNotes, prefixes, inner, onClosed },
    isUrlCredential: urlCredentials(routes, isCredential),
    findOwner: (error) => findStrayOwner(error, generation.loaded),
  });
  return { listener: koa.callback(), upgrades: upgradeRules(generation, spoken, isCredential), openApi: describe };
}

function ownedMiddleware({ registry, loaded }: Generation): readonly Koa.Middleware[] {
  return registry.middleware.map(({ owner, value }) =>
    isBuiltinOwner(owner, loaded)
      ? value
      : (ctx, next) =>
          // What comes after it is not its own: neither what that starts nor what it throws.
          runOwned(owner, () => value(ctx, () => runOwned(CORE, next))),
  );
}

/** What responds to requests with an idempotency key; undefined where they are switched off. */
function createRespondOnce(
  { loaded, registry, foundation: { store, log } }: Generation,
  inner: InnerRequests,
): RespondOnce | undefined {
  const { keepForMs, maxBytes } = loaded.config.server.idempotency;
  if (keepForMs === 0) return undefined;
  const own = createInstanceStore(() => store, registry, { group: CORE, name: CORE });
  const results = createKeptResults({
    ...{ keepForMs, counters: () => own.counters },
    documents: () => own.keyv<KeptResult>('idempotency'),
  });
  return createIdempotency({ inner, results, maxBytes, log });
}

/** Which paths take websockets: from callers who may send a POST there. */
function upgradeRules(
  { loaded, deps, refuseBlocked, registry }: Generation,
  dialects: readonly DialectDefinition[],
  isCredential: (text: string) => boolean,
): UpgradeRules {
  const { cors, trustProxy } = loaded.config.server;
  const authenticate = createAuthenticator(
    withoutBlocked(deps.partsOf('chat').hooks.authenticate, refuseBlocked),
    { auth: ['key'] },
    ({ req }) => readCredential(req, { isCredential }),
    knownCredentials(loaded.plugins),
  );
  return {
    ...{ origins: cors.origins, trustProxy },
    find: (path) => ({
      dialect: dialects.find(({ routes }) => routes.some((row) => row.path === path)),
      handler: ownedUpgrade(registry.upgrades.get(path)),
    }),
    async authenticate(req, ip) {
      const { headers, method = 'GET', url = '/' } = req;
      const principal = await authenticate?.(
        { req, method, headers, path: url.split('?', 1)[0] ?? '/', state: { ip } },
        noBody,
      );
      if (!principal) throw new TypeError('a route with credentials has an authenticator');
      return principal;
    },
  };
}

function ownedUpgrade(found: Owned<UpgradeHandler> | undefined): UpgradeHandler | undefined {
  return found && ((upgrade) => runOwned(found.owner, () => found.value(upgrade)));
}

/** An upgrade has no body. */
async function noBody(): Promise<Uint8Array> {
  return new Uint8Array();
}

/** The kinds of credentials that some auth plugin knows. */
function knownCredentials(plugins: readonly Plugin[]): ReadonlySet<CredentialKind> {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return new Set(auth.flatMap(({ credentials = ['key', 'token'] as const }) => credentials));
}

/** Whether a text has the shape of a credential that some auth plugin knows; any may, where one does not say. */
function credentialShape(plugins: readonly Plugin[]): (text: string) => boolean {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return (text) =>
    auth.some((plugin) => {
      try {
        return plugin.isCredential?.(text) ?? true;
      } catch {
        // What a plugin stumbles over may be a credential of its own.
        return true;
      }
    });
}

/** Whether a parameter of a URL is a credential: it looks like one, or no route has a parameter of this name. */
function urlCredentials(
  routes: readonly Owned<Route>[],
  isCredential: (text: string) => boolean,
): (credential: UrlCredential) => boolean {
  const own = new Set(routes.flatMap(({ value: { query } }) => Object.keys(query?.['properties'] ?? {})));
  return ({ name, value }) => !own.has(name) || isCredential(value);
}

/** Whether a plugin has the route in place of core's, which gives way. */
function isReplaced({ isFallback, method, path }: Route, { routes }: Generation['registry']): boolean {
  return isFallback === true && routes.has(`${method} ${path}`);
}

export interface RouterDeps {
  readonly routes: readonly Owned<Route>[];
  /** Compiles the routes' schemas. */
  readonly requests: RequestSchemas;
  readonly authenticate: Authenticate | undefined;
  /** The kinds of credentials that are known here; all unless set. */
  readonly credentials?: ReadonlySet<CredentialKind>;
  /** `readCredential` by its plain rules unless set. */
  readonly readCredential?: CredentialReader;
  /** The tags that requests may name; none unless set. */
  readonly tags?: TagRules;
  readonly lifecycle: Lifecycle;
  readonly maxBodyBytes: number;
  /** The client format of a route, which its errors are written in; OpenAI's unless set. */
  readonly dialectOf?: (route: Route) => DialectDefinition | undefined;
  /** Responds to requests that have an idempotency key, on routes that take one; the key is ignored unless set. */
  readonly respondOnce?: RespondOnce | undefined;
  /** Counts requests to routes of operators; they are not limited unless set. */
  readonly countAdmin?: CountAdmin;
  /** The memory in flight, shared by every generation; one of its own unless set. */
  readonly memory?: Memory;
}

const NO_TAGS: TagRules = Object.freeze({});

type Handler = (ctx: Koa.Context) => Promise<void>;

/** Makes one middleware of all routes; the first registered wins. Throws a PluginError for a route that cannot work. */
export function createRouter(deps: RouterDeps): Koa.Middleware {
  const router = new Router();
  const compile = createRouteCompiler(deps.requests);
  const memory = deps.memory ?? createMemory();
  for (const { owner, value: route } of deps.routes)
    router.register(route.path, [route.method], createHandler(deps, memory, compile, owner, route));
  const dispatch = router.routes();
  return (ctx) =>
    dispatch(ctx as RouterContext, async () => {
      // A handler never calls next, so next means that no route matched.
      throw unmatched(ctx as RouterContext);
    });
}

/** What is done for a request to a route, in this order: who calls, the query, the body, the handler. */
function createHandler(deps: RouterDeps, memory: Memory, compile: CompileRoute, owner: string, route: Route): Handler {
  const validateBody = compile(owner, route, 'body');
  const validateQuery = compile(owner, route, 'query');
  const authenticate = createAuthenticator(
    deps.authenticate,
    route,
    deps.readCredential ?? (({ req }) => readCredential(req)),
    deps.credentials,
  );
  const countAdmin = route.role === 'admin' && !route.isProbe ? deps.countAdmin : undefined;
  const maxBytes = route.form ? formBytes(route.form) : (route.maxBodyBytes ?? deps.maxBodyBytes);
  const label = `${route.method} ${route.path}`;
  const dialect = deps.dialectOf?.(route);
  const shape = dialect && { isChat: dialect.request === CHAT_REQUEST, effects: dialect.native?.effects };
  const run = (ctx: Koa.Context): void | Promise<void> => {
    const work = () => route.handler(ctx as RouteContext);
    // Core itself handles the routes of dialects.
    return owner === CORE || dialect ? work() : runOwned(owner, work);
  };
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = label;
    if (owner !== CORE) state.plugin = owner;
    state.dialect = dialect ?? state.dialect;
    const hold = memory.book(ownerAt(state.ip));
    state.onClosed(() => hold.release());
    let read: Promise<Buffer> | undefined;
    const bytes = (): Promise<Buffer> => {
      read ??= readBodyBytes(ctx.req, { maxBytes, hold, memory });
      return read;
    };
    const found = authenticate?.(ctx as Asking, bytes);
    const principal = found instanceof Promise ? await found : found;
    if (principal) hold.assign(ownerOf(principal));
    if (principal && countAdmin) await countAdmin(principal);
    state.session = sessionOf(ctx.headers);
    state.principal = principal && withRequestTags(principal, ctx.headers, deps.tags ?? NO_TAGS, route);
    if (validateQuery) check(validateQuery, Object.fromEntries(new URLSearchParams(ctx.querystring)), 'query');
    state.signal = deps.lifecycle.abortSignal(ctx.res, state, route.isEndless);
    if (route.form)
      return handleForm(ctx, route.form, { hold, memory, bytes: await read }, validateBody, async () => {
        await run(ctx);
        assertResponded(ctx, owner, label);
      });
    if (validateBody) {
      const { value, empty, raw } = await readJsonBody(ctx.req, { maxBytes, hold, memory, bytes, shape });
      if (!(empty && route.bodyOptional)) check(validateBody, value, undefined);
      if (route.isIdempotent && deps.respondOnce && !state.outer && readIdempotencyKey(ctx.req) !== undefined)
        return deps.respondOnce(ctx, raw);
      state.body = value;
    }
    const work = run(ctx);
    if (work) await work;
    assertResponded(ctx, owner, label);
  };
}

/** Koa would say 404 for a handler that forgot its response. */
function assertResponded(ctx: Koa.Context, owner: string, label: string): void {
  if (ctx.body === undefined && ctx.status === 404 && ctx.respond !== false && !ctx.headerSent)
    throw new Error(`plugin "${owner}": ${label} answered nothing`);
}

/** A route that takes a form: its files are there while the handler works, and deleted after it. */
async function handleForm(
  ctx: Koa.Context,
  limits: FormLimits,
  source: FormSource,
  validate: Validate | undefined,
  handle: () => Promise<void>,
): Promise<void> {
  const { fields, files, remove } = await readForm(ctx, limits, source);
  try {
    if (validate) check(validate, fields, undefined);
    const state = ctx.state as RequestState;
    state.body = deepFreeze(fields);
    state.files = deepFreeze(files);
    await handle();
  } finally {
    await remove();
  }
}

function check(validate: Validate, value: unknown, where: string | undefined): void {
  const error = validate(value);
  if (error) throw requestError(error, value, where);
}

/** The error for a request that no route takes: 405 when its path has other methods, else 404. */
function unmatched(ctx: RouterContext): GatewayError {
  const path = ctx.path.length > 200 ? `${ctx.path.slice(0, 197)}…` : ctx.path;
  const methods = [...new Set(ctx.matched?.flatMap((layer) => layer.methods))].sort().join(', ');
  if (methods === '') return new GatewayError('unknown_url', `Unknown request URL: ${ctx.method} ${path}`);
  return new GatewayError('method_not_allowed', `${path} does not take ${ctx.method}; it takes ${methods}.`, {
    headers: { allow: methods },
  });
}
