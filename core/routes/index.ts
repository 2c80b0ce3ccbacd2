import { completeChat, streamChat } from '../pipeline/chat.ts';
import { embed } from '../pipeline/embed.ts';
import type { Route } from '../plugin.ts';
import type { Runtime } from '../runtime.ts';
import { chatRoutes } from './chat.ts';
import { docsRoutes } from './docs.ts';
import { embeddingRoutes } from './embeddings.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { modelRoutes } from './models.ts';

export interface CoreRouteDeps extends HealthRouteDeps, Pick<Runtime, 'deps' | 'catalog' | 'aliases'> {
  readonly keepAliveMs: number;
}

/** The routes that a gateway has without any plugin. */
export function coreRoutes({ deps, catalog, aliases, keepAliveMs, ...health }: CoreRouteDeps): readonly Route[] {
  const models = { catalog, aliases };
  return [
    ...chatRoutes({
      ...models,
      keepAliveMs,
      complete: (ask, init) => completeChat(deps, ask, init),
      stream: (ask, init) => streamChat(deps, ask, init),
    }),
    ...embeddingRoutes({ ...models, embed: (ask, init) => embed(deps, ask, init) }),
    ...modelRoutes({ ...models, created: Math.floor(Date.now() / 1000) }),
    ...healthRoutes(health),
    ...docsRoutes(),
  ] as readonly Route[];
}
