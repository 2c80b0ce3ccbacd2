import type { RequestListener } from 'node:http';
import type { Generation } from '../calls/generation.ts';
import type { CredentialKind } from '../contract/call.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import type { Schema } from '../contract/json.ts';
import type { Plugin, Route } from '../contract/plugin.ts';
import { CORE, runOwned } from '../plugins/attribution.ts';
import { createInstanceStore } from '../plugins/instance-store.ts';
import { isBuiltinOwner } from '../plugins/load-config.ts';
import type { Owned } from '../plugins/registry.ts';
import { findStrayOwner } from '../plugins/stray-owner.ts';
import type { CountAdmin } from './admin-rate.ts';
import { createAuthenticator, withoutBlocked } from './authenticate.ts';
import { readCredential, type UrlCredential } from './credentials.ts';
import { createDialectPrefixes } from './dialect-prefixes.ts';
import { createDialectRoutes } from './dialect-routes.ts';
import { createIdempotency, type RespondOnce } from './idempotency.ts';
import type { InnerRequests } from './inner-requests.ts';
import { createKeptResults, type KeptResult } from './kept-results.ts';
import { createKoa } from './koa.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { Memory } from './memory.ts';
import { createOpenApi } from './openapi.ts';
import { createRouter } from './router.ts';
import { coreRoutes } from './routes/index.ts';
import type { SocketRules } from './websockets.ts';

/** A generation as HTTP sees it. */
export interface Served {
  readonly listener: RequestListener;
  readonly sockets: SocketRules;
  /** Made when it is first asked for. */
  openApi(): Schema;
}

/** What all generations that a server serves share. */
export interface ServeDeps {
  readonly lifecycle: Lifecycle;
  readonly memory: Memory;
  readonly countAdmin: CountAdmin;
  readonly inner: InnerRequests;
}

/** Makes the listener of a generation: middleware of plugins, then all routes. Throws for a route that cannot work. */
export function serveGeneration(generation: Generation, { lifecycle, memory, inner, countAdmin }: ServeDeps): Served {
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
  const middleware = registry.middleware.map(({ owner, value }): typeof value =>
    isBuiltinOwner(owner, generation.loaded)
      ? value
      : (ctx, next) =>
          // What comes after it is not its own: neither what that starts nor what it throws.
          runOwned(owner, () => value(ctx, () => runOwned(CORE, next))),
  );
  const probes = new Set(routes.flatMap(({ value }) => (value.isProbe ? [value.path] : [])));
  const errorNotes = new Map(
    routes.flatMap(({ value }) => (value.errorNote ? [[value.path.toLowerCase(), value.errorNote] as const] : [])),
  );
  const koa = createKoa([...middleware, router], {
    ...{ ...server, lifecycle, log: foundation.log, probes, errorNotes, prefixes, inner },
    isUrlCredential: urlCredentials(routes, isCredential),
    findOwner: (error) => findStrayOwner(error, generation.loaded),
  });
  return { listener: koa.callback(), sockets: socketRules(generation, spoken, isCredential), openApi: describe };
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
function socketRules(
  { loaded, deps, refuseBlocked }: Generation,
  dialects: readonly DialectDefinition[],
  isCredential: (text: string) => boolean,
): SocketRules {
  const { cors, trustProxy } = loaded.config.server;
  const authenticate = createAuthenticator(
    withoutBlocked(deps.partsOf('chat').hooks.authenticate, refuseBlocked),
    { auth: ['key'] },
    ({ req }) => readCredential(req, { isCredential }),
    knownCredentials(loaded.plugins),
  );
  return {
    ...{ origins: cors.origins, trustProxy },
    find(path) {
      const dialect = dialects.find(
        ({ routes, socket }) => socket?.path === path || routes.some((row) => row.path === path),
      );
      return dialect && { dialect, socket: dialect.socket?.path === path ? dialect.socket : undefined };
    },
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
