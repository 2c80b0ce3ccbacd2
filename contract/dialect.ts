import type { Principal, Target } from './call.ts';
import type { ChatChunk, ChatRequest, ChatResponse, Usage } from './chat.ts';
import type { KnownServers, WithoutServers } from './chat-tools.ts';
import type { GatewayError } from './errors.ts';
import type { SseEvent } from './events.ts';
import type { Schema } from './json.ts';
import type { ModelInfo, NativeBody, Price } from './provider.ts';

/** Endpoint of a dialect, as data. */
export interface DialectRoute {
  /** @koa/router's syntax; `\\:` is a colon of the path itself. */
  readonly path: string;
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
  /** `count` counts the input tokens of a request without a model call. Default: `chat`. */
  readonly action?: 'chat' | 'count';
  /** Name of this endpoint in `Provider.native`, where providers declare support for it. Default: the dialect's name. */
  readonly native?: string;
  /** Request body schema, if it differs from the dialect's `request`. */
  readonly request?: Schema;
  /** Response schema, if it differs from the dialect's `response`. */
  readonly response?: Schema;
}

/** Alternative paths for model routes, as used by SDKs of the format or by servers of other vendors. */
export interface PathAlias {
  /** Matches the beginning of the path, anchored by `^`. A group `model` names the model and overrides that of the body. */
  readonly pattern: RegExp;
  /** Replacement of the matched beginning. */
  readonly path: string;
  /** Additional headers for the credential, in lower case. */
  readonly credentials?: readonly string[];
  /**
   * Request header, in lower case, that selects this format if another format has the same path. The alias does not apply without
   * it. With it, errors have this format, and the response is 404 if no route has the new path.
   */
  readonly header?: string;
}

/** HTTP request with a body that was validated by the route's schema and frozen. */
export interface DialectInput<Body = unknown> {
  readonly body: Body;
  /** Path parameters of the route, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case; without credentials. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Row of `routes` that matched. */
  readonly route: DialectRoute;
  /**
   * Target that made the response which this request continues, as returned by `expand`. Among the targets of an alias it comes
   * first while it is healthy.
   */
  readonly follows?: Target;
}

/**
 * Requirement of a request that some targets or callers do not meet.
 * `native`: a feature of vendors that speak the dialect.
 * `server tool`: a tool that the vendor runs with the operator's account; a plan or key must allow it by `name`.
 * `reference`: an object in the operator's account at the vendor, which all callers would share.
 * `model`: another model that the vendor would call.
 */
export interface DialectNeed {
  readonly kind: 'native' | 'server tool' | 'reference' | 'model';
  /** Name as the caller wrote it: the tool's type, the field's name, the model's name. */
  readonly name: string;
  /** Path in the caller's body. */
  readonly param: string;
  /** True if it is dropped and reported, instead of rejected, where the target or caller does not meet it. */
  readonly optional?: boolean;
}

/**
 * Fields with effects at the vendor at any path of a body, and the requirement of each. An example is the id of a file in the
 * operator's account. The search skips the caller's own data: arguments and schemas of tools, `metadata`, citations.
 */
export type DialectEffects = Readonly<Record<string, Pick<DialectNeed, 'kind' | 'name'>>>;

/** Result of reading a request. */
export interface DialectRequest {
  readonly request: ChatRequest;
  /** Provider that the caller named separately from the model, such as in the path. */
  readonly provider?: string;
  /**
   * Fields of the caller's body that the canonical request cannot express; reported in `x-tollgate-dropped` when the request is
   * translated.
   */
  readonly dropped?: readonly string[];
  readonly needs?: readonly DialectNeed[];
  /** Maps a path of the canonical request (`messages[2].content`) to the caller's body. Default: the same path. */
  place?(param: string): string;
}

/** Context of a call for the dialect's writers. It has no clock and no I/O. */
export interface DialectContext<Body = unknown> {
  readonly input: DialectInput<Body>;
  /** Canonical request as the dialect read it. */
  readonly request: ChatRequest;
  /** Unique id of the call, for formats whose responses have one. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly requestId: string;
  /** Input tokens, estimated before the call was sent, for formats that report them first. */
  readonly estimatedInputTokens: number;
  /** Returns the responding target, once known. */
  readonly responder?: () => Target | undefined;
  /**
   * Reports a part of the response that the format cannot express, such as `images`. It appears in the log, the record of the call
   * and, for a whole response, in `x-tollgate-dropped`.
   */
  readonly omit?: (what: string) => void;
  /**
   * Seals data that only the responding deployment can read, for this caller's account. Core opens it when the client sends it
   * again.
   */
  seal(data: string): string;
}

/** Writes one stream. Each text contains complete frames, ready to send. */
export interface DialectStream {
  /** Returns the frames of one canonical chunk; the last chunk contains the usage even if the caller did not request it. */
  push(chunk: ChatChunk): string;
  /**
   * Returns the frame of an event from a vendor with this format, in place of the equal chunk. `usage` is set for the
   * event that only reports usage. Default: chunks are written.
   */
  pass?(event: SseEvent, usage: Usage | undefined): string;
  /** Returns the frames of a complete end. */
  end(): string;
  /** Returns the frames of an end by an error, the last of the stream. */
  fail(error: GatewayError, requestId: string): string;
  /** Returns the body of the streamed response for `remember`; undefined if the stream failed. */
  response?(): unknown;
  /** Default: `text/event-stream; charset=utf-8`. */
  readonly contentType?: string;
  /** Replaces the dialect's `keepAlive`. */
  readonly keepAlive?: string;
}

/** Forwards one stream of a vendor that speaks the dialect. The events were already read for metering. */
export interface DialectNativeStream extends Omit<DialectStream, 'push' | 'pass'> {
  /** Returns the frames for one event of the vendor. Errors go to `fail` instead. */
  push(event: SseEvent): string;
}

/** Changes of a request between the dialect's `read` and one target, for `patch`. */
export interface NativeChange {
  /** Canonical request as returned by `read`. */
  readonly before: ChatRequest;
  /**
   * Request after hooks. Differs in these fields only: `model`, `max_completion_tokens`, `max_tokens`, `temperature`, `top_p`,
   * `stop`, `user`, `metadata`, `service_tier`, `reasoning_effort`, `dialect_fields`, and messages or tools added at either end.
   */
  readonly after: ChatRequest;
  /** Model as the provider names it. */
  readonly model: string;
  readonly stream: boolean;
  /** `param` of each optional requirement that this caller does not meet; the fields are dropped. */
  readonly without?: readonly string[];
  /** Opens a sealed text for this target; returns undefined if it belongs to another account or deployment. */
  open(sealed: string): string | undefined;
  /** Returns a text that is unique to this account, such as a key of a vendor's cache. */
  scope(text: string): string;
}

/** Forwards requests to vendors that speak the dialect, and their responses back. Pure. */
export interface DialectNative<Body = unknown> {
  /** Request headers that may be forwarded to the provider; names in lower case. */
  readonly headers?: readonly string[];
  /** Core searches every body that it may forward for these fields and for URLs. */
  readonly effects?: DialectEffects;
  /** Applies the change to the caller's own body. Returns undefined if it cannot; the call is then translated. */
  patch(body: Body, change: NativeChange): NativeBody | undefined;
  /** Converts the vendor's whole response for the caller. */
  write(body: unknown, context: DialectContext<Body>): unknown;
  stream(context: DialectContext<Body>): DialectNativeStream;
}

/** Model in a dialect's list. */
export interface ListedModel
  extends Pick<ModelInfo, 'contextWindow' | 'maxOutput' | 'inputModalities' | 'outputModalities' | 'shutdown'> {
  /** `provider/model` or an alias. */
  readonly id: string;
  readonly ownedBy: string;
  /** Unix seconds. */
  readonly created: number;
  /** Current price. */
  readonly price?: Price;
}

/** Model list of a dialect. */
export interface DialectModels {
  /** Separate path such as `/v1beta/models`; single models are below it. */
  readonly path?: string;
  /** Request header, in lower case, that selects this form at `/v1/models`. */
  readonly header?: string;
  list(models: readonly ListedModel[], query: Readonly<Record<string, string>>): unknown;
  one(model: ListedModel): unknown;
}

/** Client format of chat, both directions; pure except `expand` and `remember`. Registered with `api.dialect`. */
export interface DialectDefinition<Body = unknown> {
  readonly name: string;
  /** Request body schema, for validation and documentation. */
  readonly request: Schema;
  /** Schema of a whole response, for the OpenAPI document. */
  readonly response: Schema;
  readonly routes: readonly DialectRoute[];
  /** Path prefixes below which errors use this format even without a matching route, such as `/v1/messages`. */
  readonly prefixes?: readonly string[];
  /** Alternative paths for model routes of this or another format. Paths of registered routes take precedence. */
  readonly pathAliases?: readonly PathAlias[];
  /** Credential locations of this format in addition to `authorization` and `x-api-key`; below `prefixes` only. */
  readonly credentials?: { readonly headers?: readonly string[]; readonly query?: readonly string[] };
  /**
   * Returns whether a text is a token of a caller's own subscription with the format's vendor. Together with a key of this gateway
   * it is rejected.
   */
  isSubscription?(credential: string): boolean;
  /** Model names of this format's clients and their targets (`provider/model`); resolved before the configuration's aliases. */
  readonly aliases?: Readonly<Record<string, readonly string[]>>;
  readonly models?: DialectModels;
  /**
   * True if the format requires an output limit. The gateway may then lower it to fit a budget, as it does for requests without a
   * limit.
   */
  readonly demandsLimit?: boolean;
  /** Resolves references of a body to the plugin's own documents, before it is read. */
  expand?(input: DialectInput<Body>, caller: Principal): Promise<DialectInput<Body>>;
  /**
   * Takes servers of the gateway out of a body, and writes calls of their tools in its history as calls of functions. Returns
   * undefined for a body without any. Core runs the tools. Default: the format names no servers.
   */
  servers?(body: Body, known: KnownServers): WithoutServers<Body> | undefined;
  /** Converts the request. Throws `GatewayError('invalid_request', …, { param })` for requests that have no canonical form. */
  read(input: DialectInput<Body>): DialectRequest;
  /** Returns the body of a whole response. */
  write(response: ChatResponse, context: DialectContext<Body>): unknown;
  stream(context: DialectContext<Body>): DialectStream;
  /** Returns the body for routes that count. */
  count?(inputTokens: number, context: DialectContext<Body>): unknown;
  readonly native?: DialectNative<Body>;
  /**
   * True for a dialect in the canonical shape. Its callers get a vendor's whole response unchanged if that equals the canonical one.
   * {@link DialectStream.pass} is its counterpart for streams. A function decides for each request.
   */
  readonly passes?: boolean | ((input: DialectInput) => boolean);
  /** Stores data that later requests may refer to; the caller waits for it before the end of the response. */
  remember?(response: unknown, context: DialectContext<Body>, caller: Principal): Promise<void>;
  /**
   * True if some clients of the format take an error within a stream for content. Their connection is closed after the error, before
   * the end of the response. A function decides for each request.
   */
  readonly breaksOff?: boolean | ((input: DialectInput) => boolean);
  /** Sent while a provider is silent: a comment or an event of the format. */
  readonly keepAlive: string;
  /** Returns the body of an error, and its status if the format uses a different one. */
  error(error: GatewayError, requestId: string): { readonly body: unknown; readonly status?: number };
}
