import type { Route } from '../../contract/plugin.ts';
import { docsRoutes } from './docs.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { type ModelRouteDeps, modelRoutes } from './models.ts';
import { rootRoute } from './root.ts';

export type CoreRouteDeps = HealthRouteDeps & Omit<ModelRouteDeps, 'created'>;

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ catalog, aliases, dialects, ...health }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, dialects, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(health),
    ...docsRoutes(),
    rootRoute(),
  ];
}
