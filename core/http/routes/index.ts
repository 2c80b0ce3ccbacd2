import type { Schema } from '../../contract/json.ts';
import type { Route } from '../../contract/plugin.ts';
import { type AdminRouteDeps, adminRoutes } from './admin.ts';
import { docsRoutes } from './docs.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { type ModelRouteDeps, modelRoutes } from './models.ts';

export type CoreRouteDeps = HealthRouteDeps & AdminRouteDeps & Omit<ModelRouteDeps, 'created'>;

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ catalog, aliases, dialects, ...deps }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, dialects, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(deps),
    ...adminRoutes(deps),
    ...docsRoutes(),
    rootRoute(),
  ];
}

const ROOT: Schema = {
  type: 'object',
  required: ['name', 'docs'],
  properties: { name: { type: 'string' }, docs: { type: 'string' } },
};

/** `GET` and `HEAD /`: clients look there for a server before their first call. Tells no version; gives way to a plugin's page. */
function rootRoute(): Route {
  return {
    method: 'GET',
    path: '/',
    summary: 'That a gateway is here, and where its documentation is',
    auth: 'none',
    isFallback: true,
    responses: { 200: { description: 'Yes.', schema: ROOT } },
    handler(ctx) {
      ctx.body = { name: 'tollgate', docs: '/docs' };
    },
  };
}
