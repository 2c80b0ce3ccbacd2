import type { Got } from 'got';
import type Keyv from 'keyv';
import type Koa from 'koa';
import type { AuditChange, AuditPage, AuditQuery } from './audit.ts';
import type { BudgetRule } from './budgets.ts';
import type {
  Call,
  CredentialKind,
  ModelCatalog,
  OfferOf,
  Operation,
  OperationContext,
  Principal,
  RequestOf,
  RoutingState,
  Services,
  Target,
} from './call.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { ChatContext } from './chat-tools.ts';
import type { Command } from './command.ts';
import type { DialectDefinition } from './dialect.ts';
import type { GatewayView, PartReport, SecretsContext, SecretsReader } from './gateway.ts';
import type { Hook, HookName } from './hooks.ts';
import type { FromSchema, Schema } from './json.ts';
import type {
  AgentDefinition,
  AttemptResponse,
  CallResult,
  ChatDraft,
  Metered,
  OperationDefinition,
} from './operation.ts';
import type { ProblemAt } from './pointers.ts';
import type { HttpRequest, ModelInfo, ModelTable, Provider } from './provider.ts';
import type { RefusalWatcher, Route, RouteContext, UpgradeHandler, UpgradeOptions } from './route.ts';
import type { AccountDocuments, Ledger, Records, Store } from './store.ts';
import type { GaugeDefinition, Log, StoreWatcher, TagRules } from './units.ts';

export type { CallContext, OperationContext } from './call.ts';
export type * from './command.ts';
export type * from './route.ts';
export type { Log } from './units.ts';

export const API_VERSION = 1;

export const PLUGIN_KINDS = Object.freeze([
  'provider',
  'auth',
  'agent',
  'tts',
  'operation',
  'dialect',
  'store',
  'policy',
  'secrets',
] as const satisfies readonly (keyof ApiOfKind)[]);
export type PluginKind = (typeof PLUGIN_KINDS)[number];

/**
 * Permissions that a plugin declares beyond those of every plugin.
 * `ledger`: {@link BooksApi.ledger}, with access to all accounts and calls and to transfers of money.
 * `records`: {@link BooksApi.records} and {@link OperatorsApi.allPersonalData}: users, accounts and plans, and erasure of personal
 * data.
 * `operators`: {@link PluginApi.operators}: the operators' view of the gateway, and the audit log.
 * `credentials`: credentials of callers (the hook `authenticate`; auth plugins need no permission for it) and provider keys ({@link
 * ModelsApi.offers}).
 * `hosts`: {@link PluginApi.fetch} to undeclared hosts.
 */
export const PERMISSIONS = Object.freeze(['ledger', 'records', 'operators', 'credentials', 'hosts'] as const);
export type Permission = (typeof PERMISSIONS)[number];

/**
 * Plugin: data and one `setup` function. `configSchema` is a JSON Schema of type object. It supports these keywords in addition to
 * the standard ones: `secret: true` (masked wherever the configuration is shown), `format: "duration"` (`30s`, `500ms`, `2m`),
 * `format: "money"` (US dollars as a decimal string or number), `format: "size"` (`20mb`), `format: "url"` and `format: "path"` (a
 * relative path is resolved against the folder of the configuration file).
 */
export interface Plugin<S extends object = object, K extends PluginKind = PluginKind> {
  /** Folder or file name. Also the instance name, unless the configuration sets another. */
  readonly name: string;
  readonly kind: K;
  readonly apiVersion: 1;
  readonly configSchema?: S;
  /** Hosts (`name` or `name:port`) that it may connect to, in addition to those of its `format: "url"` options. */
  readonly hosts?: readonly string[];
  /** Permissions beyond those of every plugin ({@link PERMISSIONS}); operators see them before they add it. */
  readonly permissions?: readonly Permission[];
  /** Names of its services for {@link PluginApi.provide}. */
  readonly provides?: readonly string[];
  /** Required plugins or services, by name; a missing one is a startup error. */
  readonly requires?: readonly string[];
  /** Store plugins only: `one` if atomic data lives in one process, so that workers cannot share it. Default: `many`. */
  readonly processes?: 'one' | 'many';
  /**
   * Top-level configuration key with this plugin's options, in place of the section for its kind. If the key is missing, the
   * options are `{}`, or null if the schema accepts it.
   */
  readonly section?: string;
  /** Returns the problems that would make `setup` fail, without side effects; run by `tollgate check`. */
  check?(config: PluginConfig<S>, context: CheckContext): readonly Problem[] | Promise<readonly Problem[]>;
  /** Secrets plugins only: opens the secrets manager for references such as `${vault:…}`, before the configuration is validated. */
  secrets?(config: PluginConfig<S>, context: SecretsContext): SecretsReader;
  /** Auth plugins only: supported kinds of credentials. Default: keys and tokens. */
  readonly credentials?: readonly CredentialKind[];
  /**
   * Auth plugins only: returns whether a text has the form of its credentials, valid or not. Some clients send a placeholder in
   * addition to the real credential. Without this function any text may be a credential, and requests with two different ones are
   * rejected.
   */
  isCredential?(text: string): boolean;
  /** Commands that it registers with `api.command`, for `tollgate --help`. */
  readonly commands?: readonly { readonly name: string; readonly summary: string }[];
  /** Registers everything; registration ends with startup. The config is validated, interpolated and frozen. */
  setup(api: ApiOfKind[K], config: PluginConfig<S>): void | Promise<void>;
}

/** Configuration problem, found by a plugin's `check`. */
export interface Problem {
  /** JSON pointer into the plugin's config, such as `/models/0`. Default: the whole config. */
  readonly path?: string;
  /** Description, as the end of a sentence that begins with the path. Contains no secret. */
  readonly message: string;
  /** Fix, as a whole sentence. */
  readonly hint?: string;
}

/** Context of a plugin's `check`, in addition to its configuration. */
export interface CheckContext {
  /** Base of relative paths. Absolute. */
  readonly baseDir: string;
  readonly settings: GatewaySettings;
}

/**
 * Type of a validated config: {@link FromSchema} of its schema, or an open object. The tuple prevents TypeScript from expanding
 * `FromSchema<object>` while it infers S, which causes TS2589 for any schema with `required`.
 */
export type PluginConfig<S extends object> = object extends S
  ? Readonly<Record<string, unknown>>
  : [S] extends [object]
    ? FromSchema<S>
    : never;

/** Returns its argument, with the type of `config` inferred. Other code sees only a plugin of its kind. */
export function definePlugin<const S extends object, const K extends PluginKind = PluginKind>(
  plugin: Plugin<S, K>,
): Plugin<object, K>;
export function definePlugin(plugin: Plugin): Plugin {
  return plugin;
}

export interface ModelRow {
  /** `provider/model` or an alias. */
  readonly id: string;
  readonly owned_by: string;
}

/** Caller of a model, for {@link ModelsApi.problemOf}. */
export interface ModelCaller {
  readonly principal: Principal;
  readonly plan?: { readonly name: string; readonly plan: Plan } | undefined;
  /** Returns whether a balance or budget limits its calls to a target, which then needs a price. */
  isLimited(target: Target): boolean;
}

/** Problem of a configured model, as `tollgate check` also reports it. */
export interface ModelProblem {
  /** Cause and fix, in whole sentences without secrets. */
  readonly text: string;
  /** True if every call of the model fails. False if only some fail or their cost is wrong. */
  readonly stops: boolean;
}

/** Personal data that an instance stores. */
export interface PersonalData {
  /** Plural noun, such as `keys`. */
  readonly name: string;
  /** Returns the number of items of a user. */
  count(user: PersonOf): Promise<number>;
  /** Erases or anonymizes the items and returns their number. A second call finds none. */
  erase(user: PersonOf): Promise<number>;
}

/** User with all accounts that paid for them, their own first. */
export interface PersonOf {
  readonly userId: string;
  readonly accounts: readonly string[];
}

/** Read-only documents of another plugin instance. */
export interface SharedDocuments<T = unknown> {
  get(key: string): Promise<T | undefined>;
}

/** Returns the schema violations of a value. */
export type Validate = (value: unknown, schema: Schema) => readonly ProblemAt[];

/** Model tables, such as `config/models.json`. */
export interface ModelTables {
  /** Returns the table of this release. */
  shipped(): ModelTable;
  /** Returns the problems of a table. */
  problemsOfTable(table: unknown): readonly string[];
  /** Returns the problems of a vendor's model list. */
  problemsOfModels(models: readonly ModelInfo[]): readonly string[];
}

/** Models: list, aliases, and calls for operations other than chat. */
export interface ModelsApi {
  /** Returns the models and aliases that this principal may use. */
  list(principal?: Principal): readonly ModelRow[];
  /** Chat models: ids, facts, prices. */
  readonly catalog: ModelCatalog;
  /** Returns the configured aliases, each with its targets: `provider/model` in the order to try. */
  aliases(): readonly (readonly [alias: string, targets: readonly string[]])[];
  /** Returns the targets of an alias; undefined for an unknown alias. */
  alias(name: string): readonly string[] | undefined;
  /**
   * Returns the known problem of a configured model or alias that blocks calls, makes them fail or bills them wrongly. Undefined if
   * it has no problem. With a caller, also what blocks this caller, by the checks that its calls take. Without one, see
   * `catalog.isConfigured` for a provider's credential.
   */
  problemOf(name: string, caller?: ModelCaller): ModelProblem | undefined;
  /** Returns whether an MCP server of this name is configured, which `servers` of a chat may name. */
  hasServer(name: string): boolean;
  /** Returns the targets (state, errors, latency) and retries of this process. */
  routing(): RoutingState;
  /**
   * Returns the registrations for an operation by instance name; complete once the gateway listens. Provider keys are removed
   * without the permission `credentials`.
   */
  offers<O extends Operation>(operation: O): ReadonlyMap<string, OfferOf<O>>;
  /** Fetches the vendor's own model list with the provider's key. Unvalidated except for the length of ids. */
  listAtProvider(provider: string): Promise<readonly ModelInfo[]>;
  /** Model table of this release, and validation of other tables. */
  readonly tables: ModelTables;
  /** Calls an operation that a plugin registered, through the whole pipeline: limits, fallback, hooks, ledger. */
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  /**
   * Reads one request of a file as if a client had sent it, with the hooks of `count`. Returns the request for the first target
   * that `takes` accepts. Nothing is sent, held or charged. For routes.
   */
  draft(ctx: RouteContext, dialect: string, body: Buffer, takes: (provider: string) => boolean): Promise<ChatDraft>;
  /** Sends a request that is not a call to a provider's endpoint for an operation. Resolves with any status. */
  sendTo(operation: Operation, provider: string, request: HttpRequest, signal?: AbortSignal): Promise<AttemptResponse>;
  /**
   * Throws for a request with effects at the target that this caller is not allowed, and for media URLs other than `https:` at
   * public hosts. Every request passes this gate.
   */
  checkEffects(operation: Operation, target: Target, body: object, principal: Principal): Promise<void>;
}

/** Money, and records shared by all instances. */
export interface BooksApi {
  /**
   * Returns the maximum cost of a call over its targets, by the price table. `maxTokens` replaces the output limit of a chat, or of
   * another call with `max_tokens`.
   */
  estimate(call: Call, maxTokens?: number): Metered;
  /**
   * Sets the output limit in tokens of a chat, or of another call with `max_tokens`. For `reserve` hooks, which know its maximum
   * cost.
   */
  limitOutput(call: Call, tokens: number): void;
  /** All accounts and calls. Requires the permission `ledger`; throws without it. */
  readonly ledger: Ledger;
  /**
   * Records of the gateway: `users`, `accounts`, `plans`. Unlike {@link PluginApi.keyv}, no update is lost. Requires the permission
   * `records`; throws without it.
   */
  records<T>(name: string): Records<T>;
}

/** Operators' view and actions. Requires the permission `operators`; throws without it. */
export interface OperatorsApi {
  /** For routes and commands of operators. */
  readonly gateway: GatewayView;
  /** Writes an operator's change to the audit log, after the change and before the response. */
  audit(change: AuditChange): Promise<void>;
  /** Returns the changes of operators, newest first. */
  auditLog(query: AuditQuery): Promise<AuditPage>;
  /**
   * Replaces the name of an erased user by an id in all entries of the audit log; returns the number of entries. Also requires the
   * permission `records`.
   */
  renameInAuditLog(name: string, id: string): Promise<number>;
  /** Returns all personal data of instances; also requires the permission `records`; complete once the gateway listens. */
  allPersonalData(): readonly PersonalData[];
  /** Returns the schema violations of a value, in the terms of the configuration. */
  readonly validate: Validate;
  /** Replaces the model table for all operations. */
  useModelTable(table: ModelTable): void;
  /**
   * Registers what this process reports about a topic. Returns a function that queries all workers of this gateway and resolves
   * within 2 s with the responses so far. Values travel as JSON.
   */
  gather<T>(topic: string, read: () => T | Promise<T>): () => Promise<readonly T[]>;
  /** Publishes a metric of this process, such as the number of pending writes; one instance owns a name. */
  gauge(gauge: GaugeDefinition): void;
  /** Returns the metrics of all instances; complete once the gateway listens. */
  gauges(): readonly GaugeDefinition[];
  /** Registers what this instance reports about its parts, for `/readyz` and `tollgate plugins`. It must be fast. */
  reportParts(read: () => readonly PartReport[]): void;
  /** Observes the duration of store operations while this configuration is active. Runs in every call, so it must be fast. */
  watchStore(watcher: StoreWatcher): void;
  /** Observes rejected callers of operator routes (401 or 403), for a log. It does not throw. */
  watchRefusals(watcher: RefusalWatcher): void;
  /** Shows a line in the start banner, such as the first API key. Shown once, on the terminal, never logged. */
  announce(announcement: Announcement): void;
  /** Registers a sign-in link that `tollgate start` shows to a person at a terminal. */
  offerSignIn(link: SignInLink): void;
}

/** This instance's part of the gateway's store, and the store's health. */
export interface StoresApi extends Pick<Store, 'kind' | 'sets' | 'counters' | 'health'> {
  readonly stored: AccountDocuments;
  /** Returns documents of this instance that others may read by {@link shared}; one instance owns a name. */
  share<T = unknown>(name: string): Keyv<T>;
  /** Returns the documents that another instance shares under a name; empty if there are none. */
  shared<T = unknown>(name: string): SharedDocuments<T>;
  /** Registers personal data of this instance, so that operators can count and erase it. */
  personalData(data: PersonalData): void;
}

/** API of every plugin. Registering a name twice is an error that names both plugins. */
export interface PluginApi {
  /** Instance name: its key in the configuration. */
  readonly instance: string;
  readonly log: Log;
  /** Settings that several plugins need: plans, billing mode, data folder. */
  readonly settings: GatewaySettings;
  route<const Body extends object>(route: Route<Body>): void;
  /** Serves websockets at a path, for callers with a model key. One instance owns a path. */
  upgrade(path: string, handler: UpgradeHandler, options?: UpgradeOptions): void;
  /** Adds Koa middleware, outermost, before routes. */
  use(middleware: Koa.Middleware): void;
  hook<N extends HookName, const O extends Operation = Operation>(name: N, hook: Hook<N, O>): void;
  /** Registers a command of `tollgate`, such as `keys`; it runs on the configured store, with or without a running gateway. */
  command(command: Command): void;
  /** Returns documents of this instance, private to it. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  readonly stores: StoresApi;
  /**
   * Returns the HTTP client for control-plane calls: limits on time and size, no redirects. It reaches only the hosts of this
   * instance's url-format options and the plugin's `hosts`. Loaded on first use.
   */
  http(): Promise<Got>;
  /**
   * Platform `fetch` with the instance's proxy and certificates, for the hosts of {@link http}; with the permission `hosts`, for
   * all hosts. It has no limits.
   */
  readonly fetch: typeof fetch;
  /**
   * Calls a model through the whole pipeline: limits, fallback, hooks, ledger. Returns a stream if `request.stream` is true. With
   * `servers`, each turn and each tool is a call of its own, and the usage of the response is their sum.
   */
  chat(request: ChatRequest & { readonly stream: true }, context: ChatContext): Promise<AsyncIterable<ChatChunk>>;
  chat(request: ChatRequest & { readonly stream?: false }, context: ChatContext): Promise<ChatResponse>;
  /**
   * Returns an object that survives reloads of the configuration (metrics, local counters, queues). It is created once per instance
   * name and passed to the next generation. It is closed when no generation requests it.
   */
  keep<T>(name: string, make: () => T, close?: (kept: T) => void | Promise<void>): T;
  /** Provides a service under a name that the definition declares: `provides: ['clock']`. One instance owns a name. */
  provide<N extends keyof Services>(name: N, implementation: Services[N]): void;
  /**
   * Returns the service of another plugin, declared by `requires: ['clock']`. The provider is set up first, regardless of its
   * position in the configuration.
   */
  require<N extends keyof Services>(name: N): Services[N];
  /** Replaces secrets of the configuration, and texts that look like credentials, by `[redacted]`. */
  redact(text: string): string;
  /**
   * Runs after all plugins have registered, including for commands and `tollgate check`. It may reject, by an `OptionError`,
   * options that conflict with other registrations. Without side effects.
   */
  onRegistered(registered: () => void): void;
  /** Runs after registration and before the gateway listens. Does not run for commands. */
  onReady(ready: () => void | Promise<void>): void;
  /** Runs at shutdown, in reverse order of registration. */
  onClose(close: () => void | Promise<void>): void;
  readonly models: ModelsApi;
  readonly books: BooksApi;
  readonly operators: OperatorsApi;
}

/** Registers an instance's offer for an operation: an endpoint with its codec. */
interface OffersApi {
  offer<O extends Operation>(operation: O, offer: OfferOf<O>): void;
}

interface ProviderApi extends PluginApi, OffersApi {
  provider(provider: Provider): void;
}

interface TtsApi extends PluginApi, OffersApi {}

interface SchemasApi {
  /** Registers a schema that others may `$ref` by its `$id`. */
  schema(schema: Schema & { readonly $id: string }): void;
}

interface AgentApi extends PluginApi {
  /** Adds an agent to the team. */
  agent(agent: AgentDefinition): void;
  /** Returns all agents that any plugin registered; complete once the gateway listens. */
  agents(): readonly AgentDefinition[];
}

interface OperationApi extends PluginApi, SchemasApi, OffersApi {
  operation<O extends Operation>(definition: OperationDefinition<O>): void;
}

interface DialectApi extends PluginApi, SchemasApi {
  dialect<Body>(definition: DialectDefinition<Body>): void;
}

/** API of store plugins. They are set up before the store exists and register only a function that opens it. */
type StoreApi = Pick<PluginApi, 'instance' | 'log' | 'settings' | 'onClose'> & {
  /**
   * Registers the store. `open` may report the duration of each operation to `observe` (`ledger.reserve`, `counters.take`,
   * `documents.get`), for metrics. `probe`, for `tollgate check --connect`, tests whether `open` would succeed and returns a short
   * description such as `schema 4`. It changes nothing, and rejects as `open` does.
   */
  store(open: (observe: StoreWatcher) => Promise<Store>, probe?: () => Promise<string>): void;
};

/** API of each kind of plugin. */
export interface ApiOfKind {
  readonly provider: ProviderApi;
  readonly auth: PluginApi;
  readonly agent: AgentApi;
  readonly tts: TtsApi;
  readonly operation: OperationApi;
  readonly dialect: DialectApi;
  readonly store: StoreApi;
  readonly policy: PluginApi;
  readonly secrets: PluginApi;
}

/** Combined API of all kinds, as core implements it. */
export type WholeApi = ProviderApi & AgentApi & OperationApi & DialectApi & StoreApi;

/** Plan: requests and tokens per minute, concurrent calls (0 allows none), and permissions other than models. */
export interface Plan {
  /** Models that its accounts may call. Lists of a key ({@link Principal.models}) narrow them further. Default: all. */
  readonly models?: readonly string[];
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
  /** Server tools that callers of this plan may use; the vendor runs them with the operator's account. Default: none. */
  readonly serverTools?: readonly string[];
  /** MCP servers and tools of each chat, such as `mcp:github`. Only those that {@link serverTools} or the key allow. Default: none. */
  readonly chatTools?: readonly string[];
  readonly providers?: Readonly<
    Record<string, { readonly rpm?: number; readonly tpm?: number; readonly concurrency?: number }>
  >;
  /** Spending limits of each of its accounts. */
  readonly budgets?: readonly BudgetRule[];
}

/** Settings of the whole configuration that plugins may read. */
export interface GatewaySettings {
  readonly billing: 'off' | 'track' | 'enforce';
  readonly plans: Readonly<Record<string, Plan>>;
  /** Plan of users whose key and token name none. */
  readonly defaultPlan: string | undefined;
  /** Configured spending limits over all matching calls. */
  readonly budgets: readonly BudgetRule[];
  /** Allowed tags of calls: the values of each name, or `*`. */
  readonly tags: TagRules;
  /** End users of callers' applications: the header that names them, in lower case, and whether reports count by them. */
  readonly endUsers: { readonly header: string | undefined; readonly report: boolean };
  /** Folder that plugins may write to: next to the embedded store, else `./data`. Absolute. */
  readonly dataDir: string;
  /** Folder of the configuration file, the base of relative paths in a config. Absolute. */
  readonly baseDir: string;
  /** URL of the gateway for programs on this machine, as far as the configuration defines it, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** Path prefix of the gateway for browsers and clients, such as `/llm`; routes are registered without it. Default: empty. */
  readonly basePath: string;
  readonly version: string;
  /** True if no configuration file was found and the built-in one is active. */
  readonly isDefault: boolean;
}

/** Line of a plugin, shown once at startup. */
export interface Announcement {
  readonly title: string;
  readonly value: string;
  /**
   * `key`: an API key for the banner's curl command. `key-command`: arguments of `tollgate` that create a key and print only the
   * key to stdout, for the banner without a key.
   */
  readonly use?: 'key' | 'key-command';
}

/** Path of this gateway that signs a person in. Only for a banner on a terminal. */
export interface SignInLink {
  readonly title: string;
  makePath(): Promise<string>;
}

/**
 * Invalid option, found by a plugin. Thrown while it reads its configuration. {@link problemsOf} converts it to the result of
 * `check`. `tollgate check` and `tollgate start` therefore report the same problem at the same path.
 */
export class OptionError extends TypeError {
  override readonly name = 'OptionError';
  /** JSON pointer into the plugin's configuration, such as `/models/0`; empty for the whole configuration. */
  readonly path: string;
  /** Description, as the end of a sentence that begins with the path. Contains no secret. */
  readonly problem: string;
  /** Fix, as a whole sentence. */
  readonly hint: string | undefined;

  constructor(path: string, problem: string, hint?: string) {
    super([path.slice(1).replaceAll('/', '.'), `${problem}${hint === undefined ? '' : `. ${hint}`}`].join(' ').trim());
    this.path = path;
    this.problem = problem;
    this.hint = hint;
  }
}

/** Returns the problems that readers of a configuration report by throwing an {@link OptionError}. Other errors are rethrown. */
export async function problemsOf(...readers: readonly (() => unknown)[]): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const read of readers) {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      const { path, problem, hint } = error;
      // Several readers may report the same option.
      if (problems.some((known) => known.path === path && known.message === problem)) continue;
      problems.push({ path, message: problem, ...(hint !== undefined && { hint }) });
    }
  }
  return problems;
}
