import { type EgressRules, hostsOf } from '../../config/egress.ts';
import { validateValue } from '../../config/validate.ts';
import {
  type Call,
  CHAT,
  COUNT,
  type ModelCatalog,
  type Operation,
  type Principal,
  type RequestOf,
  type RoutingState,
} from '../../contract/call.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from '../../contract/chat.ts';
import type { ChatContext } from '../../contract/chat-tools.ts';
import type { Command } from '../../contract/command.ts';
import { DEFINITIONS } from '../../contract/definitions.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import type { GatewayView } from '../../contract/gateway.ts';
import type { Hook, HookName, HookObject } from '../../contract/hooks.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { CallResult, Metered, OperationDefinition } from '../../contract/operation.ts';
import type {
  BooksApi,
  GatewaySettings,
  Log,
  ModelRow,
  ModelsApi,
  OperationContext,
  OperatorsApi,
  PersonalData,
  Plugin,
  PluginApi,
  Route,
  StoresApi,
  WholeApi,
} from '../../contract/plugin.ts';
import type { Offer, ProxyRoute } from '../../contract/provider.ts';
import type { Records, Store } from '../../contract/store.ts';
import type { StoreWatcher } from '../../contract/units.ts';
import type { Egress } from '../../egress/egress.ts';
import { createHttpClient } from '../../egress/http-client.ts';
import { fetchBy } from '../../egress/way.ts';
import { loadModelTable, problemsOfModels, problemsOfTable } from '../../models/model-table.ts';
import { callAttributed, runAttributed } from './attribution.ts';
import type { AuditLog } from './audit.ts';
import { checkProviderCodec } from './check-codec.ts';
import type { Gatherer } from './gather.ts';
import type { HookEntry } from './hook-runner.ts';
import { createInstanceStore, type InstanceStore } from './instance-store.ts';
import { problemOfRoutes, routesOfOperation } from './operation-routes.ts';
import { boundFetch, type Permit, permit, servicesApi, withoutKeys } from './permissions.ts';
import { redactLog } from './plugin-secrets.ts';
import { assertDefinition, assertMembers, assertSchema, PluginError, type Registry } from './registry.ts';

const MODEL_TABLES = Object.freeze({ shipped: loadModelTable, problemsOfTable, problemsOfModels });

/** Creates the API of one plugin instance; registrations are filed under the instance's name. */
export function createPluginApi(deps: ApiDeps, instance: ApiInstance): WholeApi {
  const { registry, settings, aliases } = deps;
  const { group, name, plugin, config } = instance;
  const proxyRoute = deps.egress.proxyRouteOf(instance.egress);
  const allow = permit(instance);
  const store = (): Store => {
    if (!deps.store) throw new PluginError(name, 'uses the store before it is open; store plugins register only');
    return deps.store;
  };
  const hosts = (): ReadonlySet<string> => new Set([...hostsOf(plugin, config), ...hostsOfOffers(registry, name)]);
  const services = (): CallServices => {
    if (deps.ready.services) return deps.ready.services;
    const when = 'calls a model before the gateway has started; do that in a route, a hook or onReady';
    throw new PluginError(name, when);
  };
  const { keyv, ...own } = createInstanceStore(store, registry, instance);
  const operators = operatorsApi(deps, services, instance, allow);
  return Object.freeze({
    instance: name,
    settings,
    redact: deps.redact,
    log: redactLog(name, deps.log.child({ plugin: name })),
    http: () => createHttpClient(hosts(), settings.version, proxyRoute),
    fetch: boundFetch(fetchBy(proxyRoute), () => (allow.has('hosts') ? undefined : hosts()), instance),
    chat: ((request: ChatRequest, context: ChatContext) => services().chat(request, context)) as PluginApi['chat'],
    keep: deps.stateUser(`${group}.${name}`).keep,
    keyv,
    stores: storesApi(store, own, registry, instance),
    models: modelsApi(services, registry, aliases, allow),
    books: booksApi(deps, store, services, name, allow),
    ...registrationApi(deps, services, instance, proxyRoute),
    ...servicesApi(registry, instance),
    get operators() {
      allow.assert('operators', 'api.operators');
      return operators;
    },
  } satisfies WholeApi);
}

/** Store API of the instance. Uses getters, because a store plugin has no store. */
function storesApi(
  store: () => Store,
  { stored, ...own }: Omit<InstanceStore, 'keyv'>,
  registry: Registry,
  instance: ApiInstance,
): StoresApi {
  return Object.freeze({
    ...own,
    get kind() {
      return store().kind;
    },
    get stored() {
      return stored();
    },
    health: () => store().health(),
    personalData(data: PersonalData) {
      const { name } = instance;
      assertDefinition(registry, instance, `the personal data "${data.name}"`, data, DEFINITIONS.personalData);
      registry.claim(registry.personalData, 'personal data', `${name} ${data.name}`, name, data, data.name);
    },
  });
}

/** Models, and calls through the common pipeline. */
function modelsApi(
  services: () => CallServices,
  registry: Registry,
  aliases: ApiDeps['aliases'],
  allow: Permit,
): ModelsApi {
  return Object.freeze({
    list: (principal) => services().models(principal),
    // A getter, because there is no catalog while plugins are set up.
    get catalog() {
      return services().catalog;
    },
    aliases: () => Object.entries(aliases),
    alias: (alias) => (Object.hasOwn(aliases, alias) ? aliases[alias] : undefined),
    problemOf: (name, caller) => services().problemOfModel(name, caller),
    hasServer: (name) => services().hasServer(name),
    routing: () => services().routing(),
    offers: (operation) =>
      allow.has('credentials') ? registry.offersOf(operation) : withoutKeys(registry.offersOf(operation)),
    listAtProvider: (provider) => services().listModels(provider),
    tables: MODEL_TABLES,
    call: (operation, request, context) => services().call(operation, request, context),
    draft: (ctx, dialect, body, takes) => services().draft(ctx, dialect, body, takes),
    sendTo: (operation, provider, request, signal) => services().sendTo(operation, provider, request, signal),
    checkEffects: (...args) => services().checkEffects(...args),
  } satisfies ModelsApi);
}

/** Money, and the gateway's own records. */
function booksApi(
  deps: ApiDeps,
  store: () => Store,
  services: () => CallServices,
  instance: string,
  allow: Permit,
): BooksApi {
  return Object.freeze({
    estimate: (call, maxTokens) => services().estimate(call, maxTokens),
    limitOutput: (call, tokens) => services().limitOutput(call, tokens),
    get ledger() {
      allow.assert('ledger', 'api.books.ledger');
      return store().ledger;
    },
    records<T>(name: string): Records<T> {
      allow.assert('records', 'api.books.records');
      if (!deps.records) throw new PluginError(instance, 'uses records before the store is open');
      return deps.records<T>(name);
    },
  } satisfies BooksApi);
}

/** Operators' view and actions. */
function operatorsApi(deps: ApiDeps, services: () => CallServices, instance: ApiInstance, allow: Permit): OperatorsApi {
  const { registry, settings } = deps;
  const { group, name } = instance;
  const log = (): AuditLog => {
    if (!deps.audit) throw new PluginError(name, 'uses the audit log before the store is open');
    return deps.audit;
  };
  const check = (what: string, value: unknown, kind: keyof typeof DEFINITIONS): void =>
    assertDefinition(registry, instance, what, value, DEFINITIONS[kind]);
  return Object.freeze({
    get gateway() {
      if (!deps.gateway) throw new PluginError(name, 'uses the gateway before the store is open');
      return deps.gateway;
    },
    audit: async (change) => log().add(change),
    auditLog: async (query) => log().list(query),
    async renameInAuditLog(id, erasedId) {
      allow.assert('records', 'api.operators.renameInAuditLog');
      return log().rename(id, erasedId);
    },
    allPersonalData() {
      allow.assert('records', 'api.operators.allPersonalData');
      return [...registry.personalData.values()].map(({ value }) => value);
    },
    validate: (value, schema) =>
      validateValue(value, schema, {
        plugin: undefined,
        pointer: '',
        baseDir: settings.baseDir,
        isHidden: () => false,
      }),
    useModelTable: (table) => services().useModelTable(table),
    gather<T>(topic: string, read: () => T | Promise<T>) {
      const key = `${group}.${name}:${topic}`;
      deps.readers.set(key, () => runAttributed(name, read));
      return () => deps.gatherer.gather(key) as Promise<readonly T[]>;
    },
    gauge(gauge) {
      if (!GAUGE_NAME.test(gauge.name))
        throw new PluginError(name, `invalid gauge name "${gauge.name}": it must match ${GAUGE_NAME.source}`);
      check(`the gauge "${gauge.name}"`, gauge, 'gauge');
      const read = (): number => callAttributed(name, gauge.read);
      registry.claim(registry.gauges, 'gauge', gauge.name, name, Object.freeze({ ...gauge, read }));
    },
    gauges: () => [...registry.gauges.values()].map(({ value }) => value),
    reportParts: (read) =>
      registry.claim(registry.parts, 'report of parts', name, name, () => callAttributed(name, read)),
    watchStore: (watcher) => void registry.storeWatchers.push(watcher),
    watchRefusals: (watcher) => void registry.refusalWatchers.push(watcher),
    announce(announcement) {
      check('an announcement', announcement, 'announcement');
      registry.announcements.push(announcement);
    },
    offerSignIn(link) {
      check('a way to sign in', link, 'signInLink');
      registry.signInLinks.push(link);
    },
  } satisfies OperatorsApi);
}

const GAUGE_NAME = /^[a-z][a-z0-9_]{2,60}$/;

/** Returns the hosts of an instance's own endpoints. */
function hostsOfOffers(registry: Registry, name: string): readonly string[] {
  const own = [...registry.offers.values()].filter(({ owner }) => owner === name);
  return own.flatMap(({ value: { offer } }) => [
    // A base URL with a custom transport may be arbitrary.
    ...(URL.canParse(offer.baseUrl) ? [new URL(offer.baseUrl).host] : []),
    ...(offer.hosts ?? []),
  ]);
}

const OWN_OPERATIONS: readonly string[] = Object.freeze([CHAT, COUNT]);

type Registration = Pick<
  WholeApi,
  | 'route'
  | 'upgrade'
  | 'schema'
  | 'provider'
  | 'offer'
  | 'operation'
  | 'dialect'
  | 'agent'
  | 'agents'
  | 'use'
  | 'store'
  | 'hook'
  | 'command'
  | 'onRegistered'
  | 'onReady'
  | 'onClose'
>;

/** Registrations during set-up. */
function registrationApi(
  deps: ApiDeps,
  services: () => CallServices,
  instance: ApiInstance,
  proxyRoute: ProxyRoute | undefined,
): Registration {
  const { registry } = deps;
  const { name, plugin } = instance;
  const check = (what: string, value: unknown, kind: keyof typeof DEFINITIONS): void =>
    assertDefinition(registry, instance, what, value, DEFINITIONS[kind]);
  check('its definition', plugin, 'plugin');
  const attributed = <T>(what: string, value: T): { readonly owner: string; readonly value: T } => {
    if (typeof value !== 'function') throw new PluginError(name, `api.${what}() takes a function`);
    return { owner: name, value };
  };
  return {
    route(route) {
      registry.addRoute(name, route as unknown as Route);
      check(`route "${route.method} ${route.path}"`, route, 'route');
    },
    upgrade(path, handler, options) {
      registry.addUpgrade(name, path, handler, options);
      check(`the websocket "${path}"`, options, 'upgrade');
    },
    schema(schema) {
      assertSchema(name, 'a schema', schema);
      registry.claim(registry.schemas, 'schema $id', schema.$id, name, schema);
    },
    provider(provider) {
      assertKind(name, plugin, 'a provider', 'provider');
      assertOffer(name, 'a provider', provider);
      assertMembers(name, 'a provider', provider.chat, ['request', 'response', 'stream']);
      check('the provider', provider, 'provider');
      const checked = instance.isThirdParty ? checkProviderCodec(name, provider) : provider;
      registry.addOffer(name, CHAT, deepFreeze(deps.egress.outfit(checked, proxyRoute)));
    },
    offer(operation, offer) {
      assertKind(name, plugin, 'an offer', 'provider', 'tts', 'operation');
      assertOffer(name, `an offer for ${operation}`, offer);
      checkOffer(registry, instance, operation, offer);
      registry.addOffer(name, operation, deepFreeze(deps.egress.outfit(offer, proxyRoute)));
    },
    operation(definition) {
      assertKind(name, plugin, 'an operation', 'operation');
      registerOperation(registry, name, definition);
      check(`the operation "${definition.name}"`, definition, 'operation');
      const call: ModelsApi['call'] = (operation, request, context) => services().call(operation, request, context);
      for (const route of routesOfOperation(definition, call)) registry.addRoute(name, route);
    },
    dialect(definition) {
      assertKind(name, plugin, 'a dialect', 'dialect');
      registerDialect(registry, name, definition);
      check(`the dialect "${definition.name}"`, definition, 'dialect');
    },
    agent(agent) {
      registry.claim(registry.agents, 'agent', agent.name, name, deepFreeze(agent));
      check(`the agent "${agent.name}"`, agent, 'agent');
    },
    agents: () => [...registry.agents.values()].map(({ value }) => value),
    use: (middleware) => registry.addMiddleware(name, middleware),
    store(open, probe) {
      assertKind(name, plugin, 'a store', 'store');
      deps.openStore(name, open, probe);
    },
    hook(hookName, hook) {
      if (hookName === 'authenticate') permit({ name, plugin }).assert('credentials', 'the hook "authenticate"');
      registry.addHook(toHookEntry(name, hookName, hook));
      if (typeof hook === 'object') check(`hook "${hookName}"`, hook, 'hook');
    },
    command(command) {
      registerCommand(registry, name, plugin, command);
      check(`the command "${command.name}"`, command, 'command');
    },
    onRegistered: (registered) => void registry.registered.push(attributed('onRegistered', registered)),
    onReady: (ready) => void registry.ready.push(attributed('onReady', ready)),
    onClose: (close) => void registry.closers.push(attributed('onClose', close)),
  };
}

/** Throws for an offer that cannot be called. */
function assertOffer(owner: string, what: string, offer: Offer): void {
  assertMembers(owner, what, offer, ['error']);
  if (
    offer.transport === undefined &&
    !/^https?:$/.test(URL.canParse(offer.baseUrl) ? new URL(offer.baseUrl).protocol : '')
  )
    throw new PluginError(owner, `has ${what} with the base URL "${offer.baseUrl}": write https://api.example.com/v1`);
}

/**
 * Validates an offer. Offers of a plugin's operation may have additional members, which that plugin's types define; those of core's
 * operations may not.
 */
function checkOffer(registry: Registry, instance: ApiInstance, operation: string, offer: Offer): void {
  const what = `the offer for ${operation}`;
  if (OWN_OPERATIONS.includes(operation)) {
    assertDefinition(registry, instance, what, offer, DEFINITIONS.provider);
    return;
  }
  const known = new Map(Object.keys(DEFINITIONS.offer.members).map((member) => [member.toLowerCase(), member]));
  const isOwn = (member: string): boolean => !known.has(member.toLowerCase().replaceAll('_', ''));
  const checked = Object.fromEntries(Object.entries(offer).filter(([member]) => !isOwn(member)));
  assertDefinition(registry, instance, what, checked, DEFINITIONS.offer);
}

function assertKind(owner: string, { kind }: Pick<Plugin, 'kind'>, what: string, ...kinds: readonly string[]): void {
  if (!kinds.includes(kind))
    throw new PluginError(
      owner,
      `is of kind "${kind}" and registers ${what}, which only plugins of kind ${kinds.join(' and ')} may do`,
    );
}

function registerCommand(registry: Registry, owner: string, plugin: Plugin, command: Command): void {
  if (!plugin.commands?.some((listed) => listed.name === command.name))
    throw new PluginError(
      owner,
      `registers the command "${command.name}", which its definition does not list: commands: [{ name: '${command.name}', summary: '…' }]`,
    );
  for (const part of command.subcommands ?? [command])
    assertMembers(owner, `the command "${[...new Set([command.name, part.name])].join(' ')}"`, part, ['run']);
  registry.claim(registry.commands, 'command', command.name, owner, command);
}

function registerOperation(registry: Registry, owner: string, definition: OperationDefinition): void {
  if (OWN_OPERATIONS.includes(definition.name))
    throw new PluginError(owner, `registers the operation "${definition.name}", which belongs to core`);
  const what = `the operation "${definition.name}"`;
  assertSchema(owner, `the request of ${what}`, definition.request);
  if (definition.response !== undefined) assertSchema(owner, `the response of ${what}`, definition.response);
  // Without an upper bound of its cost, no call could be reserved.
  assertMembers(owner, what, definition, [definition.estimate ? 'estimate' : 'maxUsage']);
  const problem = problemOfRoutes(definition);
  if (problem !== undefined) throw new PluginError(owner, `${problem} (${what})`);
  registry.claim(registry.operations, 'operation', definition.name, owner, deepFreeze(definition));
}

function registerDialect(registry: Registry, owner: string, definition: DialectDefinition): void {
  const what = `the dialect "${definition.name}"`;
  assertMembers(owner, what, definition, ['read', 'write', 'stream', 'error'], ['response', 'routes']);
  if (!definition.count && definition.routes.some(({ action }) => action === 'count'))
    throw new PluginError(owner, `has a route that counts, and no count(): the dialect "${definition.name}" needs it`);
  assertSchema(owner, `the request of the dialect "${definition.name}"`, definition.request);
  registry.claim(registry.dialects, 'dialect', definition.name, owner, deepFreeze(definition));
}

/** Converts a plugin's hook to an entry of the registry. */
export function toHookEntry<N extends HookName>(owner: string, name: N, hook: Hook<N> | undefined): HookEntry {
  if (typeof hook === 'function') return { owner, name, handler: hook as HookEntry['handler'] };
  // A plugin in JavaScript may pass any value; an invalid hook is rejected when it is added.
  const { handler, order, operations } = (hook ?? {}) as Partial<HookObject<N>>;
  return {
    owner,
    name,
    handler: handler as HookEntry['handler'],
    ...(order !== undefined && { order }),
    ...(operations !== undefined && { operations }),
  };
}

/** Services for plugins after a generation is assembled. Before that, a plugin may register but not call models. */
export interface CallServices {
  chat(request: ChatRequest, context: ChatContext): Promise<ChatResponse | AsyncIterable<ChatChunk>>;
  readonly hasServer: ModelsApi['hasServer'];
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  /** Set by the code that reads requests of clients. */
  draft: ModelsApi['draft'];
  readonly sendTo: ModelsApi['sendTo'];
  readonly checkEffects: ModelsApi['checkEffects'];
  estimate(call: Call, maxTokens?: number): Metered;
  limitOutput(call: Call, tokens: number): void;
  models(principal?: Principal): readonly ModelRow[];
  problemOfModel: ModelsApi['problemOf'];
  readonly catalog: ModelCatalog;
  listModels: ModelsApi['listAtProvider'];
  useModelTable: OperatorsApi['useModelTable'];
  routing(): RoutingState;
}

/** Opens the store, which reports its operations to the watcher. */
export type OpenStore = (observe: StoreWatcher) => Promise<Store>;

/** User of a retained value: an instance of a generation. */
export interface StateUser {
  keep<T>(name: string, make: () => T, close?: (stored: T) => void | Promise<void>): T;
}

/** Dependencies of the APIs of all instances of a generation. */
export interface ApiDeps {
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly log: Log;
  readonly gatherer: Gatherer;
  /** Readers of this process for gathering, set while plugins are set up. */
  readonly readers: Map<string, () => unknown>;
  /** Absent while the store plugin itself is set up. */
  readonly store?: Store;
  /** Audit log; absent while the store plugin itself is set up. */
  readonly audit?: AuditLog;
  /** The gateway's own records; absent under the same condition as `audit`. */
  readonly records?: <T>(name: string) => Records<T>;
  /** Set once all plugins are set up. */
  readonly ready: { services?: CallServices };
  readonly openStore: (owner: string, open: OpenStore, probe?: () => Promise<string>) => void;
  readonly stateUser: (instance: string) => StateUser;
  readonly redact: (text: string) => string;
  readonly egress: Pick<Egress, 'proxyRouteOf' | 'outfit'>;
  /** Absent under the same condition as `audit`. */
  readonly gateway?: GatewayView;
}

/** Instance, as needed to create its API. */
export interface ApiInstance {
  readonly group: string;
  readonly name: string;
  readonly plugin: Plugin;
  readonly config: Readonly<Record<string, unknown>>;
  readonly egress?: EgressRules | undefined;
  /** True for a plugin from outside of the package: what its codec returns is checked. */
  readonly isThirdParty?: boolean;
}
