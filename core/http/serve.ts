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
import { CORE, runAs, runningPlugin, runOwned } from '../plugins/attribution.ts';
import { describeStore } from '../plugins/gather.ts';
import { createInstanceStore } from '../plugins/instance-store.ts';
import type { Owned } from '../plugins/registry.ts';
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
  /** Where programs on this machine reach what listens; undefined before it does. */
  readonly url?: () => string | undefined;
  /** Runs at the end of each response. */
  readonly onClosed?: () => void;
}

/** Makes the listener of a generation: middleware of plugins, then all routes. Throws for a route that cannot work. */
export function serveGeneration(
  generation: Generation,
  { lifecycle, memory, inner, countAdmin, url, onClosed }: ServeDeps,
): Served {
  const { registry, deps, catalog, settings, foundation, requests } = generation;
  const { server } = generation.loaded.config;
  const owned = [...registry.dialects.values()];
  const spoken = owned.map(({ value }) => value);
  const dialects = createDialectRoutes(owned, deps, server.sseKeepAliveMs, requests);
  generation.services.draft = dialects.draft;
  let [openApi, openApiText]: [Schema?, string?] = [];
  const describe = (): Schema =>
    (openApi ??= createOpenApi(routes, schemas, { ...settings, url: url?.() ?? settings.url }, credentials));
  const own = coreRoutes({
    ...{ catalog, aliases: deps.aliases, dialects: owned, planOf: deps.planOf, basePath: settings.basePath },
    ...{ phase: () => lifecycle.phase, reloadProblem: generation.gateway.reloadProblem },
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
    ...{ authenticate: deps.partsOf('chat').hooks.authenticate, refuseBlocked: generation.refuseBlocked },
    ...ownTokens(spoken, deps.partsOf('chat').offers),
    ...{ credentials, isCredential, failures: createFailedCredentials(server.failedCredentials, foundation.log) },
  };
  const router = createRouter({
    ...{ routes, requests, lifecycle, memory, countAdmin, paths, tags: settings.tags },
    refusalWatchers: registry.refusalWatchers,
    ...{ dialectOf: dialects.dialectOf, arrive: deps.partsOf('chat').hooks.arrive },
    ...authentication,
    maxBodyBytes: server.bodyLimitBytes,
    respondOnce: createRespondOnce(generation, inner),
  });
  const others = createOthersCode(generation, spoken);
  const koa = createKoa([...others.middleware, router], {
    ...{ ...server, lifecycle, log: foundation.log, prefixes, paths, inner, onClosed },
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

/** Tokens of a caller's own subscription: those that may not come beside a key, and those that go on to their vendor. */
function ownTokens(spoken: readonly DialectDefinition[], offers: ReadonlyMap<string, Provider>) {
  const takesToken = (text: string): boolean =>
    [...offers.values()].some(({ passThroughAuth }) => passThroughAuth?.isToken(text) === true);
  const isSubscription = (text: string): boolean =>
    spoken.some((dialect) => dialect.isSubscription?.(text) === true) || takesToken(text);
  return { isSubscription, takesToken };
}

/** Where clients call and list models, besides the paths of client formats. */
const MODELS = /^\/(?:v1\/|api\/core\/:)/;

/** The paths of all routes; those that clients call models at may be written in more than one way. */
function pathsOf(
  routes: readonly Owned<Route>[],
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

/** What is known of paths before any middleware: which are for monitors, and what every error at one ends with. */
function notesOf(routes: readonly Owned<Route>[]) {
  const notes = routes.flatMap(({ value: { path, errorNote } }) => (errorNote ? [{ path, errorNote }] : []));
  return {
    probes: new Set(routes.flatMap(({ value }) => (value.isProbe ? [value.path] : []))),
    errorNotes: new Map(notes.map(({ path, errorNote }) => [path.toLowerCase(), errorNote])),
  };
}

/** Runs code of plugins that do not come with the package on requests whose credentials it does not see. */
interface OthersCode {
  /** The middleware of all plugins. */
  readonly middleware: readonly Koa.Middleware[];
  ownUpgrade(found: Owned<UpgradeHandler> | undefined): UpgradeHandler | undefined;
}

/** The routes of core that no plugin's middleware is asked about: a monitor learns whether the gateway works, not whether a plugin does. */
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
        // What comes after it is not its own: neither what that starts nor what it throws.
        return runOwned(CORE, next);
      };
      return runOwned(owner, () => value(ctx, goOn));
    };
  });
  return {
    middleware: others.size > 0 ? [hide, ...own] : own,
    ownUpgrade: (found) =>
      found &&
      ((upgrade) => {
        if (!others.has(found.owner)) return runOwned(found.owner, () => found.value(upgrade));
        hideCredentials(upgrade.request, places, isOthers);
        const recheck = () => runAs(CORE, upgrade.recheck);
        return runOwned(found.owner, () => found.value({ ...upgrade, recheck }));
      }),
  };
}

/** The headers of a request as plugins of others see them. */
interface SeenHeaders {
  /** What their code changed of them counts for all that comes after it. */
  keepChanges(): void;
}

/** Gives whoever runs the headers that they may see. They are chosen at each look: code of both kinds runs on one request in turns. */
function hideCredentials(request: IncomingMessage, places: readonly string[], isOthers: () => boolean): SeenHeaders {
  const { headers, rawHeaders } = request;
  let shown: IncomingHttpHeaders | undefined;
  const show = (): IncomingHttpHeaders => (shown ??= withoutCredentials(headers, places));
  const isShown = (name: string): boolean => withoutCredentials({ [name]: '' }, places)[name] !== undefined;
  // As many as there are, with empty values: the third view of them is made of these, by whoever looks first.
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

/** What responds to requests with an idempotency key; undefined where they are switched off. */
function createRespondOnce(
  { loaded, registry, deps, foundation: { store, log } }: Generation,
  inner: InnerRequests,
): RespondOnce | undefined {
  const { keepForMs, maxBytes } = loaded.config.server.idempotency;
  if (keepForMs === 0) return undefined;
  const own = createInstanceStore(() => store, registry, { group: CORE, name: CORE });
  return createIdempotency({ deps, inner, kept: own.kept(), counters: own.counters, keepForMs, maxBytes, log });
}

/** Which paths take websockets: from callers who may send a POST there. */
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
    ...{ origins: cors.origins, trustProxy },
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

/** A generation that is ready beside the running one: it takes over, or is closed again. One of the two, once. */
export interface PreparedGeneration {
  /** From now on new requests go to it. */
  commit(): void;
  /** Closes it; nothing has changed. */
  abandon(): Promise<void>;
}

/** How many former generations may still have calls: each holds all that its plugins set up. */
const MAX_FORMER = 8;

interface Serving {
  readonly generation: Generation;
  readonly served: Served;
  /** Requests whose response is not over. */
  requests: number;
}

/** The generation that new requests go to; the ones before it close when their last request has ended. */
export class LiveGeneration {
  #current: Serving | undefined;
  #isClosed = false;
  readonly #former = new Set<Serving>();
  readonly #closing = new Set<Promise<void>>();

  /** For the server: it never changes, what it leads to does. */
  readonly listener: RequestListener = (request, response) => {
    const current = this.#current;
    if (!current) return void response.destroy();
    current.requests += 1;
    current.served.listener(request, response);
  };

  get generation(): Generation {
    return this.#serving().generation;
  }

  /** The rules of the generation that serves now. */
  get upgrades(): UpgradeRules {
    return this.#serving().served.upgrades;
  }

  /** Describes the generation that serves now, also when it no longer does. */
  get openApi(): Served['openApi'] {
    return this.#serving().served.openApi;
  }

  /** Makes a generation ready. One that does not become ready is closed and changes nothing. */
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
    // The gateway has drained meanwhile.
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
