import type { Route } from '../../contract/plugin.ts';
import { disabledRoutes } from './disabled.ts';
import { docsRoutes } from './docs.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { type ModelRouteDeps, modelRoutes } from './models.ts';

export interface CoreRouteDeps extends HealthRouteDeps, Omit<ModelRouteDeps, 'created'> {
  /** Whether a plugin registered this route, as `METHOD /path`. */
  isTaken(key: string): boolean;
}

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ catalog, aliases, isTaken, ...health }: CoreRouteDeps): readonly Route[] {
  return [
    ...modelRoutes({ catalog, aliases, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(health),
    ...docsRoutes(),
    ...disabledRoutes(isTaken),
  ];
}
