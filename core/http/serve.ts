import type { RequestListener } from 'node:http';
import type { Generation } from '../calls/generation.ts';
import type { Schema } from '../contract/json.ts';
import type { Plugin } from '../contract/plugin.ts';
import { CORE, runOwned } from '../plugins/attribution.ts';
import type { BodyBudget } from './body-budget.ts';
import { createDialectRoutes } from './dialect-routes.ts';
import { createKoa } from './koa.ts';
import type { Lifecycle } from './lifecycle.ts';
import { createOpenApi } from './openapi.ts';
import { createRouter } from './router.ts';
import { coreRoutes } from './routes/index.ts';

/** A generation as HTTP sees it. */
export interface Served {
  readonly listener: RequestListener;
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
  return { listener: koa.callback(), openApi };
}

/** The kinds of credentials that some auth plugin knows. */
function knownCredentials(plugins: readonly Plugin[]): ReadonlySet<'key' | 'token'> {
  const auth = plugins.filter(({ kind }) => kind === 'auth');
  return new Set(auth.flatMap(({ credentials = ['key', 'token'] as const }) => credentials));
}
