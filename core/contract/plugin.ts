import type { Got } from 'got';
import type Keyv from 'keyv';
import type Koa from 'koa';
import type { AgentDefinition } from './agent.ts';
import type { Call, Outcome, Principal } from './call.ts';
import type { ChatChunk, ChatRequest, ChatResponse, EmbeddingRequest, EmbeddingResponse } from './chat.ts';
import type { FromSchema } from './from-schema.ts';
import type { Hook, HookName } from './hooks.ts';
import type { Schema } from './json.ts';
import type { Log } from './log.ts';
import type { Provider, SpeechProvider } from './provider.ts';
import type { Route } from './route.ts';
import type { SpeechRequest } from './speech.ts';
import type { Ledger, Store } from './store.ts';

export type * from './route.ts';

export const API_VERSION = 1;

export const PLUGIN_KINDS = Object.freeze([
  'provider',
  'auth',
  'agent',
  'tts',
  'store',
  'policy',
  'operation',
  'dialect',
] as const);
export type PluginKind = (typeof PLUGIN_KINDS)[number];

/**
 * What a plugin is: data and one `setup` function. `configSchema` is a JSON Schema of type object; beside the standard
 * keywords it may say `secret: true` (masked wherever the configuration is shown), `format: "duration"` (`30s`,
 * `500ms`, `2m`), `format: "money"` (US dollars as a decimal string or number), `format: "size"` (`20mb`), `format: "url"`
 * and `format: "path"` (a relative path becomes absolute, under the folder of the configuration file).
 */
export interface Plugin<S extends object = object> {
  /** The folder or file name, and the instance name unless the configuration gives another. */
  readonly name: string;
  readonly kind: PluginKind;
  readonly apiVersion: 1;
  readonly configSchema?: S;
  /**
   * A top-level key of the configuration that holds this plugin's options, instead of its place among the other plugins of
   * its kind. Without that key the plugin gets `{}`, or null when its schema also takes null.
   */
  readonly section?: string;
  /** Store plugins only: `one` when what must be atomic lives in one process, so that workers would not share it. Default `many`. */
  readonly processes?: 'one' | 'many';
  /** Finds what `setup` would refuse, without side effects; `tollgate check` runs it too. Runs on a valid config only. */
  check?(config: PluginConfig<S>, context: CheckContext): readonly Problem[] | Promise<readonly Problem[]>;
  /** Registers everything; registration ends when boot does. The config is validated, interpolated and frozen. */
  setup(api: PluginApi, config: PluginConfig<S>): void | Promise<void>;
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

/** Returns its argument; gives `config` its type. */
export function definePlugin<const S extends object>(plugin: Plugin<S>): Plugin<S> {
  return plugin;
}

/** One mistake in a plugin's config. Holds no secret. */
export interface Problem {
  /** A JSON pointer into the plugin's config, such as `/models/0`; without it the problem is the whole config's. */
  readonly path?: string;
  /** What is wrong, as the end of a sentence that begins with the place: `must be at least 32 bytes long`. */
  readonly message: string;
  /** What to do, a whole sentence. */
  readonly hint?: string;
}

/** What a plugin's `check` may look at beside its config. */
export interface CheckContext {
  /** The folder of the configuration file. Absolute. */
  readonly baseDir: string;
  readonly settings: GatewaySettings;
}

/** Who a plugin's own model call is made for. */
export interface CallContext {
  readonly principal: Principal;
  /** The request that this call belongs to. */
  readonly requestId: string;
  readonly signal?: AbortSignal;
  /** Limits that the parent request already counted against. */
  readonly skip?: readonly ('rpm' | 'concurrency')[];
  /** Told what the call came to: usage, cost, target. A route passes `ctx.state.onOutcome`, so that the access log has it. */
  onOutcome?(call: Call, outcome: Outcome): void;
}

export interface ModelRow {
  /** `provider/model`, or an alias. */
  readonly id: string;
  readonly owned_by: string;
}

/** Everything a plugin may do. Registering twice what another plugin has is refused, naming both. */
export interface PluginApi {
  /** The instance's name: its key in the configuration. */
  readonly instance: string;
  readonly log: Log;
  /** Facts of the whole configuration that more than one plugin needs: plans, billing mode, data folder. */
  readonly settings: GatewaySettings;
  route<const Body extends object>(route: Route<Body>): void;
  /** A schema that others may `$ref` by its `$id`. */
  schema(schema: Schema & { readonly $id: string }): void;
  provider(provider: Provider): void;
  speech(voice: SpeechProvider): void;
  /** Joins the team under its name. */
  agent(agent: AgentDefinition): void;
  /** All agents registered so far by any plugin; complete once the gateway listens. */
  agents(): readonly AgentDefinition[];
  /** Any Koa middleware, outermost, before routes. */
  use(middleware: Koa.Middleware): void;
  /** Store plugins only: how to open the store. */
  store(open: () => Promise<Store>): void;
  hook<N extends HookName>(name: N, hook: Hook<N>): void;
  /** This instance's own documents. */
  keyv<T = unknown>(namespace: string): Keyv<T>;
  /** The gateway's store: sets, counters, health. */
  readonly stores: Pick<Store, 'kind' | 'sets' | 'counters' | 'health'>;
  readonly ledger: Ledger;
  /** Control-plane calls: bounded, no redirects, hosts of this instance's configuration only. Loaded on first use. */
  http(): Promise<Got>;
  /** A model call through the whole pipeline: limits, fallback, hooks, ledger. A stream when `request.stream` is true. */
  chat(request: ChatRequest & { readonly stream: true }, context: CallContext): Promise<AsyncIterable<ChatChunk>>;
  chat(request: ChatRequest & { readonly stream?: false }, context: CallContext): Promise<ChatResponse>;
  embed(request: EmbeddingRequest, context: CallContext): Promise<EmbeddingResponse>;
  speak(vendor: string, request: SpeechRequest, context: CallContext): Promise<SpeechAnswer>;
  /** The most this call may cost in micro-dollars by the price table; undefined when a price is not known. */
  estimate(call: Call): number | undefined;
  /** Models and aliases that this principal may use. */
  models(principal?: Principal): readonly ModelRow[];
  /** A command of `tollgate`, such as `keys`; runs on the configured store, with or without a gateway beside it. */
  command(command: Command): void;
  /**
   * Names what this process answers about a topic; the function asks all workers of this gateway, and answers within
   * 2 s by those that did. Values travel as JSON.
   */
  gather<T>(topic: string, read: () => T | Promise<T>): () => Promise<readonly T[]>;
  /** A line for the start banner, such as the first API key. Shown once, on the terminal, never logged. */
  announce(announcement: Announcement): void;
  /** Runs once everything is registered, before the gateway listens (and not for commands). */
  onReady(ready: () => void | Promise<void>): void;
  /** Runs at the end, in reverse order of registration. */
  onClose(close: () => void | Promise<void>): void;
}

export interface Announcement {
  readonly title: string;
  readonly value: string;
  /** `key`: an API key that the banner's curl line may use. */
  readonly use?: 'key';
}

/** One option or argument of a command, as data: help, parsing and types come from it. */
export interface CommandOption {
  /** commander's form: `--user <id>`, `--expires <duration>`, `--force`. */
  readonly flags: string;
  readonly summary: string;
  readonly required?: boolean;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly subcommands: readonly Subcommand[];
}

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** commander's form: `<id>`, `[amount]`, in order. */
  readonly args?: readonly { readonly name: string; readonly summary: string }[];
  readonly options?: readonly CommandOption[];
  run(input: CommandInput): Promise<void>;
}

export interface CommandInput {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly io: CommandIo;
}

/** stdout is data, stderr is talk. With `--json` `result` prints its value, else the text made of it. */
export interface CommandIo {
  readonly json: boolean;
  result(value: unknown, text: string): void;
  note(text: string): void;
}

export interface SpeechAnswer {
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  readonly audio: AsyncIterable<Uint8Array>;
}

export interface Plan {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
  readonly providers?: Readonly<
    Record<string, { readonly rpm?: number; readonly tpm?: number; readonly concurrency?: number }>
  >;
}

export interface GatewaySettings {
  readonly billing: 'off' | 'track' | 'enforce';
  readonly plans: Readonly<Record<string, Plan>>;
  /** The plan of users whose key and token name none. */
  readonly defaultPlan: string | undefined;
  /** A folder that plugins may write into: beside the embedded store, else `./data`. Absolute. */
  readonly dataDir: string;
  /** The folder of the configuration file: what relative paths in a config are relative to. Absolute. */
  readonly baseDir: string;
  readonly version: string;
  /** True when no configuration file was found and the built-in one runs. */
  readonly isDefault: boolean;
}
