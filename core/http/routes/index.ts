import type { Route } from '../../contract/plugin.ts';
import { docsRoutes } from './docs.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { type ModelRouteDeps, modelRoutes } from './models.ts';

export type CoreRouteDeps = HealthRouteDeps & Omit<ModelRouteDeps, 'created'>;

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ catalog, aliases, ...health }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(health),
    ...docsRoutes(),
  ];
}
