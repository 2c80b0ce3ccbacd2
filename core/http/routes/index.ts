import { completeChat, streamChat } from '../../calls/chat.ts';
import { embed } from '../../calls/embed.ts';
import type { Runtime } from '../../calls/runtime.ts';
import { initOf } from '../../calls/services.ts';
import { speak } from '../../calls/speech.ts';
import { type Aliases, splitModel } from '../../calls/targets.ts';
import type { Route } from '../../contract/plugin.ts';
import { speechRoutes } from '../../speech/routes.ts';
import { chatRoutes } from './chat.ts';
import { disabledRoutes } from './disabled.ts';
import { docsRoutes } from './docs.ts';
import { embeddingRoutes } from './embeddings.ts';
import { type HealthRouteDeps, healthRoutes } from './health.ts';
import { modelRoutes } from './models.ts';

export interface CoreRouteDeps extends HealthRouteDeps, Pick<Runtime, 'deps' | 'catalog' | 'aliases' | 'voices'> {
  readonly keepAliveMs: number;
  /** Whether a plugin registered this route, as `METHOD /path`. */
  isTaken(key: string): boolean;
}

/** The routes that a gateway has without any plugin. */
export function coreRoutes({
  deps,
  catalog,
  aliases,
  keepAliveMs,
  voices,
  isTaken,
  ...health
}: CoreRouteDeps): readonly Route[] {
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
    ...disabledRoutes(isTaken),
    ...speechRoutes({
      vendors: deps.speech,
      speak: (vendor, request, context, requested) => speak(deps, vendor, request, initOf(context), requested),
      voices,
      alias: (name) => speechAlias(aliases, name),
    }),
  ] as readonly Route[];
}

/** What an alias means to speech: its first target's vendor and model. */
function speechAlias(aliases: Aliases, name: string): { readonly vendor: string; readonly model: string } | undefined {
  const [first] = aliases.get(name) ?? [];
  if (first === undefined) return undefined;
  const { provider, model } = splitModel(first);
  return { vendor: provider, model };
}
