import { type Call, CHAT, COUNT, type Operation, type Principal, type RequestOf } from '../contract/call.ts';
import type { ModelCatalog } from '../contract/catalog.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from '../contract/chat.ts';
import { deepFreeze } from '../contract/json.ts';
import type { Log } from '../contract/log.ts';
import type { CallResult, Metered } from '../contract/operation.ts';
import type {
  CallContext,
  GatewaySettings,
  ModelRow,
  OperationContext,
  Plugin,
  PluginApi,
  Route,
  WholeApi,
} from '../contract/plugin.ts';
import type { Records } from '../contract/records.ts';
import type { RoutingState } from '../contract/routing.ts';
import type { Store } from '../contract/store.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import { runOwned } from './attribution.ts';
import type { AuditLog } from './audit.ts';
import { findHosts } from './find-hosts.ts';
import type { Gatherer } from './gather.ts';
import { toHookEntry } from './hook-runner.ts';
import type { KeptUser } from './kept.ts';
import { assertSchema, PluginError, type Registry } from './registry.ts';
import { storageApi } from './storage-api.ts';

/** What calls offer plugins once a generation is assembled; until then a plugin may register, but not call models. */
export interface CallServices {
  chat(request: ChatRequest, context: CallContext): Promise<ChatResponse | AsyncIterable<ChatChunk>>;
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  estimate(call: Call): Metered;
  models(principal?: Principal): readonly ModelRow[];
  readonly catalog: ModelCatalog;
  listModels(provider: string): Promise<readonly string[]>;
  routing(): RoutingState;
}

/** What the APIs of all instances of a generation are made with. */
export interface ApiDeps {
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly log: Log;
  readonly gatherer: Gatherer;
  /** What this process answers when workers gather, filled in while plugins are set up. */
  readonly readers: Map<string, () => unknown>;
  /** The opened store; undefined while the store plugin itself is set up. */
  readonly store: () => Store | undefined;
  /** What operators changed; absent while the store plugin itself is set up. */
  readonly audit?: AuditLog;
  /** The gateway's own records; absent as `audit` is. */
  readonly records?: <T>(name: string) => Records<T>;
  readonly services: () => CallServices | undefined;
  readonly openStore: (owner: string, open: () => Promise<Store>) => void;
  readonly keptUser: (instance: string) => KeptUser;
}

/** An instance as its API is made for it. */
export interface ApiInstance {
  readonly group: string;
  readonly name: string;
  readonly plugin: Plugin;
  readonly config: Readonly<Record<string, unknown>>;
}

/** The API of one plugin instance; everything it registers is filed under the instance's name. */
export function createPluginApi(deps: ApiDeps, instance: ApiInstance): WholeApi {
  const { registry, settings, aliases } = deps;
  const { group, name, plugin, config } = instance;
  const storage = storageApi(deps, instance);
  const calls = callApi(deps, name);
  return Object.freeze({
    instance: name,
    settings,
    log: deps.log.child({ plugin: name }),
    agents: () => [...registry.agents.values()].map(({ value }) => value),
    aliases: () => Object.entries(aliases),
    alias: (alias) => (Object.hasOwn(aliases, alias) ? aliases[alias] : undefined),
    http: () =>
      createHttpClient(new Set([...findHosts(plugin, config), ...hostsOfOffers(registry, name)]), settings.version),
    keep: deps.keptUser(`${group}.${name}`).keep,
    ...registrationApi(deps, instance),
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

/** Where an instance's own endpoints are. */
function hostsOfOffers(registry: Registry, name: string): readonly string[] {
  const own = [...registry.offers.values()].filter(({ owner }) => owner === name);
  return own.flatMap(({ value: { offer } }) => [
    // What has a transport of its own may name any place.
    ...(URL.canParse(offer.baseUrl) ? [new URL(offer.baseUrl).host] : []),
    ...(offer.hosts ?? []),
  ]);
}

const OWN_OPERATIONS: readonly string[] = Object.freeze([CHAT, COUNT]);

type Registration = Pick<
  WholeApi,
  | 'route'
  | 'schema'
  | 'provider'
  | 'offer'
  | 'operation'
  | 'dialect'
  | 'agent'
  | 'use'
  | 'store'
  | 'hook'
  | 'command'
  | 'gather'
  | 'announce'
  | 'onReady'
  | 'onClose'
>;

/** What a plugin registers while it is set up. */
function registrationApi(deps: ApiDeps, { group, name, plugin }: ApiInstance): Registration {
  const { registry } = deps;
  const assertKind = (what: string, ...kinds: readonly string[]): void => {
    if (!kinds.includes(plugin.kind))
      throw new PluginError(
        name,
        `is of kind "${plugin.kind}" and registers ${what}, which plugins of kind ${kinds.join(' and ')} do`,
      );
  };
  return {
    route: (route) => registry.addRoute(name, route as unknown as Route),
    schema(schema) {
      assertSchema(name, 'a schema', schema);
      registry.claim(registry.schemas, 'schema $id', schema.$id, name, schema);
    },
    provider(provider) {
      assertKind('a provider', 'provider');
      registry.addOffer(name, CHAT, deepFreeze(provider));
    },
    offer(operation, offer) {
      assertKind('an offer', 'provider', 'tts');
      registry.addOffer(name, operation, deepFreeze(offer));
    },
    operation(definition) {
      assertKind('an operation', 'operation');
      if (OWN_OPERATIONS.includes(definition.name))
        throw new PluginError(name, `registers the operation "${definition.name}", which belongs to core`);
      assertSchema(name, `the request of the operation "${definition.name}"`, definition.request);
      registry.claim(registry.operations, 'operation', definition.name, name, deepFreeze(definition));
    },
    dialect(definition) {
      assertKind('a dialect', 'dialect');
      if (!definition.count && definition.routes.some(({ action }) => action === 'count'))
        throw new PluginError(
          name,
          `has a route that counts, and no count(): the dialect "${definition.name}" needs it`,
        );
      assertSchema(name, `the request of the dialect "${definition.name}"`, definition.request);
      registry.claim(registry.dialects, 'dialect', definition.name, name, deepFreeze(definition));
    },
    agent: (agent) => registry.claim(registry.agents, 'agent', agent.name, name, deepFreeze(agent)),
    use: (middleware) => registry.addMiddleware(name, middleware),
    store(open) {
      assertKind('a store', 'store');
      deps.openStore(name, open);
    },
    hook: (hookName, hook) => registry.addHook(toHookEntry(name, hookName, hook)),
    command(command) {
      if (!plugin.commands?.some((listed) => listed.name === command.name))
        throw new PluginError(
          name,
          `registers the command "${command.name}" and does not list it: commands: [{ name: '${command.name}', summary: '…' }]`,
        );
      registry.claim(registry.commands, 'command', command.name, name, command);
    },
    gather<T>(topic: string, read: () => T | Promise<T>) {
      const key = `${group}.${name}:${topic}`;
      deps.readers.set(key, () => runOwned(name, read));
      return () => deps.gatherer.gather(key) as Promise<readonly T[]>;
    },
    announce: (announcement) => void registry.announcements.push(announcement),
    onReady: (ready) => void registry.ready.push({ owner: name, value: ready }),
    onClose: (close) => void registry.closers.push({ owner: name, value: close }),
  };
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
