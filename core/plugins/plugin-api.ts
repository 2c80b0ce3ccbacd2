import type { ChatRequest } from '../contract/chat.ts';
import type { CallContext, PluginApi, WholeApi } from '../contract/plugin.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import type { ApiDeps, ApiInstance, CallServices } from './api-deps.ts';
import { figuresApi } from './figures-api.ts';
import { findHosts, hostsOfOffers } from './find-hosts.ts';
import { registrationApi } from './registration-api.ts';
import { PluginError } from './registry.ts';
import { storageApi } from './storage-api.ts';

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
