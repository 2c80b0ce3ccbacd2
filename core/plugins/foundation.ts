import { listSecrets } from '../config/config-secrets.ts';
import type { StoreWatcher } from '../contract/figures.ts';
import type { Log } from '../contract/log.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { Store } from '../contract/store.ts';
import { createUpstream, type Upstream } from '../upstream/upstream.ts';
import type { OpenStore } from './api-deps.ts';
import { createLocalGatherer, type Gatherer } from './gather.ts';
import { Kept } from './kept.ts';
import type { LoadedConfig } from './load-config.ts';
import { createPluginApi } from './plugin-api.ts';
import { createRedactor } from './redact-text.ts';
import { PluginError, Registry } from './registry.ts';
import { runClosers, setUpPlugins } from './set-up.ts';

/** The watchers of the store's operations: those of the generation that serves. */
export interface StoreWatch {
  watchers: readonly StoreWatcher[];
}

/** What outlives a change of the configuration: the store, connections to providers, and what plugins keep. */
export interface Foundation {
  readonly store: Store;
  readonly storeWatch: StoreWatch;
  readonly upstream: Upstream;
  readonly gatherer: Gatherer;
  readonly kept: Kept;
  readonly log: Log;
  /** Closes connections and the store. */
  close(): Promise<void>;
}

/** Opens the store of a configuration, and what else all generations share. */
export async function openFoundation(
  loaded: LoadedConfig,
  log: Log,
  gatherer: Gatherer = createLocalGatherer(),
): Promise<Foundation> {
  const registry = new Registry();
  const storeWatch: StoreWatch = { watchers: [] };
  const store = await openStore(loaded, registry, log, gatherer, (operation, ms, isOk) => {
    for (const watcher of storeWatch.watchers)
      try {
        watcher(operation, ms, isOk);
      } catch (error) {
        // Logged like any uncaught error of a plugin; the operation itself is done.
        void Promise.reject(error);
      }
  });
  const upstream = createUpstream({ log });
  return {
    store,
    storeWatch,
    upstream,
    gatherer,
    kept: new Kept(),
    log,
    async close() {
      await upstream.close();
      const closers = [{ owner: loaded.config.store.name, value: () => store.close() }, ...registry.closers];
      await runClosers(closers, (error) => log.error({ err: error }, 'the store plugin failed to close'));
    },
  };
}

interface StoreOpener {
  readonly open: OpenStore;
  readonly probe: (() => Promise<string>) | undefined;
}

async function openStore(
  loaded: LoadedConfig,
  registry: Registry,
  log: Log,
  gatherer: Gatherer,
  observe: StoreWatcher,
): Promise<Store> {
  return await (await findOpener(loaded, registry, log, gatherer)).open(observe);
}

/**
 * What the configured store says of itself without being opened; undefined where its plugin cannot tell. Rejects when it cannot be
 * reached or used.
 */
export async function probeStore(loaded: LoadedConfig, log: Log): Promise<string | undefined> {
  const registry = new Registry();
  const { probe } = await findOpener(loaded, registry, log, createLocalGatherer());
  try {
    return await probe?.();
  } finally {
    await runClosers(registry.closers, (error) => log.error({ err: error }, 'the store plugin failed to close'));
  }
}

/** Sets the store plugin up, which says how to open the store. */
async function findOpener(
  { config, settings, plugins: [plugin] }: LoadedConfig,
  registry: Registry,
  log: Log,
  gatherer: Gatherer,
): Promise<StoreOpener> {
  const { name } = config.store;
  const known: Plugin | undefined = plugin;
  if (!known) throw new PluginError(name, 'was not imported');
  let opener: StoreOpener | undefined;
  const api = createPluginApi(
    {
      registry,
      settings,
      aliases: {},
      log,
      gatherer,
      readers: new Map(),
      store: () => undefined,
      services: () => undefined,
      openStore(owner, open, probe) {
        if (opener) throw new PluginError(owner, 'plugin_conflict: a store is registered already');
        opener = { open, probe };
      },
      redact: createRedactor(() => listSecrets(config)),
      keptUser: () => ({ keep: (_name, make) => make() }),
    },
    { ...config.store, plugin: known },
  );
  await setUpPlugins([{ instance: name, plugin: known, api, config: config.store.config }]);
  if (!opener) throw new PluginError(name, 'is a store plugin and registers no store');
  return opener;
}
