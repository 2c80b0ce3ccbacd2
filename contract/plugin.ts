import type { Got } from 'got';
import type Keyv from 'keyv';
import type Koa from 'koa';
import type { AuditChange, AuditPage, AuditQuery } from './audit.ts';
import type { BudgetRule } from './budgets.ts';
import type {
  Call,
  CallContext,
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
import type { Command } from './command.ts';
import type { DialectDefinition } from './dialect.ts';
import type { GatewayView, SecretsContext, SecretsReader } from './gateway.ts';
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
import type { Figure, Log, StoreWatcher, TagRules } from './units.ts';

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
 * What a plugin may declare that it uses beyond what every plugin may. `ledger`: {@link BooksApi.ledger}, all accounts and calls, and to
 * move money. `records`: {@link BooksApi.records} and {@link OperatorsApi.allPersonalData}: users, accounts and plans, and to erase what is
 * kept of people. `operators`: {@link PluginApi.operators}: the gateway as operators see it, and the audit log. `credentials`: what callers
 * send to prove who they are (the hook `authenticate`, which auth plugins have without it), and the keys of providers
 * ({@link ModelsApi.offers}). `hosts`: {@link PluginApi.fetch} to hosts that it does not name.
 */
export const PERMISSIONS = Object.freeze(['ledger', 'records', 'operators', 'credentials', 'hosts'] as const);
export type Permission = (typeof PERMISSIONS)[number];

/**
 * What a plugin is: data and one `setup` function. `configSchema` is a JSON Schema of type object; beside the standard
 * keywords it may say `secret: true` (masked wherever the configuration is shown), `format: "duration"` (`30s`,
 * `500ms`, `2m`), `format: "money"` (US dollars as a decimal string or number), `format: "size"` (`20mb`), `format: "url"`
 * and `format: "path"` (a relative path becomes absolute, under the folder of the configuration file).
 */
export interface Plugin<S extends object = object, K extends PluginKind = PluginKind> {
  /** The folder or file name, and the instance name unless the configuration gives another. */
  readonly name: string;
  readonly kind: K;
  readonly apiVersion: 1;
  readonly configSchema?: S;
  /** Hosts (`name` or `name:port`) that it may connect to, beside those of its config's `format: "url"` options. */
  readonly hosts?: readonly string[];
  /** What of the gateway it uses beyond what every plugin may ({@link PERMISSIONS}); operators see it before they add it. */
  readonly permissions?: readonly Permission[];
  /** What it gives other plugins by {@link PluginApi.provide}. */
  readonly provides?: readonly string[];
  /** Plugins (by name), or what plugins provide, without which it does not work: missing ones are an error at start. */
  readonly requires?: readonly string[];
  /** Store plugins only: `one` when what must be atomic lives in one process, so that workers cannot share it; `many` unless set. */
  readonly processes?: 'one' | 'many';
  /** A top-level key of the configuration that holds this plugin's options, not its place among its kind; without it they are `{}`, or null where the schema takes that. */
  readonly section?: string;
  /** What `setup` would refuse, without side effects; `tollgate check` runs it. */
  check?(config: PluginConfig<S>, context: CheckContext): readonly Problem[] | Promise<readonly Problem[]>;
  /** Secrets plugins only: opens the manager of secrets that references such as `${vault:…}` of the configuration name, before it is checked. */
  secrets?(config: PluginConfig<S>, context: SecretsContext): SecretsReader;
  /** Auth plugins only: the kinds of credentials that it knows; keys and tokens unless set. */
  readonly credentials?: readonly CredentialKind[];
  /**
   * Auth plugins only: whether a text has the shape of its credentials, right or wrong. Callers send placeholders beside the right
   * one; without this anything may be a credential, and two different ones are refused.
   */
  isCredential?(text: string): boolean;
  /** The commands that it registers with `api.command`, for `tollgate --help`. */
  readonly commands?: readonly { readonly name: string; readonly summary: string }[];
  /** Registers everything; registration ends when boot does. The config is validated, interpolated and frozen. */
  setup(api: ApiOfKind[K], config: PluginConfig<S>): void | Promise<void>;
}

/** Something that a plugin's `check` finds wrong with its configuration. */
export interface Problem {
  /** A JSON pointer into the plugin's config, such as `/models/0`; the whole config unless set. */
  readonly path?: string;
  /** What is wrong, as the end of a sentence that begins with the place. Holds no secret. */
  readonly message: string;
  /** What to do, a whole sentence. */
  readonly hint?: string;
}

/** What a plugin's `check` may know beside its own configuration. */
export interface CheckContext {
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  readonly settings: GatewaySettings;
}

/**
 * The type of a validated config: {@link FromSchema} of its schema, or an open object. The tuple keeps TypeScript from
 * expanding `FromSchema<object>` while it infers S: that ends in TS2589 for any schema with `required`.
 */
export type PluginConfig<S extends object> = object extends S
  ? Readonly<Record<string, unknown>>
  : [S] extends [object]
    ? FromSchema<S>
    : never;

/** Returns its argument; gives `config` its type, which is the plugin's own concern: to all others it is a plugin of its kind. */
export function definePlugin<const S extends object, const K extends PluginKind = PluginKind>(
  plugin: Plugin<S, K>,
): Plugin<object, K>;
export function definePlugin(plugin: Plugin): Plugin {
  return plugin;
}

export interface ModelRow {
  /** `provider/model`, or an alias. */
  readonly id: string;
  readonly owned_by: string;
}

/** What is wrong with a model as it is configured; `tollgate check` says the same. */
export interface ModelProblem {
  /** The cause and the remedy, whole sentences without secrets. */
  readonly text: string;
  /** Whether every call of the model fails; else some do, or their cost is wrong. */
  readonly stops: boolean;
}

/** What an instance keeps of users. */
export interface PersonalData {
  /** In the plural, such as `keys`. */
  readonly name: string;
  /** How many there are of a user. */
  count(user: PersonOf): Promise<number>;
  /** Erases them, or what they say of the person; answers how many. Once more it finds none. */
  erase(user: PersonOf): Promise<number>;
}

/** A user, with all accounts that paid for them, their own first. */
export interface PersonOf {
  readonly userId: string;
  readonly accounts: readonly string[];
}

/** The documents of another plugin instance, to be read. */
export interface SharedDocuments<T = unknown> {
  get(key: string): Promise<T | undefined>;
}

/** What a schema refuses of a value. */
export type Validate = (value: unknown, schema: Schema) => readonly ProblemAt[];

/** Tables of models, such as `config/models.json`. */
export interface ModelTables {
  /** The table of this release. */
  shipped(): ModelTable;
  /** What is wrong with a table. */
  problemsOfTable(table: unknown): readonly string[];
  /** What is wrong with what a vendor's list says of its models. */
  problemsOfModels(models: readonly ModelInfo[]): readonly string[];
}

/** Models: which there are, what names stand for, and calls of them for operations other than chat. */
export interface ModelsApi {
  /** Models and aliases that this principal may use. */
  list(principal?: Principal): readonly ModelRow[];
  /** The models of chat: ids, facts, prices. */
  readonly catalog: ModelCatalog;
  /** The aliases of the configuration, each with what it stands for: `provider/model` in the order to try. */
  aliases(): readonly (readonly [alias: string, targets: readonly string[]])[];
  /** What an alias stands for; undefined when it is none. */
  alias(name: string): readonly string[] | undefined;
  /** What stops calls of a model or an alias as it is configured, or makes them fail or cost wrongly; undefined when nothing is known to. Whether the provider has its credential is `catalog.isConfigured`. */
  problemOf(name: string): ModelProblem | undefined;
  /** What this process knows of its targets (state, errors, latency) and of its retries. */
  routing(): RoutingState;
  /** What instances registered for an operation, by instance name; complete once the gateway listens. Keys of vendors are cut out, unless with the permission `credentials`. */
  offers<O extends Operation>(operation: O): ReadonlyMap<string, OfferOf<O>>;
  /** What a provider's vendor lists itself, sent for now with the provider's key; unchecked but for the length of ids. */
  listAtProvider(provider: string): Promise<readonly ModelInfo[]>;
  /** The table of models of this release, and what is wrong with another one. */
  readonly tables: ModelTables;
  /** A call of an operation that a plugin registered, through the whole pipeline: limits, fallback, hooks, ledger. */
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  /**
   * Lets one request of a file in as if it had come by itself in a client's format, with the hooks of `count`: what would be sent to the
   * first target that `takes` takes. Nothing is sent, held or charged. For routes.
   */
  draft(ctx: RouteContext, dialect: string, body: Buffer, takes: (provider: string) => boolean): Promise<ChatDraft>;
  /** Sends a request that is no call to a provider's endpoint for an operation. Resolves with whatever status comes. */
  sendTo(operation: Operation, provider: string, request: HttpRequest, signal?: AbortSignal): Promise<AttemptResponse>;
  /** Throws for what would make a target of an operation do, as it is sent, what this caller may not have done, and for addresses of media but `https:` at public hosts: the gate of every request. */
  checkEffects(operation: Operation, target: Target, body: object, principal: Principal): Promise<void>;
}

/** Money, and records that are the same for all instances. */
export interface BooksApi {
  /** The most this call may come to over its targets, by the price table; with `maxTokens`, if a chat, or another call with `max_tokens`, had this limit of output. */
  estimate(call: Call, maxTokens?: number): Metered;
  /** Sets how many tokens a chat, or another call whose request has `max_tokens`, may write; for `reserve` hooks, which know what it may cost. */
  limitOutput(call: Call, tokens: number): void;
  /** All accounts and calls. With the permission `ledger`; throws without it. */
  readonly ledger: Ledger;
  /**
   * Records of the gateway: `users`, `accounts`, `plans`. Unlike what {@link PluginApi.keyv} keeps, no change is lost. With the
   * permission `records`; throws without it.
   */
  records<T>(name: string): Records<T>;
}

/** What operators see and change. With the permission `operators`; throws without it. */
export interface OperatorsApi {
  /** For routes and commands of operators. */
  readonly gateway: GatewayView;
  /** Writes down a change that an operator made: after it was made, before it is answered. Entries are never altered. */
  audit(change: AuditChange): Promise<void>;
  /** What operators changed, newest first. */
  auditLog(query: AuditQuery): Promise<AuditPage>;
  /** All that instances keep of users; with the permission `records` too; complete once the gateway listens. */
  allPersonalData(): readonly PersonalData[];
  /** What a schema refuses of a value, in the words of the configuration. */
  readonly validate: Validate;
  /** Takes another table of models in place of the one in use, for all operations. */
  useModelTable(table: ModelTable): void;
  /**
   * Names what this process answers about a topic; the function asks all workers of this gateway, and answers within
   * 2 s by those that did. Values travel as JSON.
   */
  gather<T>(topic: string, read: () => T | Promise<T>): () => Promise<readonly T[]>;
  /** Shows operators a number of this process, such as how many writes wait; one instance owns a name. */
  figure(figure: Figure): void;
  /** All numbers that instances show; complete once the gateway listens. */
  figures(): readonly Figure[];
  /** Is told what the store's operations take, while this configuration serves. On the way of every call: to be quick. */
  watchStore(watcher: StoreWatcher): void;
  /** Is told who was refused a route of operators, 401 or 403: for a log of them. It does not throw. */
  watchRefusals(watcher: RefusalWatcher): void;
  /** A line for the start banner, such as the first API key. Shown once, on the terminal, never logged. */
  announce(announcement: Announcement): void;
  /** A way to sign in that `tollgate start` shows to a person at a terminal. */
  offerSignIn(link: SignInLink): void;
}

/** The gateway's store, as far as it is this instance's own, and its health. */
export interface StoresApi extends Pick<Store, 'kind' | 'sets' | 'counters' | 'health'> {
  readonly kept: AccountDocuments;
  /** This instance's own documents that others may read by {@link shared}; one instance owns a name. */
  share<T = unknown>(name: string): Keyv<T>;
  /** What another instance shares under this name; empty while nobody does. */
  shared<T = unknown>(name: string): SharedDocuments<T>;
  /** Says what this instance keeps of users, so that operators see how much that is and may erase it. */
  personalData(data: PersonalData): void;
}

/** Everything that any plugin may do. Registering twice what another plugin has is refused, naming both. */
export interface PluginApi {
  /** The instance's name: its key in the configuration. */
  readonly instance: string;
  readonly log: Log;
  /** Facts of the whole configuration that more than one plugin needs: plans, billing mode, data folder. */
  readonly settings: GatewaySettings;
  route<const Body extends object>(route: Route<Body>): void;
  /** Serves websockets at a path: of callers with a key of models. One instance owns a path. */
  upgrade(path: string, handler: UpgradeHandler, options?: UpgradeOptions): void;
  /** Any Koa middleware, outermost, before routes. */
  use(middleware: Koa.Middleware): void;
  hook<N extends HookName, const O extends Operation = Operation>(name: N, hook: Hook<N, O>): void;
  /** A command of `tollgate`, such as `keys`; runs on the configured store, with or without a gateway beside it. */
  command(command: Command): void;
  /** This instance's own documents: nobody else reads or writes them. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  readonly stores: StoresApi;
  /**
   * Control-plane calls: bounded, no redirects, to the hosts of this instance's url-format options and of the plugin's `hosts`
   * only. Loaded on first use.
   */
  http(): Promise<Got>;
  /** The platform's `fetch` by the instance's proxy and certificates, to the hosts of {@link http}; with the permission `hosts` to any. It bounds nothing. */
  readonly fetch: typeof fetch;
  /** A model call through the whole pipeline: limits, fallback, hooks, ledger. A stream when `request.stream` is true. */
  chat(request: ChatRequest & { readonly stream: true }, context: CallContext): Promise<AsyncIterable<ChatChunk>>;
  chat(request: ChatRequest & { readonly stream?: false }, context: CallContext): Promise<ChatResponse>;
  /**
   * Something that outlives a reload of the configuration (metrics, local counters, queues): made once under this instance's
   * name, given back to the next generation, closed when no generation asks for it any more.
   */
  keep<T>(name: string, make: () => T, close?: (kept: T) => void | Promise<void>): T;
  /** Gives other plugins something, under a name that the definition declares: `provides: ['clock']`. One instance gives a name. */
  provide<N extends keyof Services>(name: N, implementation: Services[N]): void;
  /** What another plugin provides, declared by `requires: ['clock']`: that one is set up before, wherever the configuration names it. */
  require<N extends keyof Services>(name: N): Services[N];
  /** The text without the secrets of the configuration, and without what looks like a credential of anyone: `[redacted]` stands in their place. */
  redact(text: string): string;
  /**
   * Runs once all plugins have registered, also for commands and `tollgate check`: to refuse, by an `OptionError`, what does not fit
   * what others have registered. Without side effects.
   */
  onRegistered(registered: () => void): void;
  /** Runs once everything is registered, before the gateway listens (and not for commands). */
  onReady(ready: () => void | Promise<void>): void;
  /** Runs at the end, in reverse order of registration. */
  onClose(close: () => void | Promise<void>): void;
  readonly models: ModelsApi;
  readonly books: BooksApi;
  readonly operators: OperatorsApi;
}

/** Registers what an instance offers for an operation: an endpoint with its codec. */
interface OffersApi {
  offer<O extends Operation>(operation: O, offer: OfferOf<O>): void;
}

interface ProviderApi extends PluginApi, OffersApi {
  provider(provider: Provider): void;
}

interface TtsApi extends PluginApi, OffersApi {}

interface SchemasApi {
  /** A schema that others may `$ref` by its `$id`. */
  schema(schema: Schema & { readonly $id: string }): void;
}

interface AgentApi extends PluginApi {
  /** Joins the team under its name. */
  agent(agent: AgentDefinition): void;
  /** All agents registered so far by any plugin; complete once the gateway listens. */
  agents(): readonly AgentDefinition[];
}

interface OperationApi extends PluginApi, SchemasApi {
  operation<O extends Operation>(definition: OperationDefinition<O>): void;
}

interface DialectApi extends PluginApi, SchemasApi {
  dialect<Body>(definition: DialectDefinition<Body>): void;
}

/** A store plugin is set up before there is a store, and registers nothing but how to open one. */
type StoreApi = Pick<PluginApi, 'instance' | 'log' | 'settings' | 'onClose'> & {
  /**
   * `open` may tell `observe` what each operation took (`ledger.reserve`, `counters.take`, `documents.get`), for the metrics of the store.
   * `probe`, for `tollgate check --connect`: whether `open` would work and what it would find, in a few words, such as `schema 4`.
   * It makes and changes nothing, and rejects as `open` does.
   */
  store(open: (observe: StoreWatcher) => Promise<Store>, probe?: () => Promise<string>): void;
};

/** What the plugins of each kind may do. */
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

/** The APIs of all kinds in one, as core makes it. */
export type WholeApi = ProviderApi & AgentApi & OperationApi & DialectApi & StoreApi;

/** A plan: requests and tokens a minute, calls at once (0 allows none), and what its callers may use beside models. */
export interface Plan {
  /** Models that its accounts may call, as those of a key ({@link Principal.models}), which narrow them further; all unless set. */
  readonly models?: readonly string[];
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
  /** Tools that a vendor runs with the operator's account and that callers of this plan may use; none unless set. */
  readonly serverTools?: readonly string[];
  readonly providers?: Readonly<
    Record<string, { readonly rpm?: number; readonly tpm?: number; readonly concurrency?: number }>
  >;
  /** What each of its accounts may spend. */
  readonly budgets?: readonly BudgetRule[];
}

/** Facts of the whole configuration that plugins may know. */
export interface GatewaySettings {
  readonly billing: 'off' | 'track' | 'enforce';
  readonly plans: Readonly<Record<string, Plan>>;
  /** The plan of users whose key and token name none. */
  readonly defaultPlan: string | undefined;
  /** What may be spent by all calls that match, as the configuration says it. */
  readonly budgets: readonly BudgetRule[];
  /** What calls may be booked under: the values of each name, or `*`. */
  readonly tags: TagRules;
  /** A folder that plugins may write into: beside the embedded store, else `./data`. Absolute. */
  readonly dataDir: string;
  /** The folder of the configuration file: what relative paths in a config are relative to. Absolute. */
  readonly baseDir: string;
  /** Where programs on this machine reach the gateway, as far as the configuration says it, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** What the paths of the gateway begin with for browsers and clients, such as `/llm`; routes are registered without it. Empty unless set. */
  readonly basePath: string;
  readonly version: string;
  /** True when no configuration file was found and the built-in one runs. */
  readonly isDefault: boolean;
}

/** A line that a plugin wants shown once at start. */
export interface Announcement {
  readonly title: string;
  readonly value: string;
  /**
   * `key`: an API key that the banner's curl line may use. `key-command`: the words behind `tollgate` that make one and print it
   * alone on stdout, for the banner when there is no key.
   */
  readonly use?: 'key' | 'key-command';
}

/** A path of this gateway that signs somebody in: made for a banner that a person sees on a terminal, and for nothing else. */
export interface SignInLink {
  readonly title: string;
  makePath(): Promise<string>;
}

/**
 * An option that cannot work, found by a plugin. Thrown while it reads its configuration; {@link problemsOf} makes of it what `check`
 * answers, so that `tollgate check` and `tollgate start` say the same at the same place.
 */
export class OptionError extends TypeError {
  override readonly name = 'OptionError';
  /** A JSON pointer into the plugin's configuration, such as `/models/0`; the whole of it when empty. */
  readonly path: string;
  /** What is wrong, as the end of a sentence that begins with the place. Holds no secret. */
  readonly problem: string;
  /** What to do, a whole sentence. */
  readonly hint: string | undefined;

  constructor(path: string, problem: string, hint?: string) {
    super([path.slice(1).replaceAll('/', '.'), `${problem}${hint === undefined ? '' : `. ${hint}`}`].join(' ').trim());
    this.path = path;
    this.problem = problem;
    this.hint = hint;
  }
}

/** What some readers of a configuration refuse by throwing an {@link OptionError}; anything else that they throw is thrown on. */
export async function problemsOf(...readers: readonly (() => unknown)[]): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const read of readers) {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      const { path, problem, hint } = error;
      // Several readers may come upon the same option.
      if (problems.some((known) => known.path === path && known.message === problem)) continue;
      problems.push({ path, message: problem, ...(hint !== undefined && { hint }) });
    }
  }
  return problems;
}
