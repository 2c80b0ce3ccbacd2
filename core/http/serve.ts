import type { IncomingHttpHeaders, IncomingMessage, RequestListener } from 'node:http';
import type Koa from 'koa';
import { isBuiltinOwner } from '../../config/load-config.ts';
import type { CredentialKind } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Schema } from '../../contract/json.ts';
import type { Plugin, Route, UpgradeHandler } from '../../contract/plugin.ts';
import type { Provider } from '../../contract/provider.ts';
import { createOpenApi } from '../../openapi/document.ts';
import type { Generation } from '../calls/generation.ts';
import { CORE, runAs, runAttributed, runningPlugin } from '../plugins/attribution.ts';
import { describeStore } from '../plugins/gather.ts';
import { createInstanceStore } from '../plugins/instance-store.ts';
import { redactText } from '../plugins/plugin-secrets.ts';
import type { Attributed } from '../plugins/registry.ts';
import { findStrayOwner } from '../plugins/stray-owner.ts';
import {
  type Authentication,
  createAuthenticator,
  createDialectPrefixes,
  type DialectPrefixes,
  type UrlCredential,
  withoutCredentials,
} from './authenticate.ts';
import { createDialectRoutes } from './dialect-routes.ts';
import { createFailedCredentials } from './failed-credentials.ts';
import { createIdempotency, type RespondOnce } from './idempotency.ts';
import type { InnerRequests } from './inner-requests.ts';
import { createKoa, createRouter } from './koa.ts';
import { type Lifecycle, normalisePath } from './lifecycle.ts';
import type { Memory } from './memory.ts';
import type { CountAdmin } from './operator-rights.ts';
import { createPaths, type Paths } from './paths.ts';
import { coreRoutes } from './routes.ts';
import type { UpgradeRules } from './upgrades.ts';

/** Generation with its HTTP routes. */
export interface Served {
  readonly listener: RequestListener;
  readonly upgrades: UpgradeRules;
  /** Generated on first use. */
  openApi(): Schema;
}

/** Shared dependencies of all generations of a server. */
export interface ServeDeps {
  readonly lifecycle: Lifecycle;
  readonly memory: Memory;
  readonly countAdmin: CountAdmin;
  readonly inner: InnerRequests;
  /** Returns the local URL of the listener; undefined before it listens. */
  readonly url?: () => string | undefined;
  /** Runs at the end of each response. */
  readonly onClosed?: () => void;
}

/** Creates the listener of a generation: middleware of plugins, then all routes. Throws for an invalid route. */
export function serveGeneration(
  generation: Generation,
  { lifecycle, memory, inner, countAdmin, url, onClosed }: ServeDeps,
): Served {
  const { registry, deps, catalog, settings, foundation, requests } = generation;
  const { server } = generation.loaded.config;
  const owned = [...registry.dialects.values()];
  const spoken = owned.map(({ value }) => value);
  const dialects = createDialectRoutes(owned, deps, requests);
  generation.services.draft = dialects.draft;
  let [openApi, openApiText]: [Schema?, string?] = [];
  const describe = (): Schema =>
    (openApi ??= createOpenApi(routes, schemas, { ...settings, url: url?.() ?? settings.url }, credentials));
  const own = coreRoutes({
    catalog,
    aliases: deps.aliases,
    dialects: owned,
    planOf: deps.planOf,
    basePath: settings.basePath,
    phase: () => lifecycle.phase,
    reloadProblem: generation.gateway.reloadProblem,
    storeHealth: () => describeStore(foundation.store),
    plugins: () => generation.gateway.plugins(),
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
  const paths = pathsOf(routes, dialects, prefixes, settings.basePath);
  const isCredential = credentialShape(generation.loaded.plugins);
  const schemas = [...registry.schemas.values()].map(({ value }) => value);
  const credentials = knownCredentials(generation.loaded.plugins);
  const authentication = {
    authenticate: deps.partsOf('chat').hooks.authenticate,
    refuseBlocked: generation.refuseBlocked,
    ...ownTokens(spoken, deps.partsOf('chat').offers),
    credentials,
    isCredential,
    failures: createFailedCredentials(server.failedCredentials, foundation.log),
  };
  const router = createRouter({
    routes,
    requests,
    lifecycle,
    memory,
    countAdmin,
    paths,
    tags: settings.tags,
    endUserHeader: settings.endUsers.header,
    refusalWatchers: registry.refusalWatchers,
    dialectOf: dialects.dialectOf,
    arrive: deps.partsOf('chat').hooks.arrive,
    ...authentication,
    maxBodyBytes: server.bodyLimitBytes,
    respondOnce: createRespondOnce(generation, inner),
  });
  const others = createOthersCode(generation, spoken);
  const koa = createKoa([...others.middleware, router], {
    ...server,
    lifecycle,
    log: foundation.log,
    prefixes,
    paths,
    inner,
    onClosed,
    ...notesOf(routes),
    isUrlCredential: urlCredentials(routes, isCredential),
    findOwner: (error) => findStrayOwner(error, generation.loaded),
  });
  return {
    listener: koa.callback(),
    upgrades: upgradeRules(generation, others, spoken, authentication, { paths, prefixes }),
    openApi: describe,
  };
}

/**
 * Returns the rules for tokens of a caller's own subscription: those rejected in addition to a key, and those forwarded to their
 * vendor.
 */
function ownTokens(spoken: readonly DialectDefinition[], offers: ReadonlyMap<string, Provider>) {
  const takesToken = (text: string): boolean =>
    [...offers.values()].some(({ passThroughAuth }) => passThroughAuth?.isToken(text) === true);
  const isSubscription = (text: string): boolean =>
    spoken.some((dialect) => dialect.isSubscription?.(text) === true) || takesToken(text);
  return { isSubscription, takesToken };
}

/** Paths for calls and lists of models, other than those of client formats. */
const MODELS = /^\/(?:v1\/|api\/core\/:)/;

/** Returns the paths of all routes; model paths have several spellings. */
function pathsOf(
  routes: readonly Attributed<Route>[],
  { dialectOf }: ReturnType<typeof createDialectRoutes>,
  prefixes: ReturnType<typeof createDialectPrefixes>,
  basePath: string,
): ReturnType<typeof createPaths> {
  const isSpoken = (route: Route): boolean =>
    MODELS.test(route.path) || dialectOf(route) !== undefined || prefixes.rulesAt(route.path).dialect !== undefined;
  return createPaths(
    routes.map(({ value }) => value),
    (route) => route.auth !== 'none' && route.role !== 'admin' && isSpoken(route),
    basePath,
  );
}

/** Returns the facts of paths that apply before any middleware: monitoring paths, and error notes. */
function notesOf(routes: readonly Attributed<Route>[]) {
  const notes = routes.flatMap(({ owner, value: { path, errorNote } }) =>
    errorNote ? [{ path, errorNote: redactNote(owner, errorNote) }] : [],
  );
  return {
    probes: new Set(routes.flatMap(({ value }) => (value.isProbe ? [value.path] : []))),
    errorNotes: new Map(notes.map(({ path, errorNote }) => [path.toLowerCase(), errorNote])),
  };
}

/** Redacts secrets in the notes of a plugin's route. */
function redactNote(owner: string, errorNote: NonNullable<Route['errorNote']>): typeof errorNote {
  return (...args) => {
    const note = errorNote(...args);
    return note === undefined ? undefined : redactText(owner, note);
  };
}

/** Runs code of third-party plugins on requests with hidden credentials. */
interface OthersCode {
  /** Middleware of all plugins. */
  readonly middleware: readonly Koa.Middleware[];
  ownUpgrade(found: Attributed<UpgradeHandler> | undefined): UpgradeHandler | undefined;
}

/** Core routes that skip all plugin middleware: a monitor checks the gateway, not a plugin. */
const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz']);

function createOthersCode({ registry, loaded }: Generation, dialects: readonly DialectDefinition[]): OthersCode {
  const others = new Set(
    loaded.config.instances.map(({ name }) => name).filter((name) => !isBuiltinOwner(name, loaded)),
  );
  const places = dialects.flatMap(({ credentials }) => credentials?.headers ?? []);
  const isOthers = (): boolean => others.has(runningPlugin() ?? '');
  const seen = new WeakMap<IncomingMessage, SeenHeaders>();
  const hide: Koa.Middleware = (ctx, next) => {
    seen.set(ctx.req, hideCredentials(ctx.req, places, isOthers));
    return next();
  };
  const own = registry.middleware.map(({ owner, value }): Koa.Middleware => {
    if (!others.has(owner)) return value;
    return (ctx, next) => {
      if (PROBES.has(ctx.path)) return next();
      const goOn = (): Promise<unknown> => {
        seen.get(ctx.req)?.keepChanges();
        // The following code is not attributed to this plugin: neither its work nor its errors.
        return runAttributed(CORE, next);
      };
      return runAttributed(owner, () => value(ctx, goOn));
    };
  });
  return {
    middleware: others.size > 0 ? [hide, ...own] : own,
    ownUpgrade: (found) =>
      found &&
      ((upgrade) => {
        if (!others.has(found.owner)) return runAttributed(found.owner, () => found.value(upgrade));
        hideCredentials(upgrade.request, places, isOthers);
        const recheck = () => runAs(CORE, upgrade.recheck);
        return runAttributed(found.owner, () => found.value({ ...upgrade, recheck }));
      }),
  };
}

/** Headers of a request as third-party plugins see them. */
interface SeenHeaders {
  /** Applies their changes for all following code. */
  keepChanges(): void;
}

/**
 * Shows each reader the headers it may see. The choice is made at each access, because both kinds of code alternate on one request.
 */
function hideCredentials(request: IncomingMessage, places: readonly string[], isOthers: () => boolean): SeenHeaders {
  const { headers, rawHeaders } = request;
  let shown: IncomingHttpHeaders | undefined;
  const show = (): IncomingHttpHeaders => (shown ??= withoutCredentials(headers, places));
  const isShown = (name: string): boolean => withoutCredentials({ [name]: '' }, places)[name] !== undefined;
  // Same length, with empty values: the first reader derives the third view of the headers from it.
  const shownRaw = (): string[] =>
    rawHeaders.map((text, at) => (at % 2 === 0 || isShown(rawHeaders[at - 1]?.toLowerCase() ?? '') ? text : ''));
  Object.defineProperties(request, {
    headers: { configurable: true, enumerable: true, get: () => (isOthers() ? show() : headers) },
    rawHeaders: { configurable: true, enumerable: true, get: () => (isOthers() ? shownRaw() : rawHeaders) },
  });
  return {
    keepChanges() {
      if (!shown) return;
      for (const name of Object.keys(headers)) if (isShown(name) && !(name in shown)) delete headers[name];
      Object.assign(headers, shown);
    },
  };
}

/** Creates the handler for idempotency keys; undefined if disabled. */
function createRespondOnce(
  { loaded, registry, deps, foundation: { store, log } }: Generation,
  inner: InnerRequests,
): RespondOnce | undefined {
  const { keepForMs, maxBytes } = loaded.config.server.idempotency;
  if (keepForMs === 0) return undefined;
  const own = createInstanceStore(() => store, registry, { group: CORE, name: CORE });
  return createIdempotency({ deps, inner, stored: own.stored(), counters: own.counters, keepForMs, maxBytes, log });
}

/** Returns the rules of websocket paths: callers who may POST there may open a websocket. */
function upgradeRules(
  { loaded, registry }: Generation,
  { ownUpgrade }: OthersCode,
  dialects: readonly DialectDefinition[],
  authentication: Authentication,
  { paths, prefixes }: { readonly paths: Paths; readonly prefixes: DialectPrefixes },
): UpgradeRules {
  const { cors, trustProxy } = loaded.config.server;
  const authenticate = createAuthenticator(authentication, { auth: ['key'] });
  return {
    origins: cors.origins,
    trustProxy,
    find(sent) {
      const plain = normalisePath(sent);
      const meant = (paths.isKnown(plain) ? undefined : prefixes.rulesAt(plain).meant?.path) ?? plain;
      const path = paths.isForModels(meant) ? meant : sent;
      return {
        path,
        dialect: dialects.find(({ routes }) => routes.some((row) => row.path === path)),
        handler: ownUpgrade(registry.upgrades.get(path)),
        keyProtocol: registry.keyProtocols.get(path),
      };
    },
    async authenticate(req, ip) {
      const { headers, method = 'GET', url = '/' } = req;
      const path = url.split('?', 1)[0] ?? '/';
      const { places } = prefixes.rulesAt(path);
      const principal = await authenticate?.({ req, method, headers, path, state: { ip, places } }, NO_BODY);
      if (!principal) throw new TypeError('a route with credentials has an authenticator');
      return principal;
    },
  };
}

/** An upgrade has no body. */
const NO_BODY = Object.freeze({ bytes: async () => new Uint8Array() });

/** Returns the kinds of credentials that the auth plugins support. */
function knownCredentials(plugins: readonly Plugin[]): ReadonlySet<CredentialKind> {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return new Set(auth.flatMap(({ credentials = ['key', 'token'] as const }) => credentials));
}

/** Returns a check whether a text has the form of an auth plugin's credential. If one of them has no check, all texts pass. */
function credentialShape(plugins: readonly Plugin[]): (text: string) => boolean {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return (text) =>
    auth.some((plugin) => {
      try {
        return plugin.isCredential?.(text) ?? true;
      } catch {
        // A text that makes a plugin fail may be one of its credentials.
        return true;
      }
    });
}

/** Returns whether a URL parameter is a credential: it has the form of one, or no route has a parameter with this name. */
function urlCredentials(
  routes: readonly Attributed<Route>[],
  isCredential: (text: string) => boolean,
): (credential: UrlCredential) => boolean {
  const own = new Set(routes.flatMap(({ value: { query } }) => Object.keys(query?.['properties'] ?? {})));
  return ({ name, value }) => !own.has(name) || isCredential(value);
}

/** Returns whether a plugin's route replaces a fallback route of core. */
function isReplaced({ isFallback, method, path }: Route, { routes }: Generation['registry']): boolean {
  return isFallback === true && routes.has(`${method} ${path}`);
}

/** Prepared generation, concurrent with the running one. Call exactly one of the methods, once. */
export interface PreparedGeneration {
  /** Routes new requests to it. */
  commit(): void;
  /** Closes it without any change. */
  abandon(): Promise<void>;
}

/** Maximum number of former generations with running calls: each retains everything its plugins set up. */
const MAX_FORMER = 8;

interface Serving {
  readonly generation: Generation;
  readonly served: Served;
  /** Requests with a running response. */
  requests: number;
}

/** Generation that receives new requests; former ones close after their last request. */
export class LiveGeneration {
  #current: Serving | undefined;
  #isClosed = false;
  readonly #former = new Set<Serving>();
  readonly #closing = new Set<Promise<void>>();

  /** Constant listener for the server, which dispatches to the current generation. */
  readonly listener: RequestListener = (request, response) => {
    const current = this.#current;
    if (!current) return void response.destroy();
    current.requests += 1;
    current.served.listener(request, response);
  };

  get generation(): Generation {
    return this.#serving().generation;
  }

  /** Upgrade rules of the current generation. */
  get upgrades(): UpgradeRules {
    return this.#serving().served.upgrades;
  }

  /** Returns the OpenAPI document of the current generation; the function remains valid after its replacement. */
  get openApi(): Served['openApi'] {
    return this.#serving().served.openApi;
  }

  /** Prepares a generation. A failed one is closed without any change. */
  async prepare(generation: Generation, deps: ServeDeps): Promise<PreparedGeneration> {
    try {
      if (this.#former.size >= MAX_FORMER)
        throw new GatewayError(
          'overloaded',
          `Calls of ${this.#former.size} previous configurations are still running. Reload again when some of them have ended.`,
        );
      const onClosed = (): void => {
        next.requests -= 1;
        if (next.requests === 0 && next !== this.#current) this.#close(next);
      };
      const next: Serving = { generation, served: serveGeneration(generation, { ...deps, onClosed }), requests: 0 };
      await generation.ready();
      return {
        commit: () => this.#swap(next),
        abandon: () => generation.close(),
      };
    } catch (error) {
      await generation.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const current = this.#current;
    this.#current = undefined;
    if (current) this.#close(current);
    await Promise.all(this.#closing);
  }

  #serving(): Serving {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current;
  }

  #swap(next: Serving): void {
    // The gateway drained in the meantime.
    if (this.#isClosed) {
      this.#close(next);
      return;
    }
    const before = this.#current;
    this.#current = next;
    next.generation.takeOver();
    if (!before) return;
    if (before.requests > 0) this.#former.add(before);
    else this.#close(before);
  }

  #close(serving: Serving): void {
    this.#former.delete(serving);
    const closing = serving.generation.close();
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}
