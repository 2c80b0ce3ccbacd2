import type { RequestListener } from 'node:http';
import type { Generation } from '../calls/generation.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import type { Schema } from '../contract/json.ts';
import type { Plugin } from '../contract/plugin.ts';
import { CORE, runOwned } from '../plugins/attribution.ts';
import { createAuthenticator } from './authenticate.ts';
import type { BodyBudget } from './body-budget.ts';
import { createDialectRoutes } from './dialect-routes.ts';
import { createKoa } from './koa.ts';
import type { Lifecycle } from './lifecycle.ts';
import { createOpenApi } from './openapi.ts';
import { createRouter } from './router.ts';
import { coreRoutes } from './routes/index.ts';
import type { SocketRules } from './websockets.ts';

/** A generation as HTTP sees it. */
export interface Served {
  readonly listener: RequestListener;
  readonly sockets: SocketRules;
  readonly openApi: Schema;
}

/** What all generations that a server serves share. */
export interface ServeDeps {
  readonly lifecycle: Lifecycle;
  readonly budget: BodyBudget;
}

/** Makes the listener of a generation: middleware of plugins, then all routes. Throws for a route that cannot work. */
export function serveGeneration(generation: Generation, { lifecycle, budget }: ServeDeps): Served {
  const { registry, deps, catalog, settings, foundation, requests } = generation;
  const { server } = generation.loaded.config;
  const dialects = createDialectRoutes([...registry.dialects.values()], deps, server.sseKeepAliveMs);
  let openApiText = '';
  const own = coreRoutes({
    catalog,
    aliases: deps.aliases,
    phase: () => lifecycle.phase,
    storeHealth: () => foundation.store.health(),
    openApi: () => openApiText,
  });
  registry.refuseRoutesOf([...own, ...dialects.routes.map(({ value }) => value)]);
  const routes = [...dialects.routes, ...own.map((value) => ({ owner: CORE, value })), ...registry.routes.values()];
  const schemas = [...registry.schemas.values()].map(({ value }) => value);
  const openApi = createOpenApi(routes, schemas, settings.version);
  openApiText = JSON.stringify(openApi);
  const router = createRouter({
    ...{ routes, requests, lifecycle, budget },
    dialectOf: dialects.dialectOf,
    authenticate: deps.partsOf('chat').hooks.authenticate,
    credentials: knownCredentials(generation.loaded.plugins),
    maxBodyBytes: server.bodyLimitBytes,
  });
  const middleware = registry.middleware.map(
    ({ owner, value }): typeof value =>
      (ctx, next) =>
        // What comes after it is not its own: neither what that starts nor what it throws.
        runOwned(owner, () => value(ctx, () => runOwned(CORE, next))),
  );
  const probes = new Set(routes.flatMap(({ value }) => (value.isProbe ? [value.path] : [])));
  const koa = createKoa([...middleware, router], { ...server, lifecycle, log: foundation.log, probes });
  return { listener: koa.callback(), sockets: socketRules(generation, dialects.dialects), openApi };
}

/** Which paths take websockets, and from whom: whoever may post there. */
function socketRules({ loaded, deps }: Generation, dialects: readonly DialectDefinition[]): SocketRules {
  const { cors, trustProxy } = loaded.config.server;
  const authenticate = createAuthenticator(
    deps.partsOf('chat').hooks.authenticate,
    { auth: ['key'] },
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
function knownCredentials(plugins: readonly Plugin[]): ReadonlySet<'key' | 'token'> {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return new Set(auth.flatMap(({ credentials = ['key', 'token'] as const }) => credentials));
}
