import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js';
import type Koa from 'koa';
import { createAjv, createValidatorFinder } from '../../config/ajv.ts';
import { findMistakes } from '../../config/check-definition.ts';
import type { GatewayConfig, PluginInstance } from '../../config/core-schema.ts';
import { listVariables } from '../../config/interpolate.ts';
import { type LoadedConfig, meets } from '../../config/load-config.ts';
import { ConfigError } from '../../config/problems.ts';
import { CHAT, COUNT, type OfferOf, type Operation } from '../../contract/call.ts';
import type { Members } from '../../contract/definitions.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import type { PartReport, PluginReport } from '../../contract/gateway.ts';
import { HOOKS } from '../../contract/hooks.ts';
import { isObject, type Schema } from '../../contract/json.ts';
import { didYouMean } from '../../contract/nearest.ts';
import type { AgentDefinition, OperationDefinition } from '../../contract/operation.ts';
import {
  type Announcement,
  API_VERSION,
  type Command,
  type Log,
  OptionError,
  type PersonalData,
  type Plugin,
  type RefusalWatcher,
  type Route,
  type SignInLink,
  type UpgradeHandler,
  type UpgradeOptions,
} from '../../contract/plugin.ts';
import type { Offer } from '../../contract/provider.ts';
import type { GaugeDefinition, StoreWatcher } from '../../contract/units.ts';
import type { HookBook } from './hook-guard.ts';
import type { HookEntry } from './hook-runner.ts';
import { redactText } from './plugin-secrets.ts';

/** Startup error of a plugin; its message names the plugin. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  readonly plugin: string;
  constructor(plugin: string, message: string, options?: ErrorOptions) {
    super(`plugin "${plugin}": ${redactText(plugin, message)}`, options);
    this.plugin = plugin;
  }
}

/**
 * Sets up the configured plugins. If an optional plugin fails, starts again without it and without its registrations; repeats this
 * for each failing one.
 */
export async function setUpIsolated<T>(
  loaded: LoadedConfig,
  log: Log,
  setUp: (loaded: LoadedConfig) => Promise<T>,
): Promise<T> {
  try {
    if (loaded.omitted) refuseMissing(loaded);
    return await setUp(loaded);
  } catch (error) {
    const without = omitInstance(loaded, error);
    if (!without) throw error;
    const [left] = without.omitted.slice(-1);
    log.error({ plugin: left?.instance.name, err: error }, 'an optional plugin cannot be set up and is not loaded');
    return await setUpIsolated(without, log, setUp);
  }
}

/**
 * Removes the targets of a skipped provider from aliases. An alias without other targets keeps them, so that errors of its calls
 * name the missing provider.
 */
function withoutTargets(
  { models, routes }: GatewayConfig,
  { kind, name }: PluginInstance,
): Pick<GatewayConfig, 'models' | 'routes'> {
  if (kind !== 'provider' && kind !== 'tts') return { models, routes };
  const isThere = (target: string): boolean => !target.startsWith(`${name}/`);
  const filter = <T>(all: readonly T[], textOf: (each: T) => string): readonly T[] => {
    const others = all.filter((each) => isThere(textOf(each)));
    return others.length === 0 ? all : others;
  };
  const mapped = <T>(rows: Readonly<Record<string, T>>, change: (row: T) => T): Readonly<Record<string, T>> =>
    // Without a prototype, like the originals: lookups use names from untrusted callers.
    Object.assign(
      Object.create(null),
      Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, change(row)])),
    );
  return {
    models: mapped(models, (targets) => filter(targets, (target) => target)),
    routes: mapped(routes, ({ onOverflow, ...route }) => ({
      ...route,
      targets: filter(route.targets, ({ to }) => to),
      ...(onOverflow !== undefined && isThere(onOverflow) && { onOverflow }),
    })),
  };
}

/** Rejects a plugin that requires a skipped one. */
function refuseMissing({ config, plugins, omitted = [] }: LoadedConfig): void {
  for (const [at, { name }] of config.instances.entries())
    for (const needed of plugins[at + 1]?.requires ?? [])
      if (!plugins.some((plugin) => meets(plugin, needed)))
        throw new PluginError(
          name,
          `needs "${needed}", which could not be set up. Left out: ${omitted.map(({ instance }) => instance.name).join(', ')}`,
        );
}

/** Returns the configuration without the plugin that caused an error; undefined if that plugin is required. */
function omitInstance(loaded: LoadedConfig, error: unknown): Required<LoadedConfig> | undefined {
  const failure = error instanceof ConfigError ? error.cause : error;
  if (!(failure instanceof PluginError)) return undefined;
  const { config, plugins } = loaded;
  const at = config.instances.findIndex(({ name }) => name === failure.plugin);
  const instance = config.instances[at];
  if (instance?.isRequired !== false) return undefined;
  const isLeft = (_: unknown, index: number): boolean => index !== at;
  return {
    ...loaded,
    config: { ...config, ...withoutTargets(config, instance), instances: config.instances.filter(isLeft) },
    // The first plugin is the store's.
    plugins: [...plugins.slice(0, 1), ...plugins.slice(1).filter(isLeft)],
    omitted: [...(loaded.omitted ?? []), { instance, reason: failure.message }],
  };
}

export interface Attributed<T> {
  readonly owner: string;
  readonly value: T;
}

type Table<T> = Map<string, Attributed<T>>;

/**
 * Registrations of all plugins, with their owners. Open during set-up, frozen before the gateway listens. A conflict of two plugins
 * is an error that names both.
 */
export class Registry {
  readonly operations: Table<OperationDefinition> = new Map();
  readonly dialects: Table<DialectDefinition> = new Map();
  /** By operation and instance, such as `chat openai`. */
  readonly offers: Table<{ readonly operation: string; readonly offer: Offer }> = new Map();
  readonly agents: Table<AgentDefinition> = new Map();
  readonly commands: Table<Command> = new Map();
  readonly routes: Table<Route> = new Map();
  readonly upgrades: Table<UpgradeHandler> = new Map();
  /** Subprotocol prefixes with keys, by websocket path. */
  readonly keyProtocols = new Map<string, string>();
  readonly schemas: Table<Schema> = new Map();
  readonly shared: Table<string> = new Map();
  readonly gauges: Table<GaugeDefinition> = new Map();
  readonly parts: Table<() => readonly PartReport[]> = new Map();
  readonly storeWatchers: StoreWatcher[] = [];
  readonly refusalWatchers: RefusalWatcher[] = [];
  readonly middleware: Attributed<Koa.Middleware>[] = [];
  readonly hooks: HookEntry[] = [];
  readonly registered: Attributed<() => void>[] = [];
  readonly ready: Attributed<() => void | Promise<void>>[] = [];
  readonly closers: Attributed<() => void | Promise<void>>[] = [];
  readonly announcements: Announcement[] = [];
  readonly signInLinks: SignInLink[] = [];
  readonly personalData: Table<PersonalData> = new Map();
  /** Unknown members of definitions, from plugins for a newer contract: they have no effect. */
  readonly unknownMembers: { readonly owner: string; readonly message: string }[] = [];
  /** Services that plugins provide to each other, by name. */
  readonly services: Table<unknown> = new Map();
  #frozen = false;

  /**
   * Ends registration; only `closers` and `announcements` may grow after this. Throws for hooks of unknown operations.
   * `switchedOff` lists the operations that the configuration could enable.
   */
  freeze(switchedOff: readonly string[] = []): void {
    this.#frozen = true;
    const known = [...new Set([CHAT, COUNT, ...this.operations.keys(), ...switchedOff])];
    for (const { owner, name, operations = [] } of this.hooks)
      for (const operation of operations)
        if (!known.includes(operation)) refuseOperation(owner, `hook "${name}" is for`, operation, known);
    for (const { owner, value } of this.offers.values())
      if (!known.includes(value.operation)) refuseOperation(owner, 'has an offer for', value.operation, known);
  }

  claim<T>(table: Table<T>, what: string, key: string, owner: string, value: T, label = key): void {
    this.#assertOpen(owner, what);
    if (typeof key !== 'string' || key === '')
      throw new PluginError(owner, `registers ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what} without a name`);
    const taken = table.get(key);
    if (taken)
      throw new PluginError(
        owner,
        `plugin_conflict: ${what} "${label}" is already registered by plugin "${taken.owner}". Remove one of the two, or give one another instance name.`,
      );
    table.set(key, { owner, value });
  }

  addOffer(owner: string, operation: string, offer: Offer): void {
    this.claim(this.offers, `offer for ${operation}`, `${operation} ${owner}`, owner, { operation, offer }, owner);
  }

  /** Returns the offers of instances for an operation, by instance name. */
  offersOf<O extends Operation>(operation: O): ReadonlyMap<string, OfferOf<O>> {
    const own = [...this.offers.values()].filter(({ value }) => value.operation === operation);
    // The API's types ensure that `addOffer` receives offers of its operation only.
    return new Map(own.map(({ owner, value }) => [owner, value.offer as OfferOf<O>]));
  }

  addRoute(owner: string, route: Route): void {
    assertRoute(owner, route);
    const shape = routeShape(route);
    const known = this.routes.get(shape)?.value;
    if (known && route.isFallback) return;
    if (known?.isFallback) this.routes.delete(shape);
    this.claim(this.routes, 'route', shape, owner, route, `${route.method} ${route.path}`);
  }

  addUpgrade(owner: string, path: string, handler: UpgradeHandler, { keyProtocol }: UpgradeOptions = {}): void {
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- a plugin may be JavaScript
    if (typeof handler !== 'function' || !path?.startsWith?.('/'))
      throw new PluginError(owner, 'api.upgrade() takes a path that begins with /, and a function');
    this.claim(this.upgrades, 'websocket', path, owner, handler);
    if (keyProtocol !== undefined) this.keyProtocols.set(path, keyProtocol);
  }

  /** Rejects plugin routes that core has itself: precedence must not depend on chance. */
  refuseRoutesOf(core: readonly Route[]): void {
    const own = new Set(core.map(routeShape));
    for (const { owner, value } of this.routes.values())
      if (own.has(routeShape(value)))
        throw new PluginError(owner, `plugin_conflict: route "${value.method} ${value.path}" belongs to core`);
  }

  addMiddleware(owner: string, middleware: Koa.Middleware): void {
    this.#assertOpen(owner, 'middleware');
    if (typeof middleware !== 'function') throw new PluginError(owner, 'api.use() takes a Koa middleware function');
    this.middleware.push({ owner, value: middleware });
  }

  addHook(entry: HookEntry): void {
    this.#assertOpen(entry.owner, `hook "${entry.name}"`);
    assertHook(entry);
    this.hooks.push(entry);
  }

  /**
   * Sorts registrations of per-call code in the order of the configuration, even where dependencies required another set-up order.
   */
  sortBy(instances: readonly string[]): void {
    const order = new Map(instances.map((name, at) => [name, at]));
    const byInstance = (a: { readonly owner: string }, b: { readonly owner: string }): number =>
      (order.get(a.owner) ?? 0) - (order.get(b.owner) ?? 0);
    this.hooks.sort(byInstance);
    this.middleware.sort(byInstance);
  }

  /** Rejects an instance without effect for its kind: a provider without offers, or an auth plugin without authentication. */
  assertTakesPart(
    owner: string,
    { kind, provides = [] }: Pick<Plugin, 'kind' | 'provides'>,
    { hooks: bounds = {}, scope = {} }: Pick<PluginInstance, 'hooks' | 'scope'>,
  ): void {
    const has = (table: Table<unknown>): boolean => [...table.values()].some((entry) => entry.owner === owner);
    const missing =
      (kind === 'provider' && !has(this.offers) && 'provider: it calls neither api.provider() nor api.offer()') ||
      (kind === 'auth' &&
        !this.hooks.some((hook) => hook.owner === owner && hook.name === 'authenticate') &&
        'way to check a caller: it has no "authenticate" hook') ||
      (kind === 'operation' && !has(this.operations) && 'operation: it does not call api.operation()') ||
      (kind === 'dialect' && !has(this.dialects) && 'dialect: it does not call api.dialect()') ||
      (kind === 'tts' && !has(this.offers) && "speech: it does not call api.offer('speech', …)");
    if (missing) throw new PluginError(owner, `is of kind "${kind}" and registers no ${missing}`);
    for (const service of provides)
      if (this.services.get(service)?.owner !== owner)
        throw new PluginError(
          owner,
          `declares that it provides "${service}", but does not call api.provide() in setup()`,
        );
    const own = this.hooks.filter((hook) => hook.owner === owner);
    if (bounds.timeoutMs !== undefined && own.length === 0) refuseBound(owner, 'timeout', 'hook');
    if (bounds.onFailure !== undefined && own.every(({ name }) => HOOKS[name].kind === 'observe'))
      refuseBound(owner, 'onFailure', 'hook that a call waits for');
    if (scope.showVerdicts && own.length === 0) refuseBound(owner, 'showVerdicts', 'hook');
    if (scope.beside && own.every(({ name }) => name !== 'prepare')) refuseBound(owner, 'beside', '"prepare" hook');
  }

  #assertOpen(owner: string, what: string): void {
    if (this.#frozen) throw new PluginError(owner, `registers ${what} after setup(), when registration has ended`);
  }
}

function refuseOperation(owner: string, what: string, operation: string, known: readonly string[]): never {
  const remedy = didYouMean(operation, known) ?? `Operations are: ${known.join(', ')}.`;
  throw new PluginError(owner, `${what} the operation "${operation}", which is not registered. ${remedy}`);
}

function refuseBound(owner: string, option: string, what: string): never {
  const cause = new OptionError(`/${option}`, `has no effect: this plugin registers no ${what}`, 'Remove it.');
  throw new PluginError(owner, cause.message, { cause });
}

/** Validates a hook of a plugin in JavaScript at startup instead of at the first request. */
function assertHook({ owner, name, handler, order, operations }: HookEntry): void {
  const fail = (message: string): never => {
    throw new PluginError(owner, message);
  };
  const names = Object.keys(HOOKS);
  if (!names.includes(name))
    fail(`there is no hook "${name}". ${didYouMean(name, names, 1) ?? ''} Hooks are: ${names.join(', ')}.`);
  if (typeof handler !== 'function') fail(`hook "${name}" has no function: api.hook('${name}', (…) => { … })`);
  if (order !== undefined && !['pre', 'post'].includes(order))
    fail(`hook "${name}" has the invalid order "${String(order)}"; use "pre", "post" or none`);
  if (operations !== undefined && !(Array.isArray(operations) && operations.length > 0))
    fail(`hook "${name}" has invalid operations; use a list of names, such as operations: ['chat']`);
}

/**
 * Rejects a definition with an unknown member or value: a misspelled one without effect could leave open what it should close.
 * Members of a newer contract that resemble no known member are recorded instead.
 */
export function assertDefinition(
  registry: Registry,
  { name: owner, plugin: { apiVersion } }: { readonly name: string; readonly plugin: { readonly apiVersion: number } },
  what: string,
  value: unknown,
  members: Members,
): void {
  for (const { message, hint, isForeign } of findMistakes(value, members)) {
    if (!isForeign || apiVersion <= API_VERSION) throw new PluginError(owner, `${what} ${message}. ${hint}`);
    registry.unknownMembers.push({
      owner,
      message: `plugin "${owner}" is made for plugin API ${apiVersion}, but this gateway has ${API_VERSION}: ${what} ${message}, so it has no effect`,
    });
  }
}

const METHODS: readonly unknown[] = Object.freeze(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** Validates a route, because later errors would not name its plugin. */
function assertRoute(owner: string, route: Route): void {
  const { method, path, auth, role, scope, responses, handler, body, query, summary } = route as Partial<Route>;
  const label = `route "${String(method)} ${String(path)}"`;
  const isCredential = (kind: unknown): boolean => kind === 'key' || kind === 'token';
  const wrong =
    (!METHODS.includes(method) && `has no method of ${METHODS.join(', ')}`) ||
    ((typeof path !== 'string' || !path.startsWith('/')) && 'needs a path that begins with /') ||
    (/(?<!\\)(?:[:*](?![\w"])|[()[\]+?!])/.test(String(path)) &&
      'has an invalid path: parameters are :name, other signs need a \\ before them') ||
    (typeof handler !== 'function' && 'has no handler function: handler(ctx) { … }') ||
    ((typeof summary !== 'string' || summary === '') && `has no summary: add one line about its purpose`) ||
    (!(auth === 'none' || (Array.isArray(auth) && auth.length > 0 && auth.every(isCredential))) &&
      `has no auth: use auth: 'none', or a list of 'key' and 'token'`) ||
    (role !== undefined && auth === 'none' && "has a role, but auth: 'none' allows every caller") ||
    (scope !== undefined && role === undefined && "has a scope without role: 'admin', so every key could call it") ||
    ((!isObject(responses) || Object.keys(responses).length === 0) && `has no responses: { 200: 'What it is.' }`) ||
    (body !== undefined && !isObject(body) && "has a body schema that is not an object: body: { type: 'object', … }") ||
    (query !== undefined &&
      !isObject(query) &&
      "has a query schema that is not an object: query: { type: 'object', … }");
  if (wrong) throw new PluginError(owner, `${label} ${wrong}`);
}

/** Validates that a registration of a plugin in JavaScript has all functions and object members. */
export function assertMembers(
  owner: string,
  what: string,
  value: unknown,
  functions: readonly string[],
  objects: readonly string[] = [],
): void {
  if (typeof value !== 'object' || value === null) throw new PluginError(owner, `gives ${String(value)} for ${what}`);
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of functions)
    if (typeof members[name] !== 'function')
      throw new PluginError(owner, `has ${what} without the required function ${name}()`);
  for (const name of objects)
    if (typeof members[name] !== 'object' || members[name] === null)
      throw new PluginError(owner, `has ${what} without the required "${name}"`);
}

/** Validates a schema that a plugin registers. */
export function assertSchema(owner: string, what: string, schema: unknown): void {
  if (!isObject(schema)) throw new PluginError(owner, `${what} is not an object, so it is not a JSON schema`);
}

/** Returns the pattern of a route, independent of parameter names. */
function routeShape({ method, path }: Route): string {
  return `${method} ${path.replaceAll(/(?<!\\)([:*])\w+/g, '$1')}`;
}

function asOwner<T>(owner: string, what: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof PluginError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError(owner, `${what} does not compile: ${reason}`, { cause });
  }
}

/** Compiles the schemas of requests. */
export interface RequestSchemas {
  /** Throws a PluginError for an invalid schema. */
  compile(owner: string, schema: Schema, what: string): ValidateFunction;
  /** Returns the JSON texts of the compiled schemas. */
  texts(): readonly string[];
}

const findValidator = createValidatorFinder('requests');

/** Text and validator of frozen schemas: plugins register the same objects again at each reload. */
const compiled = new WeakMap<Schema, { readonly text: string; readonly validate: ValidateFunction }>();

/** Matches references to other schemas: the meaning of such a text depends on the others. */
export const REFERS_TO_OTHERS = /"\$(?:ref|dynamicRef)":"[^#]/;

/**
 * Compiles the schemas of one configuration; `schemas` are those that others refer to by their `$id`. Throws a PluginError for an
 * invalid one.
 */
export function createRequestSchemas(schemas: readonly Attributed<Schema>[]): RequestSchemas {
  const others = JSON.stringify(schemas.map(({ value }) => value));
  const texts = new Set<string>();
  const textsById = new Map<unknown, string>();
  let ajv: Ajv2020 | undefined;
  const compile = (schema: Schema): ValidateFunction => {
    ajv ??= createAjvWith(schemas);
    return ajv.compile(schema);
  };
  const find = (owner: string, schema: Schema, what: string): ValidateFunction => {
    const known = compiled.get(schema);
    const text = known?.text ?? JSON.stringify(schema);
    const { $id } = schema;
    return asOwner(owner, what, () => {
      // Checked here, because Ajv receives only schemas without a precompiled validator.
      if ($id !== undefined && (textsById.get($id) ?? text) !== text)
        throw new TypeError(`another schema has the $id "${String($id)}"`);
      textsById.set($id, text);
      texts.add(text);
      if (known) return known.validate;
      const isAlone = !REFERS_TO_OTHERS.test(text);
      const validate = findValidator(isAlone ? text : text + others, () => compile(schema));
      if (isAlone && Object.isFrozen(schema)) compiled.set(schema, { text, validate });
      return validate;
    });
  };
  // An invalid schema stops startup, even without a reference to it.
  for (const { owner, value } of schemas) find(owner, value, `the schema "${value.$id}"`);
  return {
    compile: find,
    texts: () => [...texts],
  };
}

function createAjvWith(schemas: readonly Attributed<Schema>[]): Ajv2020 {
  const ajv = createAjv('requests');
  for (const { owner, value } of schemas) asOwner(owner, `the schema "${value.$id}"`, () => ajv.addSchema(value));
  return ajv;
}

/** Compiles the schema of a route's body or query; undefined without one. Throws a PluginError for an invalid one. */
export type CompileRoute = (owner: string, route: Route, what: 'body' | 'query') => ValidateFunction | undefined;

/** Compiles the schemas of routes together with those of all requests of their generation. */
export function createRouteCompiler(requests: RequestSchemas): CompileRoute {
  return (owner, route, what) => {
    const schema = route[what] as Schema | undefined;
    return schema && requests.compile(owner, schema, `the ${what} schema of ${route.method} ${route.path}`);
  };
}

/** Hosts of libraries with connections of their own, which the gateway does not know. */
function ownConnections(offers: readonly Attributed<{ readonly offer: Offer }>[]): readonly string[] {
  const found = offers.flatMap(({ value: { offer } }) => offer.ownConnections ?? []);
  return [...new Set(found)].map((name) => `any (own connections of ${name})`);
}

/** Describes all instances of a configuration and their registrations: the store's first, skipped ones last. */
export function describePlugins(
  { raw, config, builtins, plugins, omitted = [] }: LoadedConfig,
  registry: Registry,
  book: HookBook,
): readonly PluginReport[] {
  const left = omitted.map(({ instance }) => instance);
  const hooksOf = groupByOwner(registry.hooks, ({ owner }) => owner);
  const routesOf = groupByOwner(registry.routes, ([, { owner }]) => owner);
  const commandsOf = groupByOwner(registry.commands, ([, { owner }]) => owner);
  const offersOf = groupByOwner(registry.offers.values(), ({ owner }) => owner);
  return [config.store, ...config.instances, ...left].map(({ name, plugin, kind, pointer }, at) => {
    const hooks = hooksOf(name);
    const problem = omitted.find(({ instance }) => instance.name === name)?.reason;
    return {
      name,
      plugin,
      kind,
      hosts: [...(plugins[at]?.hosts ?? []), ...ownConnections(offersOf(name))],
      permissions: plugins[at]?.permissions ?? [],
      ...(problem !== undefined && { problem }),
      environment: listVariables(raw.value, pointer),
      isBuiltin: builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin),
      hooks: hooks.map(({ name: hook, order }) => (order ? `${hook} (${order})` : hook)),
      counts: [...new Set(hooks.map((entry) => entry.name))].map((hook) => book.countsOf(name, hook)),
      parts: registry.parts.get(name)?.value() ?? [],
      routes: routesOf(name).map(([label]) => label),
      commands: commandsOf(name).map(([command]) => command),
    };
  });
}

/** Groups registrations by the instance that made them. */
function groupByOwner<T>(entries: Iterable<T>, ownerOf: (entry: T) => string): (owner: string) => readonly T[] {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const owner = ownerOf(entry);
    const group = groups.get(owner);
    if (group) group.push(entry);
    else groups.set(owner, [entry]);
  }
  return (owner) => groups.get(owner) ?? [];
}
