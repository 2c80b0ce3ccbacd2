import type { Operation } from '../contract/call.ts';
import type { Voice } from '../contract/speech-provider.ts';
import type { Assembly } from '../plugins/assemble.ts';
import { compileHooks } from '../plugins/hook-runner.ts';
import type { GatewayServices } from '../plugins/plugin-api.ts';
import type { Owned } from '../plugins/registry.ts';
import { createSpeechCache } from '../speech/cache.ts';
import { createVoiceList } from '../speech/voice-list.ts';
import { createUpstream } from '../upstream/upstream.ts';
import { createCatalog, type ModelCatalog } from './model-catalog.ts';
import { Pending } from './pending.ts';
import type { PipelineDeps } from './run.ts';
import { createServices } from './services.ts';
import type { Aliases } from './targets.ts';

/** An assembly that can make model calls: hooks compiled, models known, the way out open. */
export interface Runtime {
  readonly deps: PipelineDeps;
  readonly catalog: ModelCatalog;
  readonly aliases: Aliases;
  readonly services: GatewayServices;
  /** The voices of a speech vendor, asked of the vendor where it has to be. */
  voices(vendor: string): Promise<readonly Voice[]>;
  /** Waits for calls that are being settled, then closes connections, plugins and the store. */
  close(): Promise<void>;
}

export function createRuntime(assembly: Assembly): Runtime {
  const { registry, log, loaded, store } = assembly;
  const bounds = loaded.config.speechCache;
  const providers = valuesOf(registry.providers);
  const catalog = createCatalog(providers);
  const aliases: Aliases = new Map(Object.entries(loaded.config.models));
  const upstream = createUpstream({ log });
  const onFinishError = (owner: string, error: unknown): void =>
    log.error({ plugin: owner, err: error }, 'a finish hook failed');
  const compile = (operation: Operation) => compileHooks(registry.hooks, operation, onFinishError);
  const deps: PipelineDeps = {
    upstream,
    catalog,
    hooks: { chat: compile('chat'), embeddings: compile('embeddings'), speech: compile('speech') },
    providers,
    speech: valuesOf(registry.speech),
    ...(bounds && { speechCache: createSpeechCache({ ...bounds, keyv: store.keyv('speech-cache') }) }),
    log,
    pending: new Pending(),
  };
  const services: GatewayServices = createServices(deps, catalog, aliases);
  const voices = createVoiceList(deps.speech, (vendor, request, signal) => upstream.send(vendor, request, { signal }));
  assembly.provide(services);
  const close = async (): Promise<void> => {
    await deps.pending.idle();
    await upstream.close();
    await assembly.close();
  };
  return { deps, catalog, aliases, services, voices, close };
}

function valuesOf<T>(owned: ReadonlyMap<string, Owned<T>>): ReadonlyMap<string, T> {
  return new Map([...owned].map(([name, { value }]) => [name, value]));
}
