import { mapLeaves } from '../config/schema-at.ts';
import type { ChatRequest } from '../contract/chat.ts';
import type { CallContext, Plugin, PluginApi, WholeApi } from '../contract/plugin.ts';
import type { Records } from '../contract/records.ts';
import type { Store } from '../contract/store.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import type { ApiDeps, ApiInstance, CallServices } from './api-deps.ts';
import { callOwned } from './attribution.ts';
import type { AuditLog } from './audit.ts';
import { createInstanceStore } from './instance-store.ts';
import { registrationApi } from './registration-api.ts';
import { PluginError, type Registry } from './registry.ts';

/** The API of one plugin instance; everything it registers is filed under the instance's name. */
export function createPluginApi(deps: ApiDeps, instance: ApiInstance): WholeApi {
  const { registry, settings, aliases } = deps;
  const { group, name, plugin, config } = instance;
  const storage = storageApi(deps, instance);
  const calls = callApi(deps, name);
  return Object.freeze({
    instance: name,
    settings,
    redact: deps.redact,
    log: deps.log.child({ plugin: name }),
    agents: () => [...registry.agents.values()].map(({ value }) => value),
    aliases: () => Object.entries(aliases),
    alias: (alias) => (Object.hasOwn(aliases, alias) ? aliases[alias] : undefined),
    http: () =>
      createHttpClient(new Set([...findHosts(plugin, config), ...hostsOfOffers(registry, name)]), settings.version),
    keep: deps.keptUser(`${group}.${name}`).keep,
    ...registrationApi(deps, instance),
    ...figuresApi(registry, name),
    ...{ chat: calls.chat, call: calls.call, offers: calls.offers, estimate: calls.estimate },
    ...{ models: calls.models, listModels: calls.listModels, routing: calls.routing },
    get catalog() {
      return calls.catalog;
    },
    keyv: storage.keyv,
    share: storage.share,
    shared: storage.shared,
    records: storage.records,
    audit: storage.audit,
    auditLog: storage.auditLog,
    // Not spread: while plugins are set up there are no calls, and for a store plugin no store.
    get stores() {
      return storage.stores;
    },
    get ledger() {
      return storage.ledger;
    },
  } satisfies WholeApi);
}

/** Calls of models, which go through the whole pipeline. */
function callApi(
  deps: ApiDeps,
  instance: string,
): Pick<PluginApi, 'chat' | 'call' | 'offers' | 'estimate' | 'models' | 'catalog' | 'listModels' | 'routing'> {
  const services = (): CallServices => {
    const ready = deps.services();
    if (!ready)
      throw new PluginError(
        instance,
        'calls a model before the gateway has started; do that in a route, a hook or onReady',
      );
    return ready;
  };
  return {
    chat: ((request: ChatRequest, context: CallContext) => services().chat(request, context)) as PluginApi['chat'],
    call: (operation, request, context) => services().call(operation, request, context),
    offers: (operation) => deps.registry.offersOf(operation),
    estimate: (call) => services().estimate(call),
    models: (principal) => services().models(principal),
    listModels: (provider) => services().listModels(provider),
    routing: () => services().routing(),
    get catalog() {
      return services().catalog;
    },
  };
}

/** The instance's own documents, sets and counters, and the books. */
function storageApi(
  deps: ApiDeps,
  instance: ApiInstance,
): Pick<PluginApi, 'keyv' | 'share' | 'shared' | 'stores' | 'ledger' | 'records' | 'audit' | 'auditLog'> {
  const store = (): Store => {
    const opened = deps.store();
    if (!opened) throw new PluginError(instance.name, 'uses the store before it is open; store plugins register only');
    return opened;
  };
  const log = (): AuditLog => {
    if (!deps.audit) throw new PluginError(instance.name, 'uses the audit log before the store is open');
    return deps.audit;
  };
  const { keyv, share, shared, sets, counters } = createInstanceStore(store, deps.registry, instance);
  return {
    keyv,
    share,
    shared,
    records<T>(name: string): Records<T> {
      if (!deps.records) throw new PluginError(instance.name, 'uses records before the store is open');
      return deps.records<T>(name);
    },
    audit: async (change) => log().add(change),
    auditLog: async (query) => log().list(query),
    get stores() {
      return { kind: store().kind, sets, counters, health: () => store().health() };
    },
    get ledger() {
      return store().ledger;
    },
  };
}

const FIGURE = /^[a-z][a-z0-9_]{2,60}$/;

/** What one instance shows operators in numbers, and may know of all of them. */
function figuresApi(registry: Registry, instance: string): Pick<PluginApi, 'figure' | 'figures' | 'watchStore'> {
  return {
    figure(figure) {
      if (!FIGURE.test(figure.name))
        throw new PluginError(instance, `shows the figure "${figure.name}"; a name is ${FIGURE.source}`);
      const read = (): number => callOwned(instance, figure.read);
      registry.claim(registry.figures, 'figure', figure.name, instance, Object.freeze({ ...figure, read }));
    },
    figures: () => [...registry.figures.values()].map(({ value }) => value),
    watchStore: (watcher) => void registry.storeWatchers.push(watcher),
  };
}

/** The hosts that an instance may connect to: its plugin's own, and those of its options that are URLs by their schema. */
function findHosts(
  { configSchema = {}, hosts = [] }: Pick<Plugin, 'configSchema' | 'hosts'>,
  config: Readonly<Record<string, unknown>>,
): ReadonlySet<string> {
  const found = new Set(hosts);
  mapLeaves(config, { ...configSchema }, '', (leaf, { nodes }) => {
    const isUrl = nodes.some((schema) => schema['format'] === 'url');
    if (isUrl && typeof leaf === 'string' && URL.canParse(leaf)) found.add(new URL(leaf).host);
    return leaf;
  });
  return found;
}

/** Where an instance's own endpoints are. */
function hostsOfOffers(registry: Registry, name: string): readonly string[] {
  const own = [...registry.offers.values()].filter(({ owner }) => owner === name);
  return own.flatMap(({ value: { offer } }) => [
    // What has a transport of its own may name any place.
    ...(URL.canParse(offer.baseUrl) ? [new URL(offer.baseUrl).host] : []),
    ...(offer.hosts ?? []),
  ]);
}
