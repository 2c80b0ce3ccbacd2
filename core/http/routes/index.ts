import type { Route } from '../../contract/plugin.ts';
import { type AdminRouteDeps, adminRoutes } from './admin.ts';
import { docsRoutes } from './docs.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { type ModelRouteDeps, modelRoutes } from './models.ts';
import { rootRoute } from './root.ts';

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
