import { LOAD_TIMEOUT_MS, within } from '../../config/deadline.ts';
import { isBuiltinOwner, type LoadedConfig, orderSetUp } from '../../config/load-config.ts';
import { createConfigError } from '../../config/problems.ts';
import { createRedactor, listSecrets } from '../../config/redact.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import type { ReloadControl } from '../../contract/gateway.ts';
import { didYouMean } from '../../contract/nearest.ts';
import { type Log, OptionError, type Plugin, type WholeApi } from '../../contract/plugin.ts';
import type { Store } from '../../contract/store.ts';
import type { StoreWatcher } from '../../contract/units.ts';
import { type Egress, type ExchangeOptions, openEgress } from '../../egress/egress.ts';
import { createProxyRoute, withProxyRoute } from '../../egress/way.ts';
import { enableForThirdParties, reasonOf, runAs } from './attribution.ts';
import { createLocalGatherer, type Gatherer } from './gather.ts';
import { type ApiDeps, type ApiInstance, createPluginApi, type OpenStore, type StateUser } from './plugin-api.ts';
import { addSecrets } from './plugin-secrets.ts';
import { type Attributed, assertMembers, PluginError, Registry } from './registry.ts';

/** Watchers of store operations, set by the current generation. */
interface StoreWatch {
  watchers: readonly StoreWatcher[];
}

/** Objects that survive a change of the configuration: the store, connections to providers, and values retained by plugins. */
export interface Foundation {
  readonly store: Store;
  readonly storeWatch: StoreWatch;
  /** Connections to providers. */
  readonly egress: Egress;
  readonly gatherer: Gatherer;
  readonly state: PluginState;
  readonly log: Log;
  /** Reload control; undefined in a program that reloads the configuration itself. */
  reloads?: ReloadControl | undefined;
  /** Reason why the last reload was rejected; undefined if it succeeded. */
  reloadProblem?: string | undefined;
  /** Closes connections and the store. */
  close(): Promise<void>;
}

/** Opens the store of a configuration and the other shared objects of all generations. */
export async function openFoundation(
  loaded: LoadedConfig,
  log: Log,
  gatherer: Gatherer = createLocalGatherer(),
  exchanges: ExchangeOptions = {},
): Promise<Foundation> {
  // Before the store, so that an invalid folder is reported at once.
  const egress = openEgress(log, exchanges, () => listSecrets(loaded.config));
  enableForThirdParties(loaded);
  const registry = new Registry();
  const storeWatch: StoreWatch = { watchers: [] };
  const removeSecrets = addSecrets(loaded);
  const store = await openStore(loaded, registry, log, gatherer, (operation, ms, isOk) => {
    for (const watcher of storeWatch.watchers)
      try {
        watcher(operation, ms, isOk);
      } catch (error) {
        // Logged like any uncaught error of a plugin; the operation itself has completed.
        void Promise.reject(error);
      }
  });
  await refuseUnfinished(store).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  return {
    store,
    storeWatch,
    egress,
    gatherer,
    state: new PluginState(),
    log,
    async close() {
      await egress.upstream.close();
      const closers = [{ owner: loaded.config.store.name, value: () => store.close() }, ...registry.closers];
      await runClosers(closers, (error) => log.error({ err: error }, 'the store plugin failed to close'));
      removeSecrets();
    },
  };
}

/** Document that marks an unfinished import. */
export const UNFINISHED_IMPORT = 'core.import';

/** Throws for a store with an unfinished import: a partial ledger is invalid. */
async function refuseUnfinished(store: Store): Promise<void> {
  const mark = await store.keyv<{ readonly since: string }>(UNFINISHED_IMPORT).get('unfinished');
  if (!mark) return;
  throw new GatewayError(
    'store_unavailable',
    `An import into this store began on ${mark.since} and has not ended. Wait if it still runs; otherwise run "tollgate store import" on a new, empty store.`,
  );
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
  const { open } = await findOpener(loaded, registry, log, gatherer);
  const { name } = loaded.config.store;
  try {
    const store = await open(observe);
    assertMembers(name, 'a store', store, ['keyv', 'stored', 'health', 'close'], ['ledger', 'sets', 'counters']);
    return store;
  } catch (error) {
    if (isGatewayError(error) || error instanceof PluginError) throw error;
    throw new PluginError(name, `cannot open the store: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Returns the store's description of itself without opening it; undefined if its plugin does not support this. Rejects if the store
 * is unreachable or unusable.
 */
export async function probeStore(loaded: LoadedConfig, log: Log): Promise<string | undefined> {
  const registry = new Registry();
  const removeSecrets = addSecrets(loaded);
  const { probe } = await findOpener(loaded, registry, log, createLocalGatherer());
  const { name } = loaded.config.store;
  const late = (): Error =>
    new PluginError(name, `the check of the store did not finish within ${LOAD_TIMEOUT_MS / 1000} s`);
  try {
    return probe && (await within(probe(), LOAD_TIMEOUT_MS, late));
  } finally {
    await runClosers(registry.closers, (error) => log.error({ err: error }, 'the store plugin failed to close'));
    removeSecrets();
  }
}

/** Connections of a store plugin: its server is not a provider. */
const DIRECT: Pick<Egress, 'proxyRouteOf' | 'outfit'> = Object.freeze({
  proxyRouteOf: createProxyRoute,
  outfit: withProxyRoute,
});

/** Sets up the store plugin and returns its opener. */
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
  const instance = { ...config.store, plugin: known };
  const api = createPluginApi(
    {
      registry,
      settings,
      aliases: {},
      log,
      gatherer,
      readers: new Map(),
      ready: {},
      openStore(owner, open, probe) {
        if (opener) throw new PluginError(owner, 'plugin_conflict: a store is registered already');
        opener = { open, probe };
      },
      redact: createRedactor(() => listSecrets(config)),
      egress: DIRECT,
      stateUser: () => ({ keep: (_name, make) => make() }),
    },
    instance,
  );
  await setUpPlugin(instance, api);
  if (!opener) throw new PluginError(name, 'is a store plugin but registers no store');
  return opener;
}

/** Time limit of one plugin's `setup` or ready function. */
export const SETUP_TIMEOUT_MS = LOAD_TIMEOUT_MS;

/** Time limit for closing all plugins of a generation; the last ones get at least {@link MIN_CLOSE_MS} each. */
const CLOSE_TIMEOUT_MS = 5000;
const MIN_CLOSE_MS = 250;

/** Sets up plugins in dependency order. Their registrations follow the order of the configuration. */
export async function setUpPlugins(loaded: LoadedConfig, registry: Registry, deps: ApiDeps): Promise<void> {
  const [, ...plugins] = loaded.plugins;
  const instances = loaded.config.instances.map((instance, at) => {
    const plugin = plugins[at];
    if (!plugin) throw new PluginError(instance.name, 'was not imported');
    return { ...instance, plugin, isThirdParty: !isBuiltinOwner(instance.name, loaded) };
  });
  const order = orderSetUp(plugins);
  for (const instance of order.flatMap((at) => instances[at] ?? []))
    await setUpPlugin(instance, createPluginApi(deps, instance));
  if (order.some((at, place) => at !== place)) registry.sortBy(instances.map(({ name }) => name));
  for (const { name, plugin, hooks = {}, scope = {} } of instances)
    registry.assertTakesPart(name, plugin, { hooks, scope });
}

/** Sets up one plugin; an error stops startup and names the plugin. */
export function setUpPlugin(
  { name, plugin, config }: Pick<ApiInstance, 'name' | 'plugin' | 'config'>,
  api: WholeApi,
): Promise<void> {
  return runInTime(name, 'setup', async () => {
    try {
      await plugin.setup(api, config);
    } catch (error) {
      const [, member] = (error instanceof TypeError && /\.(\w+) is not a function$/.exec(error.message)) || [];
      const near = member === undefined || member in api ? undefined : didYouMean(member, Object.keys(api), 1);
      if (!near) throw error;
      throw new PluginError(name, `setup failed: ${reasonOf(error)}. ${near}`, { cause: error });
    }
  });
}

/** Runs the `onRegistered` functions of plugins, in order. */
export async function runRegistered(registered: readonly Attributed<() => void>[]): Promise<void> {
  for (const { owner, value } of registered) await runInTime(owner, 'onRegistered', value);
}

/** Runs the `onReady` functions of plugins, in order. */
export async function runReady(ready: readonly Attributed<() => void | Promise<void>>[]): Promise<void> {
  for (const { owner, value } of ready) await runInTime(owner, 'onReady', value);
}

/** Runs the `onClose` functions of plugins in reverse order of registration. A failing or hanging one does not block the others. */
export async function runClosers(
  closers: readonly Attributed<() => void | Promise<void>>[],
  onError: (error: unknown) => void,
): Promise<void> {
  const deadline = performance.now() + CLOSE_TIMEOUT_MS;
  for (const { owner, value } of closers.toReversed()) {
    const timeoutMs = Math.max(deadline - performance.now(), MIN_CLOSE_MS);
    await runInTime(owner, 'onClose', value, timeoutMs).catch(onError);
  }
}

async function runInTime(
  owner: string,
  what: string,
  run: () => void | Promise<void>,
  timeoutMs = SETUP_TIMEOUT_MS,
): Promise<void> {
  const late = (): Error => new PluginError(owner, `${what} did not finish within ${Math.ceil(timeoutMs / 1000)} s`);
  try {
    await within(Promise.resolve(runAs(owner, run)), timeoutMs, late);
  } catch (error) {
    if (error instanceof PluginError) throw error;
    throw new PluginError(owner, `${what} failed: ${reasonOf(error)}`, { cause: error });
  }
}

interface StateEntry {
  readonly value: unknown;
  readonly close: (() => void | Promise<void>) | undefined;
}

/**
 * Values of plugins that survive a change of the configuration: metrics, counters, queues. A value is created once per instance and
 * name, and shared by the generations that request it. It is closed when the last of these has ended.
 */
export class PluginState {
  readonly #values = new Map<string, StateEntry>();
  readonly #users = new Map<string, Set<object>>();

  /** Returns the `keep` of one instance in one generation. */
  userOf(generation: object, instance: string): StateUser {
    return {
      keep: (name, make, close) => {
        const key = `${instance} ${name}`;
        this.#users.set(key, (this.#users.get(key) ?? new Set()).add(generation));
        const known = this.#values.get(key);
        if (known) return known.value as ReturnType<typeof make>;
        const value = make();
        this.#values.set(key, { value, close: close && (() => close(value)) });
        return value;
      },
    };
  }

  /** Ends a generation's use. Returns the close functions of values that only it used, in order of creation. */
  release(generation: object): readonly Attributed<() => void | Promise<void>>[] {
    const closers: Attributed<() => void | Promise<void>>[] = [];
    for (const [key, users] of [...this.#users]) {
      if (!users.delete(generation) || users.size > 0) continue;
      this.#users.delete(key);
      const close = this.#values.get(key)?.close;
      this.#values.delete(key);
      if (close) closers.push({ owner: key.split(' ')[0] ?? key, value: close });
    }
    return closers;
  }
}

/** Converts an error of a plugin's set-up to a configuration problem at the option that the plugin named, if any. */
export function locateProblem(error: unknown, { config, raw }: Pick<LoadedConfig, 'config' | 'raw'>): unknown {
  if (!(error instanceof PluginError) || !(error.cause instanceof OptionError)) return error;
  const { path: place, problem, hint } = error.cause;
  const at = [config.store, ...config.instances].find(({ name }) => name === error.plugin);
  if (!at) return error;
  const problems = [{ pointer: `${at.pointer}${place}`, atKey: place === '', message: problem, hint }];
  return Object.assign(createConfigError(problems, raw), { cause: error });
}
