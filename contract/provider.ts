import type { buildConnector } from 'undici';
import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { SseEvent, SseReader, SseReaderOptions, StreamProgress } from './events.ts';

/** US dollars per million tokens; `tiers` replace the prices for prompts with more tokens than the tier's bound. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_write?: number;
  /** Cache writes with a lifetime of one hour. */
  readonly cache_write_1h?: number;
  /** Audio tokens, read and written. Without these rates the price of a response with audio is unknown. */
  readonly audio_input?: number;
  readonly cached_audio_input?: number;
  readonly audio_output?: number;
  /** Tokens of image input, uncached and cached. Default: `input` and `cached_input`. */
  readonly image_input?: number;
  readonly cached_image_input?: number;
  /** Tokens of image output. Default: unknown, as for audio. */
  readonly image_output?: number;
  readonly tiers?: readonly (Omit<Price, 'tiers' | 'service_tiers'> & { readonly input_tokens_above: number })[];
  /** Prices of other service tiers, by the name in the response; each replaces all rates above. */
  readonly service_tiers?: Readonly<Record<string, Omit<Price, 'service_tiers' | 'characters' | 'seconds'>>>;
  /** US dollars per unit other than tokens: `requests`, `web_search_requests`, …. Unlisted units have no known price. */
  readonly fees?: Readonly<Record<string, number>>;
  /** Factors on all token rates, by the region in the response. */
  readonly regions?: Readonly<Record<string, number>>;
  /** US dollars per million characters, for speech. */
  readonly characters?: number;
  /** US dollars per million seconds of audio, for speech billed by time. */
  readonly seconds?: number;
}

/** Price with a limited validity. Exactly one row without `hours` applies at each time; rows with `hours` override it. */
export interface PriceRow extends Price {
  /** Start date or time in ISO 8601. Default: valid from the beginning. */
  readonly from?: string;
  /** End, excluded. Default: valid without end. */
  readonly until?: string;
  /** Hours of a week in UTC, such as `mon-fri 01:00-04:00, daily 23:00-24:00`. */
  readonly hours?: string;
}

export interface ModelInfo {
  /**
   * Name or prefix: requests for models that start with it are accepted. The other fields apply to the name and its dated variants.
   */
  readonly id: string;
  /** Model of the vendor's table whose facts apply to this name where it sets none. */
  readonly base?: string;
  /** Operation; default: chat. */
  readonly kind?: string;
  readonly contextWindow?: number;
  readonly maxOutput?: number;
  /** Maximum text length of a speech model, if it differs from its vendor's. */
  readonly maxCharacters?: number;
  /** Input and output types: `text`, `image`, `audio`, `video`, `file`, `embeddings`. */
  readonly inputModalities?: readonly string[];
  readonly outputModalities?: readonly string[];
  /** Shutdown date that the vendor announced: `2026-12-11`. */
  readonly shutdown?: string;
  readonly price?: Price | readonly PriceRow[];
}

/** Facts of a model in the table, and their origin. */
export type ModelFacts = Omit<ModelInfo, 'id'> & {
  /** Names in `sources` of the table. */
  readonly source?: readonly string[];
  /** Sources of the price. */
  readonly priceSource?: readonly string[];
  /** Set unless two sources state the same price. */
  readonly priceCheck?: 'one source' | 'sources differ';
};

/**
 * Contents of `config/models.json`: facts by vendor and model. A vendor given as a name shares that vendor's rows, except shutdown
 * dates.
 */
export interface ModelTable {
  /** Increases with each edition. */
  readonly version?: number;
  /** Date of the edition. */
  readonly date?: string;
  readonly sources?: Readonly<Record<string, string>>;
  readonly vendors: Readonly<Record<string, string | Readonly<Record<string, ModelFacts>>>>;
  readonly families?: Readonly<Record<string, ModelFamily>>;
}

/** Naming scheme of a vendor's models, listed or not. */
export interface ModelFamily {
  /** Prefixes of accepted names without a price, used if the operator lists no models. */
  readonly accepts?: readonly string[];
  /** Prefixes without meaning: `models/x` is `x`. */
  readonly strips?: readonly string[];
  /** Facts of all models with a suffix: `:free` has a price of 0. */
  readonly endings?: Readonly<Record<string, ModelFacts>>;
  /** Common parts of its prices, including the operator's own: fees of its tools, and region factors. */
  readonly fees?: Readonly<Record<string, number>>;
  readonly regions?: Readonly<Record<string, number>>;
}

/** Call data for a codec. It is complete: a codec has no clock and no I/O. */
export interface CodecCall {
  /** Model as the provider names it. */
  readonly model: string;
  readonly stream: boolean;
  /** Unix seconds, for vendors that send no creation time. */
  readonly created: number;
  /** Unique per attempt, for vendors whose responses have no id. */
  readonly id: string;
  /** Caller, for vendors that need an id of it; absent in the kits. Send no more of it than the vendor needs. */
  readonly principal?: { readonly userId: string; readonly account: string };
  /** Request passed to the codec, for responses whose form depends on it (renamed fields). */
  readonly request?: ChatRequest;
}

/** HTTP request relative to the provider's base URL. Contains no credential: core adds it, for declared hosts only. */
export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** Appended to the base URL; begins with `/`, may contain a query. Parts from a caller are percent-encoded. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, bytes unchanged. */
  readonly body?: object | Uint8Array;
  /** Request fields that this provider does not support and that were dropped; reported in `x-tollgate-dropped`. */
  readonly dropped?: readonly string[];
  /**
   * Optional fields of `body` that the gateway added, not the caller, such as `reasoning.summary`. If the vendor rejects one by name
   * (400 or 422), core sends the request again without it, and omits it from later requests to this target.
   */
  readonly added?: readonly string[];
}

/** Class of an upstream failure; `contract/failures.ts` defines the consequences of each. */
export type FailureClass =
  | 'authentication'
  /** The account may not do this: a model, region or feature. The vendor's key is valid. */
  | 'permission'
  | 'billing'
  | 'rate_limit'
  | 'overloaded'
  | 'context_length'
  /** The request exceeds a limit of the operator's account. The failure concerns the request, and another target may accept it. */
  | 'request_over_limit'
  | 'content_filter'
  | 'model_not_found'
  /** Something other than a model does not exist there, such as the path or a file. */
  | 'not_found'
  | 'invalid_request'
  | 'upstream_error'
  /** The model's response is incomplete; the message is the gateway's own. */
  | 'broken_off'
  | 'timeout';

export interface UpstreamFailure {
  readonly class: FailureClass;
  /** The vendor's message, for classes that the caller can fix; core redacts keys and ids before it shows it. */
  readonly message: string;
  readonly param?: string;
  readonly retryAfterMs?: number;
}

export type ResponseHeaders = Readonly<Record<string, string | undefined>>;

/** Decodes one stream. Created per attempt, so it may hold state; `push` and `end` do no I/O. */
export interface StreamDecoder {
  /** Returns the canonical chunks for one event; throws a `StreamFailure` with an {@link UpstreamFailure} for an error event. */
  push(event: SseEvent): readonly ChatChunk[];
  /**
   * Ends the stream. `complete` is false without a terminal sign (finish reason, vendor's end event). `dropped` names fields of the
   * request that the vendor ignored, as its response says; they are in the log and the record of the call.
   */
  end(): { readonly chunks: readonly ChatChunk[]; readonly complete: boolean; readonly dropped?: readonly string[] };
  /**
   * Returns the progress of the response after the events so far. Core ends the caller's stream when it is `complete`, waits one
   * second when it is `ending`, and two when it is `finished`. It then calls {@link end} and closes the connection. Default:
   * `finished` once all choices have a finish reason.
   */
  readonly progress?: (() => StreamProgress) | undefined;
  /**
   * Returns the event that equals the chunks of the last {@link push} or {@link end}, for callers of the vendor's format.
   * Undefined if such a caller needs the chunks. Default: always undefined.
   */
  readonly original?: (() => SseEvent | undefined) | undefined;
}

const STREAM_FAILURE = Symbol.for('tollgate.StreamFailure');

/** Returns whether a value is a {@link StreamFailure}, including one made by another copy of this package (a plugin's). */
export function isStreamFailure(value: unknown): value is StreamFailure {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[STREAM_FAILURE] === true;
}

/** Failure that a codec finds in a response with a good status or in a stream event. */
export class StreamFailure extends Error {
  override readonly name = 'StreamFailure';
  readonly failure: UpstreamFailure;
  constructor(failure: UpstreamFailure) {
    super(failure.message);
    this.failure = failure;
    Object.defineProperty(this, STREAM_FAILURE, { value: true });
  }
}

/** Translates chat. All methods are pure and run once per attempt. */
export interface ChatCodec {
  /**
   * May throw `GatewayError('invalid_request', …, { param })` for features that the vendor does not support. May return a promise,
   * which must settle soon; a rejection has the same effect as an error.
   */
  request(input: ChatRequest, call: CodecCall): HttpRequest | Promise<HttpRequest>;
  /** `body` is parsed JSON. Throws {@link StreamFailure} for a 200 that contains an error. */
  response(body: unknown, call: CodecCall): ChatResponse;
  stream(call: CodecCall): StreamDecoder;
  /**
   * Returns true if a vendor's whole response equals its canonical form. Callers of the vendor's format then get it unchanged.
   * Default: false.
   */
  isOriginal?(body: unknown, response: ChatResponse): boolean;
  /**
   * Returns whether the model accepts the order of a request's turns. If not, a request in the vendor's own format is translated.
   */
  isInOrder?(input: ChatRequest, call: CodecCall): boolean;
  /** Creates a reader for its streams, if they are not server-sent events. */
  reader?(options: SseReaderOptions): SseReader;
}

/** Response of a provider without a network (echo, a program on this machine). */
export interface TransportResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<Uint8Array>;
  /** Request fields that a {@link ClientLibrary} did not send; reported in `x-tollgate-dropped` with those of the request. */
  readonly dropped?: readonly string[];
}

/** Replaces the network. Aborting the signal ends the work at once. */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<TransportResponse>;

/**
 * Client library of a vendor, in place of a codec's own request: it makes the HTTP requests. `request` is the codec's, for the library
 * alone. Each request of the library goes out by `send`, with the endpoint's key, `send` hooks, timeouts and recording.
 */
export type ClientLibrary = (request: HttpRequest, signal: AbortSignal, send: ClientSend) => Promise<TransportResponse>;

/**
 * Sends one HTTP request of a {@link ClientLibrary} to an origin, such as `https://api.example.com`. `signal` aborts this
 * request alone.
 */
export type ClientSend = (origin: string, request: HttpRequest, signal?: AbortSignal) => Promise<TransportResponse>;

export interface Credential {
  /** Lower case, such as `authorization`. */
  readonly header: string;
  /** Prefix of the value, such as `Bearer `. */
  readonly prefix?: string;
  /** Undefined if the operator set none. */
  readonly value: string | undefined;
  /** True if calls need it; without a value they fail with `provider_not_configured`. */
  readonly required: boolean;
  /** Environment variable that usually contains it, for messages. */
  readonly env?: string;
  /** Text in headers of a {@link ClientLibrary} that the value replaces. `header` is then not added. */
  readonly placeholder?: string;
  /**
   * Returns the headers of one request, for credentials that sign or expire. Replaces `value`, which is then undefined, with
   * `required` false. Returns a promise if it must fetch something first. A rejection, preferably a {@link StreamFailure}, fails
   * the attempt.
   */
  headers?(request: CredentialRequest): CredentialHeaders | Promise<CredentialHeaders>;
  /** Receives each error status. Returns true if the request should be retried once with new headers. */
  refused?(status: number, headers: ResponseHeaders): boolean;
}

/** One of several credentials of a provider, which its calls are distributed over. */
export interface PooledKey {
  /** Name for operators. Letters, digits, `.`, `_` and `-`. */
  readonly name: string;
  /** Share of the calls; 0 is used only while all others are unavailable. */
  readonly weight: number;
  readonly credential: Credential;
}
export type CredentialHeaders = Readonly<Record<string, string>>;

/** Final request, for a credential that signs it. */
export interface CredentialRequest {
  readonly method: string;
  /** Origin, path and query. */
  readonly url: string;
  /** In lower case; without `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** Forwarding of a caller's own token to a vendor in place of the operator's key. */
export interface PassThroughAuth {
  /** Returns whether a text sent in addition to a key of this gateway is such a token. */
  isToken(text: string): boolean;
  /** Header format of the vendor. */
  readonly credential: Pick<Credential, 'header' | 'prefix'>;
  /** Returns the headers of a request with a token, from its own headers and those of the caller; neither contains a credential. */
  headers(
    sent: Readonly<Record<string, string>>,
    caller: Readonly<Record<string, string | readonly string[] | undefined>>,
  ): Readonly<Record<string, string>>;
}

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  /** Limit until the first content of a stream, from the start of the attempt. */
  readonly firstTokenMs?: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** Outgoing route of connections: proxy and certificates. Core creates it from the options `proxy` and `tls`. */
export interface ProxyRoute {
  /** Different ids share no connection. */
  readonly id: string;
  connector(timeoutMs: number): buildConnector.connector;
}

export interface Endpoint {
  /** Without a trailing slash. Unused with a {@link Transport}. */
  readonly baseUrl: string;
  /** Hosts (`name` or `name:port`) that may receive the credential. The base URL's host is always included. */
  readonly hosts?: readonly string[];
  readonly credential?: Credential;
  /** All keys, if there are several; {@link credential} is the first. Core chooses one per attempt. */
  readonly keys?: readonly PooledKey[];
  /** Sent with every request; never a credential. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeouts?: Partial<Timeouts>;
  readonly transport?: Transport;
  /** Makes the requests of this endpoint over the network. The base URL is then unused. */
  readonly client?: ClientLibrary;
  /** Name of a client library that may use connections of its own, for operators. */
  readonly ownConnections?: string;
  /** Set by core; undefined for a direct connection. */
  readonly proxyRoute?: ProxyRoute;
  /** Classifies a response with an error status. `body` is parsed JSON if valid (arrays unwrapped), else text. */
  error(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure;
  /** Response header with the service tier, if any; lower case. */
  readonly tierHeader?: string;
  /** Returns the vendor's rate-limit headers under OpenAI's names, `x-ratelimit-*`. Default: those names pass unchanged. */
  rateLimits?(headers: ResponseHeaders): Readonly<Record<string, string>>;
  /** Set if the operator lets callers pay with their own subscription; otherwise their tokens are rejected. */
  readonly passThroughAuth?: PassThroughAuth;
  /**
   * Effects of request fields at the vendor. Core checks every request against them when it is sent. By model if the vendor has
   * several wire formats.
   */
  readonly effects?: ProviderEffects | ((model: string) => ProviderEffects);
}

/**
 * Effect of a request field at a vendor.
 * `tool`: the vendor runs a tool with the operator's account; a key or plan must allow it in `serverTools`.
 * `model`: the vendor calls another model; the caller must be allowed to use it.
 * `stores`: the vendor stores input or output; this is rejected.
 * `price`: the call costs more or less.
 * `residency`: sets where, or by whom, the call is processed.
 * The last two are for codecs, docs and tests: a request that cannot be billed or guaranteed is not sent.
 */
export interface ProviderEffect {
  readonly does: 'tool' | 'model' | 'price' | 'stores' | 'residency';
  /**
   * Path of the value below the field, such as `[].id`; `[]` is each item of a list, `*` each name of an object. Default: the field
   * itself.
   */
  readonly at?: string;
  /** Values with the effect. Default: anything but `null` and `false`. */
  readonly values?: RegExp;
  /** Name of the tool in `serverTools`; `*` for models that the vendor chooses. Default: the value itself. */
  readonly name?: string;
  /** One sentence for the docs. */
  readonly note?: string;
}

/** Effects by field of the request body; `model` is the target's model, wherever the vendor has that. */
export type ProviderEffects = Readonly<Record<string, readonly ProviderEffect[]>>;

/** Callable endpoint with its models and prices. Plugins register one per operation. */
export interface Offer extends Endpoint {
  readonly specVersion: 1;
  /** Vendor name, which selects its rows in `config/models.json`; several instances may share it. */
  readonly vendor: string;
  /** Models. Default: the vendor's rows of `config/models.json`. */
  readonly models?: readonly ModelInfo[];
  /** Additional models. */
  readonly addModels?: readonly ModelInfo[];
  /** True accepts every model name (`models: ["*"]`). */
  readonly anyModel?: boolean;
  /** Operator's prices by model prefix or `*`; they override all tables. */
  readonly prices?: Readonly<Record<string, Partial<Price> | readonly PriceRow[]>>;
  /** Default of a rate, as a multiple of `input`. */
  readonly priceFactors?: { readonly cache_write_1h: number };
  /**
   * Models whose listed rates are multiplied because requests go to a more expensive region. Fees and the operator's own rates are
   * unchanged.
   */
  readonly dearerPlace?: { readonly models: RegExp; readonly by: number };
}

/** A vendor's support of a client's dialect, for one model. */
export interface NativeRow {
  /** Appended to the base URL; begins with `/`. */
  readonly path: string;
  /** Returns the request headers. Receives the caller's headers that the dialect forwards; may reject one with a GatewayError. */
  headers?(caller: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** Reads the vendor's responses in this format, for metering and hooks. Default: the provider's chat codec. */
  readonly codec?: Pick<ChatCodec, 'response' | 'stream' | 'reader'>;
  /** Changes a caller's body to the operator's settings, such as disabled storage at the vendor. */
  body?(body: object): NativeBody;
  /** True if requests may refer to objects in the operator's account at the vendor, which all callers share. Default: false. */
  readonly references?: boolean;
  /**
   * Token-counting endpoint of the vendor, and the reader of its response. `body` removes fields that the endpoint rejects.
   * Default: the whole body is sent.
   */
  readonly count?: {
    readonly path: string;
    body?(body: object, model: string): object;
    response(body: unknown): number | undefined;
  };
}

/** Continuation of a partial response: the request ends with an assistant message that the vendor continues. */
export interface Continuation {
  /** True if the output repeats the given text; otherwise it contains only the continuation. */
  readonly echoes?: boolean;
  /** True if trailing white space of the given text is removed. */
  readonly trims?: boolean;
  /** Adapts the request for a continuation. Default: the request of the codec. */
  write?(request: HttpRequest): HttpRequest;
}

/** Vendor of chat models, as registered by a plugin. */
export interface Provider extends Offer {
  readonly chat?: ChatCodec;
  /** Returns the dialects and named endpoints that the vendor supports for a model, by name. The operator may disable it. */
  native?(model: string, stream: boolean): Readonly<Record<string, NativeRow | undefined>>;
  /**
   * Group of instances that share the vendor's account: each can read what the vendor encrypted for another. Default: the instance
   * alone.
   */
  readonly affinity?: string;
  /** `refuse` if the server would fetch image and file URLs from inside the operator's network. */
  readonly remoteMedia?: 'allow' | 'refuse';
  /** Factor on the estimated input tokens for this vendor's models; default: 1. */
  readonly countFactor?: number;
  /** Handling of each request field by the chat codec, for docs and tests. */
  readonly fields?: FieldTable;
  /** Returns the vendor's support for continuing a response of another target with this model; undefined if unsupported. */
  continues?(model: string): Continuation | undefined;
  /** Interval of fetching the vendor's model list, in milliseconds; absent: never. */
  readonly refreshModelsMs?: number;
  /** Lists the vendor's models: the request, and the models of its response. The reader rejects invalid values. */
  readonly listModels?: { request(): HttpRequest; response(body: unknown): readonly ModelInfo[] };
}

/**
 * Handling of one request field at a vendor, as data; `docs/providers/<name>.md` and the matrix are generated from it.
 *
 * `passed`: sent unchanged; a number outside `min` and `max` is rejected. `renamed`: sent under the vendor's name, `to`.
 * `emulated`: sent as an equivalent that the note describes. `dropped`: omitted and reported in `x-tollgate-dropped`. `refused`:
 * rejected with 400, because the response would not match the request.
 */
export interface FieldRule {
  readonly rule: 'passed' | 'renamed' | 'emulated' | 'dropped' | 'refused';
  /** The vendor's name of the field; a dotted path in its body, such as `generationConfig.topP`. */
  readonly to?: string;
  /** One sentence for the docs; for a refused field also for the caller. */
  readonly note?: string;
  /** Values equal to the default, so that omitting them changes nothing and is not reported. */
  readonly neutral?: readonly unknown[];
  readonly min?: number;
  readonly max?: number;
}

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** Rules for some models or requests only; the first matching variant overrides the table. */
export interface FieldVariant {
  /** Description of the variant: `reasoning models (o1, o3, gpt-5 and later)`. */
  readonly when: string;
  /** Matching request, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields: FieldRules;
}

/**
 * Feature of a response other than text; `tool calls` and similar features include streamed ones. Only a provider without a network
 * lacks `errors`.
 */
export type AnswerFeature =
  | 'cached tokens'
  | 'errors'
  | 'log probabilities'
  | 'parallel tool calls'
  | 'reasoning content'
  | 'reasoning tokens'
  | 'tool calls';

/** All field rules of a vendor. Unlisted fields of OpenAI's chat completions are passed. */
export interface FieldTable {
  readonly fields: FieldRules;
  readonly variants?: readonly FieldVariant[];
  /** Handling of fields that OpenAI does not have. */
  readonly unknown: 'passed' | 'dropped';
  /** The vendor's own fields that are passed if others are dropped. */
  readonly extras?: readonly string[];
  /**
   * Features that its responses never have, each with the source. The conformance kit checks it against the fixtures and the rules.
   */
  readonly lacks?: Readonly<Partial<Record<AnswerFeature, string>>>;
}

/**
 * Phase in which an attempt failed. `connect` to `total` are the four timeouts and errors while they run. `body`: the response
 * itself is invalid (broken off, too large, a redirect, encoded). `aborted`: the caller's signal fired.
 */
export type UpstreamPhase = 'connect' | 'firstByte' | 'idle' | 'total' | 'body' | 'aborted';

/** Request of a dialect to a vendor that speaks it. */
export interface NativeBody {
  readonly body: object;
  /** Dropped fields; reported in `x-tollgate-dropped`. */
  readonly dropped?: readonly string[];
  /** Fields that the caller did not send, as in {@link HttpRequest}. */
  readonly added?: readonly string[];
}
