import type { Got } from 'got';
import type Keyv from 'keyv';
import type Koa from 'koa';
import type { AgentDefinition } from './agent.ts';
import type { AuditChange, AuditPage, AuditQuery } from './audit.ts';
import type { Call, OfferOf, Operation, Outcome, Principal, RequestOf, Target } from './call.ts';
import type { ModelCatalog } from './catalog.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { Announcement, Command } from './command.ts';
import type { DialectDefinition } from './dialect.ts';
import type { Figure, StoreWatcher } from './figures.ts';
import type { Hook, HookName } from './hooks.ts';
import type { Schema } from './json.ts';
import type { Ledger } from './ledger.ts';
import type { Log } from './log.ts';
import type { CallResult, Metered, OperationDefinition } from './operation.ts';
import type { Provider } from './provider.ts';
import type { Records } from './records.ts';
import type { Route } from './route.ts';
import type { RoutingState } from './routing.ts';
import type { GatewaySettings } from './settings.ts';
import type { Store } from './store.ts';

/** Who a plugin's own model call is made for. */
export interface CallContext {
  readonly principal: Principal;
  /** The request that this call belongs to. */
  readonly requestId: string;
  /** Ends it. A call without one is cut, and owes what it did, when the gateway or its configuration ends and it has run on for 3 s. */
  readonly signal?: AbortSignal;
  /** What the call is booked under; the principal's own unless set. */
  readonly tags?: readonly string[];
  /** What the caller named its session: a route passes `ctx.state.session`. */
  readonly session?: string | undefined;
  /** Limits that the parent request already counted against. */
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** Told what the call came to: usage, cost, target. A route passes `ctx.state.onOutcome`, so that the access log has it. */
  onOutcome?(call: Call, outcome: Outcome): void;
}

/** Who an operation's call is made for, and where it goes when its request's `model` does not say it. */
export interface OperationContext extends CallContext {
  /** Candidates in order; by the request's `model` (an alias or `provider/model`) unless set. */
  readonly targets?: readonly Target[];
  /** The alias that the targets came by, which an allow-list may name. */
  readonly requested?: string;
}

export interface ModelRow {
  /** `provider/model`, or an alias. */
  readonly id: string;
  readonly owned_by: string;
}

/** The documents of another plugin instance, to be read. */
export interface SharedDocuments<T = unknown> {
  get(key: string): Promise<T | undefined>;
}

/** Everything that any plugin may do. Registering twice what another plugin has is refused, naming both. */
export interface PluginApi {
  /** The instance's name: its key in the configuration. */
  readonly instance: string;
  readonly log: Log;
  /** Facts of the whole configuration that more than one plugin needs: plans, billing mode, data folder. */
  readonly settings: GatewaySettings;
  route<const Body extends object>(route: Route<Body>): void;
  /** A schema that others may `$ref` by its `$id`. */
  schema(schema: Schema & { readonly $id: string }): void;
  /** Joins the team under its name. */
  agent(agent: AgentDefinition): void;
  /** All agents registered so far by any plugin; complete once the gateway listens. */
  agents(): readonly AgentDefinition[];
  /** Any Koa middleware, outermost, before routes. */
  use(middleware: Koa.Middleware): void;
  hook<N extends HookName, const O extends Operation = Operation>(name: N, hook: Hook<N, O>): void;
  /** This instance's own documents: nobody else reads or writes them. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  /** This instance's own documents that others may read by {@link shared}; one instance owns a name. */
  share<T = unknown>(name: string): Keyv<T>;
  /** What another instance shares under this name; empty while nobody does. */
  shared<T = unknown>(name: string): SharedDocuments<T>;
  /** The gateway's store: this instance's own sets and counters, and its health. */
  readonly stores: Pick<Store, 'kind' | 'sets' | 'counters' | 'health'>;
  readonly ledger: Ledger;
  /**
   * Records of the gateway: `users`, `accounts`, `plans`. Unlike what {@link keyv} keeps, they are the same for all instances, and
   * no change is lost.
   */
  records<T>(name: string): Records<T>;
  /** The text without the secrets of the configuration, and without what looks like a credential of anyone: `[redacted]` stands in their place. */
  redact(text: string): string;
  /** Writes down a change that an operator made: after it was made, before it is answered. Entries are never altered. */
  audit(change: AuditChange): Promise<void>;
  /** What operators changed, newest first. */
  auditLog(query: AuditQuery): Promise<AuditPage>;
  /**
   * Control-plane calls: bounded, no redirects, to the hosts of this instance's url-format options and of the plugin's `hosts`
   * only. Loaded on first use.
   */
  http(): Promise<Got>;
  /** A model call through the whole pipeline: limits, fallback, hooks, ledger. A stream when `request.stream` is true. */
  chat(request: ChatRequest & { readonly stream: true }, context: CallContext): Promise<AsyncIterable<ChatChunk>>;
  chat(request: ChatRequest & { readonly stream?: false }, context: CallContext): Promise<ChatResponse>;
  /** The same for an operation that a plugin registered. */
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  /** What instances registered for an operation, by instance name; complete once the gateway listens. */
  offers<O extends Operation>(operation: O): ReadonlyMap<string, OfferOf<O>>;
  /** The most this call may come to over its targets, by the price table. */
  estimate(call: Call): Metered;
  /** Models and aliases that this principal may use. */
  models(principal?: Principal): readonly ModelRow[];
  /** The aliases of the configuration, each with what it stands for: `provider/model` in the order to try. */
  aliases(): readonly (readonly [alias: string, targets: readonly string[]])[];
  /** What an alias stands for; undefined when it is none. */
  alias(name: string): readonly string[] | undefined;
  /** What this process knows of its targets (state, errors, latency) and of its retries. */
  routing(): RoutingState;
  /** The models of chat: ids, facts, prices. */
  readonly catalog: ModelCatalog;
  /** The model ids that a provider's vendor lists itself, asked for now with the provider's key. */
  listModels(provider: string): Promise<readonly string[]>;
  /** A command of `tollgate`, such as `keys`; runs on the configured store, with or without a gateway beside it. */
  command(command: Command): void;
  /**
   * Something that outlives a reload of the configuration (metrics, local counters, queues): made once under this instance's
   * name, given back to the next generation, closed when no generation asks for it any more.
   */
  keep<T>(name: string, make: () => T, close?: (kept: T) => void | Promise<void>): T;
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
  /** A line for the start banner, such as the first API key. Shown once, on the terminal, never logged. */
  announce(announcement: Announcement): void;
  /**
   * Runs once all plugins have registered, also for commands and `tollgate check`: to refuse, by an `OptionError`, what does not fit
   * what others have registered. Without side effects.
   */
  onRegistered(registered: () => void): void;
  /** Runs once everything is registered, before the gateway listens (and not for commands). */
  onReady(ready: () => void | Promise<void>): void;
  /** Runs at the end, in reverse order of registration. */
  onClose(close: () => void | Promise<void>): void;
}

/** Registers what an instance offers for an operation: an endpoint with its codec. */
interface OffersApi {
  offer<O extends Operation>(operation: O, offer: OfferOf<O>): void;
}

interface ProviderApi extends PluginApi, OffersApi {
  provider(provider: Provider): void;
}

interface TtsApi extends PluginApi, OffersApi {}

interface OperationApi extends PluginApi {
  operation<O extends Operation>(definition: OperationDefinition<O>): void;
}

interface DialectApi extends PluginApi {
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
  readonly agent: PluginApi;
  readonly tts: TtsApi;
  readonly operation: OperationApi;
  readonly dialect: DialectApi;
  readonly store: StoreApi;
  readonly policy: PluginApi;
}

/** The APIs of all kinds in one, as core makes it. */
export type WholeApi = ProviderApi & OperationApi & DialectApi & StoreApi;
