import type { Log } from '../contract/log.ts';
import type { GatewaySettings } from '../contract/plugin.ts';
import type { Store } from '../contract/store.ts';
import { ALONE, type Gatherer } from './gather.ts';
import type { LoadedConfig } from './load-config.ts';
import { createPluginApi, type GatewayServices } from './plugin-api.ts';
import { PluginFault, Registry } from './registry.ts';
import { type Installable, runClosers, setupPlugins } from './set-up.ts';

/** A configuration brought to life: the store open, every plugin set up, registration ended. */
export interface Assembly {
  readonly loaded: LoadedConfig;
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly store: Store;
  readonly log: Log;
  /** Hands plugins the pipeline; until then they may register but not call models. */
  provide(services: GatewayServices): void;
  /** Runs the plugins' closers in reverse, then closes the store. */
  close(): Promise<void>;
}

/** Opens the store, then sets the plugins up one by one in the order of the configuration. */
export async function assemble(loaded: LoadedConfig, log: Log, gatherer: Gatherer = ALONE): Promise<Assembly> {
  const { config, settings } = loaded;
  const [storePlugin, ...plugins] = loaded.plugins;
  const { name: storeName, config: storeConfig } = config.store;
  const registry = new Registry();
  let store: Store | undefined;
  let services: GatewayServices | undefined;
  let opener: (() => Promise<Store>) | undefined;
  const openStore = (owner: string, open: () => Promise<Store>): void => {
    if (opener) throw new PluginFault(owner, 'plugin_conflict: a store is registered already');
    opener = open;
  };
  const deps = {
    gatherer,
    registry,
    settings,
    log,
    store: () => store,
    services: () => services,
    openStore,
  };

  if (!storePlugin) throw new PluginFault(storeName, 'was not imported');
  await setupPlugins([
    {
      instance: storeName,
      plugin: storePlugin,
      api: createPluginApi(deps, storePlugin, storeName),
      config: storeConfig,
    },
  ]);
  if (!opener) throw new PluginFault(storeName, 'is a store plugin and registers no store');
  const opened: Store = await opener();
  store = opened;

  const provide = (given: GatewayServices): void => {
    services = given;
  };
  const close = async (): Promise<void> => {
    await runClosers(registry, (error) => log.error({ err: error }, 'a plugin failed to close'));
    await opened.close();
  };
  try {
    const installables = config.instances.map((instance, at): Installable => {
      const plugin = plugins[at];
      if (!plugin) throw new PluginFault(instance.name, 'was not imported');
      return {
        instance: instance.name,
        plugin,
        api: createPluginApi(deps, plugin, instance.name),
        config: instance.config,
      };
    });
    await setupPlugins(installables);
    registry.freeze();
  } catch (error) {
    await close();
    throw error;
  }
  return { loaded, registry, settings, store: opened, log, close, provide };
}
