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
import type { Command } from '../../contract/command.ts';
import { DEFINITIONS } from '../../contract/definitions.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import type { GatewayView } from '../../contract/gateway.ts';
import type { Hook, HookName, HookObject } from '../../contract/hooks.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { CallResult, Metered, OperationDefinition } from '../../contract/operation.ts';
import type {
  CallContext,
  GatewaySettings,
  Log,
  ModelRow,
  OperationContext,
  Plugin,
  PluginApi,
  Route,
  WholeApi,
} from '../../contract/plugin.ts';
import type { Offer, Way } from '../../contract/provider.ts';
import type { Records, Store } from '../../contract/store.ts';
import type { StoreWatcher } from '../../contract/units.ts';
import type { Egress } from '../../egress/egress.ts';
import { createHttpClient } from '../../egress/http-client.ts';
import { fetchBy } from '../../egress/way.ts';
import { loadModelTable, problemsOfModels, problemsOfTable } from '../../models/model-table.ts';
import { callOwned, runOwned } from './attribution.ts';
import type { AuditLog } from './audit.ts';
import type { Gatherer } from './gather.ts';
import type { HookEntry } from './hook-runner.ts';
import { createInstanceStore } from './instance-store.ts';
import { boundFetch, type Permit, permit, servicesApi, withoutKeys } from './permissions.ts';
import { assertDefinition, assertMembers, assertSchema, PluginError, type Registry } from './registry.ts';

const MODEL_TABLES = Object.freeze({ shipped: loadModelTable, problemsOfTable, problemsOfModels });

/** The API of one plugin instance; everything it registers is filed under the instance's name. */
export function createPluginApi(deps: ApiDeps, instance: ApiInstance): WholeApi {
  const { registry, settings, aliases } = deps;
  const { group, name, plugin, config } = instance;
  const way = deps.egress.wayOf(instance.egress);
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
  const { sets, counters, kept, ...documents } = createInstanceStore(store, registry, instance);
  return Object.freeze({
    instance: name,
    settings,
    redact: deps.redact,
    validate: (value, schema) =>
      validateValue(value, schema, {
        plugin: undefined,
        pointer: '',
        baseDir: settings.baseDir,
        isHidden: () => false,
      }),
    modelTables: MODEL_TABLES,
    log: deps.log.child({ plugin: name }),
    agents: () => [...registry.agents.values()].map(({ value }) => value),
    aliases: () => Object.entries(aliases),
    alias: (alias) => (Object.hasOwn(aliases, alias) ? aliases[alias] : undefined),
    http: () => createHttpClient(hosts(), settings.version, way),
    fetch: boundFetch(fetchBy(way), () => (allow.has('hosts') ? undefined : hosts()), instance),
    keep: deps.keptUser(`${group}.${name}`).keep,
    ...registrationApi(deps, instance, way),
    ...figuresApi(registry, instance),
    ...callApi(services, registry, allow),
    ...servicesApi(registry, instance),
    ...documents,
    ...bookApi(deps, name, allow),
    // Getters: while plugins are set up there are no calls, and for a store plugin no store.
    get catalog() {
      return services().catalog;
    },
    get stores() {
      return { kind: store().kind, sets, counters, kept: kept(), health: () => store().health() };
    },
    get gateway() {
      if (!deps.gateway) throw new PluginError(name, 'asks for the gateway before the store is open');
      return deps.gateway;
    },
    get ledger() {
      allow.assert('ledger', 'api.ledger');
      return store().ledger;
    },
  } satisfies WholeApi);
}

/** Calls of models, which go through the pipeline of every call. */
function callApi(
  services: () => CallServices,
  registry: Registry,
  allow: Permit,
): Pick<
  PluginApi,
  | 'chat'
  | 'call'
  | 'draft'
  | 'sendTo'
  | 'checkEffects'
  | 'offers'
  | 'estimate'
  | 'limitOutput'
  | 'models'
  | 'problemOfModel'
  | 'listModels'
  | 'useModelTable'
  | 'routing'
> {
  return {
    chat: ((request: ChatRequest, context: CallContext) => services().chat(request, context)) as PluginApi['chat'],
    call: (operation, request, context) => services().call(operation, request, context),
    draft: (ctx, dialect, body, takes) => services().draft(ctx, dialect, body, takes),
    sendTo: (operation, provider, request, signal) => services().sendTo(operation, provider, request, signal),
    checkEffects: (...args) => services().checkEffects(...args),
    offers: (operation) =>
      allow.has('credentials') ? registry.offersOf(operation) : withoutKeys(registry.offersOf(operation)),
    estimate: (call, maxTokens) => services().estimate(call, maxTokens),
    limitOutput: (call, tokens) => services().limitOutput(call, tokens),
    models: (principal) => services().models(principal),
    problemOfModel: (name) => services().problemOfModel(name),
    listModels: (provider) => services().listModels(provider),
    useModelTable: (table) => services().useModelTable(table),
    routing: () => services().routing(),
  };
}

/** The gateway's own records, and the log of what operators change. */
function bookApi(
  deps: ApiDeps,
  instance: string,
  allow: Permit,
): Pick<PluginApi, 'records' | 'audit' | 'auditLog' | 'allPersonalData'> {
  const log = (): AuditLog => {
    if (!deps.audit) throw new PluginError(instance, 'uses the audit log before the store is open');
    return deps.audit;
  };
  return {
    records<T>(name: string): Records<T> {
      allow.assert('records', 'api.records');
      if (!deps.records) throw new PluginError(instance, 'uses records before the store is open');
      return deps.records<T>(name);
    },
    allPersonalData() {
      allow.assert('records', 'api.allPersonalData');
      return [...deps.registry.personalData.values()].map(({ value }) => value);
    },
    audit: async (change) => log().add(change),
    auditLog: async (query) => log().list(query),
  };
}

const FIGURE = /^[a-z][a-z0-9_]{2,60}$/;

/** What one instance shows operators in numbers, and may know of all of them. */
function figuresApi(
  registry: Registry,
  instance: ApiInstance,
): Pick<PluginApi, 'figure' | 'figures' | 'watchStore' | 'watchRefusals'> {
  return {
    figure(figure) {
      if (!FIGURE.test(figure.name))
        throw new PluginError(instance.name, `shows the figure "${figure.name}"; a name is ${FIGURE.source}`);
      assertDefinition(registry, instance, `the figure "${figure.name}"`, figure, DEFINITIONS.figure);
      const read = (): number => callOwned(instance.name, figure.read);
      registry.claim(registry.figures, 'figure', figure.name, instance.name, Object.freeze({ ...figure, read }));
    },
    figures: () => [...registry.figures.values()].map(({ value }) => value),
    watchStore: (watcher) => void registry.storeWatchers.push(watcher),
    watchRefusals: (watcher) => void registry.refusalWatchers.push(watcher),
  };
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
  | 'upgrade'
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
  | 'personalData'
  | 'offerSignIn'
  | 'onRegistered'
  | 'onReady'
  | 'onClose'
>;

/** What a plugin registers while it is set up. */
function registrationApi(deps: ApiDeps, instance: ApiInstance, way: Way | undefined): Registration {
  const { registry } = deps;
  const { group, name, plugin } = instance;
  const check = (what: string, value: unknown, kind: keyof typeof DEFINITIONS): void =>
    assertDefinition(registry, instance, what, value, DEFINITIONS[kind]);
  check('its definition', plugin, 'plugin');
  const owned = <T>(what: string, value: T): { readonly owner: string; readonly value: T } => {
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
      registry.addOffer(name, CHAT, deepFreeze(deps.egress.outfit(provider, way)));
    },
    offer(operation, offer) {
      assertKind(name, plugin, 'an offer', 'provider', 'tts');
      assertOffer(name, `an offer for ${operation}`, offer);
      checkOffer(registry, instance, operation, offer);
      registry.addOffer(name, operation, deepFreeze(deps.egress.outfit(offer, way)));
    },
    operation(definition) {
      assertKind(name, plugin, 'an operation', 'operation');
      registerOperation(registry, name, definition);
      check(`the operation "${definition.name}"`, definition, 'operation');
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
    gather<T>(topic: string, read: () => T | Promise<T>) {
      const key = `${group}.${name}:${topic}`;
      deps.readers.set(key, () => runOwned(name, read));
      return () => deps.gatherer.gather(key) as Promise<readonly T[]>;
    },
    personalData(data) {
      check(`the personal data "${data.name}"`, data, 'personalData');
      registry.claim(registry.personalData, 'personal data', `${name} ${data.name}`, name, data, data.name);
    },
    announce(announcement) {
      check('an announcement', announcement, 'announcement');
      registry.announcements.push(announcement);
    },
    offerSignIn(link) {
      check('a way to sign in', link, 'signInLink');
      registry.signInLinks.push(link);
    },
    onRegistered: (registered) => void registry.registered.push(owned('onRegistered', registered)),
    onReady: (ready) => void registry.ready.push(owned('onReady', ready)),
    onClose: (close) => void registry.closers.push(owned('onClose', close)),
  };
}

/** What is called at a vendor's. Throws for one that could not be called. */
function assertOffer(owner: string, what: string, offer: Offer): void {
  assertMembers(owner, what, offer, ['error']);
  if (
    offer.transport === undefined &&
    !/^https?:$/.test(URL.canParse(offer.baseUrl) ? new URL(offer.baseUrl).protocol : '')
  )
    throw new PluginError(owner, `has ${what} with the base URL "${offer.baseUrl}": write https://api.example.com/v1`);
}

/** Those of an operation that a plugin brings may have members of its own, which that plugin's types name; core's own are closed. */
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
      `is of kind "${kind}" and registers ${what}, which plugins of kind ${kinds.join(' and ')} do`,
    );
}

function registerCommand(registry: Registry, owner: string, plugin: Plugin, command: Command): void {
  if (!plugin.commands?.some((listed) => listed.name === command.name))
    throw new PluginError(
      owner,
      `registers the command "${command.name}" and does not list it: commands: [{ name: '${command.name}', summary: '…' }]`,
    );
  for (const part of command.subcommands ?? [command])
    assertMembers(owner, `the command "${[...new Set([command.name, part.name])].join(' ')}"`, part, ['run']);
  registry.claim(registry.commands, 'command', command.name, owner, command);
}

function registerOperation(registry: Registry, owner: string, definition: OperationDefinition): void {
  if (OWN_OPERATIONS.includes(definition.name))
    throw new PluginError(owner, `registers the operation "${definition.name}", which belongs to core`);
  assertSchema(owner, `the request of the operation "${definition.name}"`, definition.request);
  assertMembers(owner, `the operation "${definition.name}"`, definition, ['estimate', 'attempt', 'isResponse']);
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

/** What a plugin gave as a hook, as an entry of the registry. */
export function toHookEntry<N extends HookName>(owner: string, name: N, hook: Hook<N> | undefined): HookEntry {
  if (typeof hook === 'function') return { owner, name, handler: hook as HookEntry['handler'] };
  // A plugin in JavaScript may give anything; what is no hook is refused when it is added.
  const { handler, order, operations } = (hook ?? {}) as Partial<HookObject<N>>;
  return {
    owner,
    name,
    handler: handler as HookEntry['handler'],
    ...(order !== undefined && { order }),
    ...(operations !== undefined && { operations }),
  };
}

/** What calls offer plugins once a generation is assembled; until then a plugin may register, but not call models. */
export interface CallServices {
  chat(request: ChatRequest, context: CallContext): Promise<ChatResponse | AsyncIterable<ChatChunk>>;
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  /** Filled in where requests of clients are read. */
  draft: PluginApi['draft'];
  readonly sendTo: PluginApi['sendTo'];
  readonly checkEffects: PluginApi['checkEffects'];
  estimate(call: Call, maxTokens?: number): Metered;
  limitOutput(call: Call, tokens: number): void;
  models(principal?: Principal): readonly ModelRow[];
  problemOfModel: PluginApi['problemOfModel'];
  readonly catalog: ModelCatalog;
  listModels: PluginApi['listModels'];
  useModelTable: PluginApi['useModelTable'];
  routing(): RoutingState;
}

/** Opens the store; it reports each of its operations to the watcher. */
export type OpenStore = (observe: StoreWatcher) => Promise<Store>;

/** Who asks for a kept value: an instance of a generation. */
export interface KeptUser {
  keep<T>(name: string, make: () => T, close?: (kept: T) => void | Promise<void>): T;
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
  /** Absent while the store plugin itself is set up. */
  readonly store?: Store;
  /** What operators changed; absent while the store plugin itself is set up. */
  readonly audit?: AuditLog;
  /** The gateway's own records; absent as `audit` is. */
  readonly records?: <T>(name: string) => Records<T>;
  /** Filled in once all plugins are set up. */
  readonly ready: { services?: CallServices };
  readonly openStore: (owner: string, open: OpenStore, probe?: () => Promise<string>) => void;
  readonly keptUser: (instance: string) => KeptUser;
  readonly redact: (text: string) => string;
  readonly egress: Pick<Egress, 'wayOf' | 'outfit'>;
  /** Absent as `audit` is. */
  readonly gateway?: GatewayView;
}

/** An instance as its API is made for it. */
export interface ApiInstance {
  readonly group: string;
  readonly name: string;
  readonly plugin: Plugin;
  readonly config: Readonly<Record<string, unknown>>;
  readonly egress?: EgressRules | undefined;
}
