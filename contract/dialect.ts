import type { Principal, Target } from './call.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { GatewayError } from './errors.ts';
import type { SseEvent } from './events.ts';
import type { Schema } from './json.ts';
import type { ModelInfo, NativeBody, Price } from './provider.ts';

/** A way in of a dialect, as data. */
export interface DialectRoute {
  /** @koa/router's syntax; `\\:` is a colon of the path itself. */
  readonly path: string;
  /** One line, for OpenAPI. */
  readonly summary: string;
  readonly description?: string;
  /** `count` counts the tokens of a request's input and calls no model; `chat` unless set. */
  readonly action?: 'chat' | 'count';
  /** The name by which providers say that their vendor has what this route is for, and where (`Provider.native`); the dialect's unless set. */
  readonly native?: string;
  /** Of the body, where this route takes another one than the dialect's `request`. */
  readonly request?: Schema;
  /** Of the response, where it is another one than the dialect's `response`. */
  readonly response?: Schema;
}

/** Other paths by which clients of a format call routes of models, as their SDKs or another vendor's servers have them. */
export interface PathAlias {
  /** The beginning of such a path, from `^` on. A group `model` names the model, in place of that of the body. */
  readonly pattern: RegExp;
  /** What stands in place of that beginning. */
  readonly path: string;
  /** Headers in which the credential may be there too, in lower case. */
  readonly credentials?: readonly string[];
  /** The request header, in lower case, by which this format is meant where another one has the same path; without it the path is not this one. */
  readonly header?: string;
}

/** A request as it came in over HTTP, its body checked by the route's schema and frozen. */
export interface DialectInput<Body = unknown> {
  readonly body: Body;
  /** Parameters of the route's path, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case; without credentials. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The row of `routes` that it came by. */
  readonly route: DialectRoute;
  /** Who made the response that this request continues, as `expand` knows it: of the targets of an alias that one is asked first while it works. */
  readonly follows?: Target;
}

/**
 * Something in a request that not every target or caller may have: `native`, what only a vendor that speaks the dialect can do;
 * `server tool`, a tool that the vendor runs with the operator's account, which a plan or key must allow by `name`; `reference`, a
 * thing in the operator's account at the vendor, which all callers would share; `model`, another model that the vendor is told to call.
 */
export interface DialectNeed {
  readonly kind: 'native' | 'server tool' | 'reference' | 'model';
  /** As the caller wrote it: the tool's type, the field's name, the model's name. */
  readonly name: string;
  /** Where it stands in the caller's body. */
  readonly param: string;
  /** Whether it is left out and told where the target or the caller may not have it, instead of refused. */
  readonly optional?: boolean;
}

/**
 * Names of fields that act at the vendor wherever in a body they stand, and what each of them needs: the id of a file in the operator's
 * account, say. Not looked for in the caller's own data: arguments and schemas of tools, `metadata`, citations.
 */
export type DialectEffects = Readonly<Record<string, Pick<DialectNeed, 'kind' | 'name'>>>;

/** What a dialect makes of a request. */
export interface DialectRequest {
  readonly request: ChatRequest;
  /** The provider that the caller named apart from the model, such as in the path. */
  readonly provider?: string;
  /** Fields of the caller's body that the canonical request cannot say; told in `x-tollgate-dropped` on the translated lane. */
  readonly dropped?: readonly string[];
  readonly needs?: readonly DialectNeed[];
  /** Where a place of the canonical request (`messages[2].content`) stands in the caller's body; the same place unless set. */
  place?(param: string): string;
}

/** What a dialect may know of the call that it writes for. It has no clock and does no I/O. */
export interface DialectContext<Body = unknown> {
  readonly input: DialectInput<Body>;
  /** The canonical request as the dialect read it. */
  readonly request: ChatRequest;
  /** The call's id, unique, for formats whose responses have one. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly requestId: string;
  /** Input tokens, estimated before the call was sent, for formats that tell them first. */
  readonly estimatedInputTokens: number;
  /** Who responds, once that is known. */
  readonly responder?: () => Target | undefined;
  /** Notes what of the response the format cannot say, such as `images`; told in the log, the record of the call and, of a whole response, in `x-tollgate-dropped`. */
  readonly leaveOut?: (what: string) => void;
  /** Seals what only the deployment that responds can read, for this caller's account; core opens it when it comes back. */
  seal(data: string): string;
}

/** Writes one stream. Each text is whole frames, ready to be sent. */
export interface DialectStream {
  /** Frames for one canonical chunk; the last chunk has the usage, whatever the caller wanted. */
  push(chunk: ChatChunk): string;
  /** Frames of a complete end. */
  end(): string;
  /** Frames of an end by an error; nothing follows them. */
  fail(error: GatewayError, requestId: string): string;
  /** The body of the whole response that the stream came to, for `remember`; undefined when it did not end well. */
  response?(): unknown;
  /** `text/event-stream; charset=utf-8` unless set. */
  readonly contentType?: string;
  /** Replaces the dialect's `keepAlive`. */
  readonly keepAlive?: string;
}

/** Passes on one stream of a vendor that speaks the dialect itself; the events were read for metering already. */
export interface DialectNativeStream extends Omit<DialectStream, 'push'> {
  /** The frames for one event of the vendor. Errors never come here: they go to `fail`. */
  push(event: SseEvent): string;
}

/** What became of a request between the dialect's `read` and one target, for `patch`. */
export interface NativeChange {
  /** The canonical request as `read` made it. */
  readonly before: ChatRequest;
  /**
   * As hooks left it. Differs in these fields only: `model`, `max_completion_tokens`, `max_tokens`, `temperature`, `top_p`, `stop`,
   * `user`, `metadata`, `service_tier`, `reasoning_effort`, `dialect_fields`, and messages or tools added at either end.
   */
  readonly after: ChatRequest;
  /** The model as the provider knows it. */
  readonly model: string;
  readonly stream: boolean;
  /** The `param` of optional needs that this caller may not have: they are left out. */
  readonly without?: readonly string[];
  /** Opens a sealed text for this target; undefined when it is another account's or another deployment's. */
  open(sealed: string): string | undefined;
  /** A text that names the same thing for this account only, such as a key of a vendor's cache. */
  scope(text: string): string;
}

/** How a dialect passes requests to vendors that speak it themselves, and their responses back. Pure. */
export interface DialectNative<Body = unknown> {
  /** Request headers of the caller that the provider may get to see; names in lower case. */
  readonly headers?: readonly string[];
  /** Core looks for them, and for addresses, in every body that it may pass on. */
  readonly effects?: DialectEffects;
  /** The caller's own body, written anew with the change; undefined when it cannot be written: then the call is translated. */
  patch(body: Body, change: NativeChange): NativeBody | undefined;
  /** The vendor's whole response as the caller gets it. */
  write(body: unknown, context: DialectContext<Body>): unknown;
  stream(context: DialectContext<Body>): DialectNativeStream;
}

/** A model as a dialect's list shows it. */
export interface ListedModel
  extends Pick<ModelInfo, 'contextWindow' | 'maxOutput' | 'inputModalities' | 'outputModalities' | 'shutdown'> {
  /** `provider/model`, or an alias. */
  readonly id: string;
  readonly ownedBy: string;
  /** Unix seconds. */
  readonly created: number;
  /** What it costs now. */
  readonly price?: Price;
}

/** How a dialect shows the models that a caller may use. */
export interface DialectModels {
  /** A path of its own, such as `/v1beta/models`; one model is below it. */
  readonly path?: string;
  /** The request header by which `/v1/models` is wanted in this form, in lower case. */
  readonly header?: string;
  list(models: readonly ListedModel[], query: Readonly<Record<string, string>>): unknown;
  one(model: ListedModel): unknown;
}

/** A client format of chat, both directions; pure but for `expand` and `remember`. Registered with `api.dialect`. */
export interface DialectDefinition<Body = unknown> {
  readonly name: string;
  /** Of the body; it validates and documents. */
  readonly request: Schema;
  /** Of a whole response, for the OpenAPI document. */
  readonly response: Schema;
  readonly routes: readonly DialectRoute[];
  /** Paths below which errors are written in this format also where no route is; `/v1/messages`, say. */
  readonly prefixes?: readonly string[];
  /** Other paths of this gateway's routes of models, of this format or another; a path that a route has is no such path. */
  readonly pathAliases?: readonly PathAlias[];
  /** Where this format's clients put their credential, beside `authorization` and `x-api-key`; below `prefixes` only. */
  readonly credentials?: { readonly headers?: readonly string[]; readonly query?: readonly string[] };
  /** Whether a text is a token of somebody's own subscription with the format's vendor: beside a key of this gateway it is refused. */
  isSubscription?(credential: string): boolean;
  /** Model names of this format's clients, each with what it stands for (`provider/model`), before the configuration's aliases. */
  readonly aliases?: Readonly<Record<string, readonly string[]>>;
  readonly models?: DialectModels;
  /** Whether every caller has to name a limit of output: then it may be lowered to what a budget pays for, as one that nobody named. */
  readonly demandsLimit?: boolean;
  /** Looks up what a body refers to, in the plugin's own documents, before it is read. */
  expand?(input: DialectInput<Body>, caller: Principal): Promise<DialectInput<Body>>;
  /** Throws `GatewayError('invalid_request', …, { param })` for what cannot be said canonically. */
  read(input: DialectInput<Body>): DialectRequest;
  /** The body of a whole response. */
  write(response: ChatResponse, context: DialectContext<Body>): unknown;
  stream(context: DialectContext<Body>): DialectStream;
  /** For routes that count. */
  count?(inputTokens: number, context: DialectContext<Body>): unknown;
  readonly native?: DialectNative<Body>;
  /** Keeps what later requests may refer to; the caller waits for it before the end of the response. */
  remember?(response: unknown, context: DialectContext<Body>, caller: Principal): Promise<void>;
  /** What is sent while a provider is silent: a comment, or an event of the format. */
  readonly keepAlive: string;
  /** The body of an error, and its status where the format has another one. */
  error(error: GatewayError, requestId: string): { readonly body: unknown; readonly status?: number };
}
