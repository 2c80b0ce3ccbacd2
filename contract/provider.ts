import type { buildConnector } from 'undici';
import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts';
import type { SseEvent, SseReader, SseReaderOptions, StreamProgress } from './events.ts';

/** US dollars per million tokens; `tiers` replace the prices when the prompt has more tokens than the tier's bound. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_write?: number;
  /** Cache writes that live an hour. */
  readonly cache_write_1h?: number;
  /** Tokens of sound, read and written: a response that tells some has no known price without these. */
  readonly audio_input?: number;
  readonly cached_audio_input?: number;
  readonly audio_output?: number;
  /** Tokens of images that were read, cached or not; as `input` and `cached_input` unless set. */
  readonly image_input?: number;
  readonly cached_image_input?: number;
  /** Tokens of images that were written: as with sound, unknown unless set. */
  readonly image_output?: number;
  readonly tiers?: readonly (Omit<Price, 'tiers' | 'service_tiers'> & { readonly input_tokens_above: number })[];
  /** What other service tiers cost, by the name that a response tells; each replaces the rates above whole. */
  readonly service_tiers?: Readonly<Record<string, Omit<Price, 'service_tiers' | 'characters' | 'seconds'>>>;
  /** US dollars for one of each other unit that responses come to: `requests`, `web_search_requests`, …; one that is not here has no known price. */
  readonly fees?: Readonly<Record<string, number>>;
  /** What all tokens cost as a multiple of the rates, by the region that a response tells. */
  readonly regions?: Readonly<Record<string, number>>;
  /** US dollars per million characters, for speech. */
  readonly characters?: number;
  /** US dollars per million seconds of sound, for speech that is billed by time. */
  readonly seconds?: number;
}

/** A price that holds for a time. Of rows without `hours` one holds at each time; those with `hours` come before it. */
export interface PriceRow extends Price {
  /** From this date or time on, in ISO 8601; always before `until` unless set. */
  readonly from?: string;
  /** To before it; for ever unless set. */
  readonly until?: string;
  /** The hours of a week in UTC, such as `mon-fri 01:00-04:00, daily 23:00-24:00`. */
  readonly hours?: string;
}

export interface ModelInfo {
  /** A name; requests whose model begins with it are accepted. What else is said here holds for the name and its dated variants. */
  readonly id: string;
  /** The model of the vendor's table whose facts hold for this name, where the name itself says nothing. */
  readonly base?: string;
  /** The operation it is for; chat unless set. */
  readonly kind?: string;
  readonly contextWindow?: number;
  readonly maxOutput?: number;
  /** The longest text of a speech model, where it differs from its vendor's. */
  readonly maxCharacters?: number;
  /** What it reads and what it writes: `text`, `image`, `audio`, `video`, `file`, `embeddings`. */
  readonly inputModalities?: readonly string[];
  readonly outputModalities?: readonly string[];
  /** The day from which on its vendor no longer serves it, as the vendor has announced it: `2026-12-11`. */
  readonly shutdown?: string;
  readonly price?: Price | readonly PriceRow[];
}

/** What the table says of a model, and which of its `sources` that is from. */
export type ModelFacts = Omit<ModelInfo, 'id'> & { readonly source?: readonly string[] };

/** What `config/models.json` holds: facts by vendor and model; a vendor that is a name shares that vendor's rows, but not the ends of its models. */
export interface ModelTable {
  /** Rises with each edition. */
  readonly version?: number;
  /** The day that it is of. */
  readonly date?: string;
  readonly sources?: Readonly<Record<string, string>>;
  readonly vendors: Readonly<Record<string, string | Readonly<Record<string, ModelFacts>>>>;
  readonly families?: Readonly<Record<string, ModelFamily>>;
}

/** How a vendor names its models, listed or not. */
export interface ModelFamily {
  /** Beginnings of names that are accepted, without a price, while the operator lists no models. */
  readonly accepts?: readonly string[];
  /** Beginnings that say nothing: `models/x` is `x`. */
  readonly strips?: readonly string[];
  /** What is known of every model with such an ending: `:free` has a price of 0. */
  readonly endings?: Readonly<Record<string, ModelFacts>>;
  /** What its prices have in common, also those of the operator's own: fees of its tools, and what regions cost. */
  readonly fees?: Readonly<Record<string, number>>;
  readonly regions?: Readonly<Record<string, number>>;
}

/** What a codec may know of the call it translates for. Everything a codec needs: it has no clock and no I/O. */
export interface CodecCall {
  /** The model as the provider knows it. */
  readonly model: string;
  readonly stream: boolean;
  /** Unix seconds, for vendors that tell no creation time. */
  readonly created: number;
  /** Unique for the attempt, for vendors that give answers no id. */
  readonly id: string;
  /** The request as the codec was given it, for responses whose form depends on it (names that were changed on the way out). */
  readonly request?: ChatRequest;
}

/** An HTTP request relative to the provider's base URL. Holds no credential: core adds it, for declared hosts only. */
export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** Appended to the base URL; begins with `/`, may hold a query. Parts from a caller are percent-encoded. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, bytes as they are. */
  readonly body?: object | Uint8Array;
  /** Request fields that this provider does not have and that were left out; told in `x-tollgate-dropped`. */
  readonly dropped?: readonly string[];
}

/** Why an upstream answer is not a success; `core/calls/attempt.ts` says what follows from each class. */
export type FailureClass =
  | 'authentication'
  | 'billing'
  | 'rate_limit'
  | 'overloaded'
  | 'context_length'
  /** The request asks for more than the operator's account may ask for at once: about the request, and another target may take it. */
  | 'request_over_limit'
  | 'content_filter'
  | 'model_not_found'
  | 'invalid_request'
  | 'upstream_error'
  /** The model's response came to no end: the message says how, without words of the vendor's own. */
  | 'broken_off'
  | 'timeout';

export interface UpstreamFailure {
  readonly class: FailureClass;
  /** The vendor's words, for classes that are the caller's to mend; core redacts keys and ids before it shows them. */
  readonly message: string;
  readonly param?: string;
  readonly retryAfterMs?: number;
}

export type ResponseHeaders = Readonly<Record<string, string | undefined>>;

/** Decodes one stream. Made per attempt, so it may keep state; `push` and `end` do no I/O. */
export interface StreamDecoder {
  /** Canonical chunks for one event; throws an {@link UpstreamFailure}-carrying `StreamFailure` on an error event. */
  push(event: SseEvent): readonly ChatChunk[];
  /** Called at the end of the bytes. `complete` is false when no terminal sign (finish reason, vendor's end event) was seen. */
  end(): { readonly chunks: readonly ChatChunk[]; readonly complete: boolean };
  /**
   * Progress of the answer after the events so far. Core ends the caller's stream when it is `complete`, waits one second when it is
   * `ending` and two when it is `finished`, then calls {@link end} and closes the connection. Without this method a stream counts as
   * `finished` once all its choices have a finish reason.
   */
  readonly progress?: (() => StreamProgress) | undefined;
}

const STREAM_FAILURE = Symbol.for('tollgate.StreamFailure');

/** Whether a value is a {@link StreamFailure}, also one made by another copy of this package (a plugin's). */
export function isStreamFailure(value: unknown): value is StreamFailure {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[STREAM_FAILURE] === true;
}

/** Thrown by a codec when an answer with a good status, or an event of a stream, turns out to be a failure. */
export class StreamFailure extends Error {
  override readonly name = 'StreamFailure';
  readonly failure: UpstreamFailure;
  constructor(failure: UpstreamFailure) {
    super(failure.message);
    this.failure = failure;
    Object.defineProperty(this, STREAM_FAILURE, { value: true });
  }
}

/** Translates chat; every method is pure and called anew for every attempt. */
export interface ChatCodec {
  /** May throw `GatewayError('invalid_request', …, { param })` for what the vendor cannot do. */
  request(input: ChatRequest, call: CodecCall): HttpRequest;
  /** `body` is parsed JSON. Throws {@link StreamFailure} when a 200 holds an error. */
  response(body: unknown, call: CodecCall): ChatResponse;
  stream(call: CodecCall): StreamDecoder;
  /** Whether the model accepts the order of a request's turns; where not, a request in the vendor's own format is translated. */
  isInOrder?(input: ChatRequest, call: CodecCall): boolean;
  /** Reads the bytes of its streams, where these are no server-sent events. */
  reader?(options: SseReaderOptions): SseReader;
}

/** What a provider without a network (echo, a program on this machine) answers with. */
export interface TransportResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Replaces the network. Aborting the signal ends the work at once. */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<TransportResponse>;

export interface Credential {
  /** Lower case, such as `authorization`. */
  readonly header: string;
  /** Put before the value, such as `Bearer `. */
  readonly prefix?: string;
  /** Undefined when the operator has set none. */
  readonly value: string | undefined;
  /** Whether calls need it; when true and the value is missing they answer `provider_not_configured`. */
  readonly required: boolean;
  /** The environment variable that usually holds it, for messages. */
  readonly env?: string;
  /**
   * Makes the headers of one request, for credentials that sign or expire; in place of `value`, which is undefined then, with `required`
   * false. A promise is for what has to be fetched first. What it rejects with, a {@link StreamFailure} at best, is the attempt's failure.
   */
  headers?(request: CredentialRequest): CredentialHeaders | Promise<CredentialHeaders>;
  /** Told of each error status; true where the same request is worth one more try, by headers that are made anew. */
  refused?(status: number, headers: ResponseHeaders): boolean;
}

/** One of several credentials of a provider that its calls are spread over. */
export interface PooledKey {
  /** What operators see of it. Letters, digits, `.`, `_` and `-`. */
  readonly name: string;
  /** Its share of the calls; 0 is used only while the others rest. */
  readonly weight: number;
  readonly credential: Credential;
}
export type CredentialHeaders = Readonly<Record<string, string>>;

/** A request as it will be sent, for a credential that signs it. */
export interface CredentialRequest {
  readonly method: string;
  /** Origin, path and query. */
  readonly url: string;
  /** In lower case; without `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

/** How a caller's own token goes to a vendor in place of the operator's key. */
export interface PassThroughAuth {
  /** Whether a text that came beside a key of this gateway is such a token. */
  isToken(text: string): boolean;
  /** How the vendor wants it. */
  readonly credential: Pick<Credential, 'header' | 'prefix'>;
  /** The headers of a request with a token, of those it is sent with and those of the caller; neither holds a credential. */
  headers(
    sent: Readonly<Record<string, string>>,
    caller: Readonly<Record<string, string | readonly string[] | undefined>>,
  ): Readonly<Record<string, string>>;
}

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  /** To the first content of a stream; counted from when the attempt begins. */
  readonly firstTokenMs?: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** How connections leave: through a proxy, by certificates. Core makes it of the options `proxy` and `tls`. */
export interface Way {
  /** What goes by different ones shares no connection. */
  readonly id: string;
  connector(timeoutMs: number): buildConnector.connector;
}

export interface Endpoint {
  /** Without a trailing slash. Not used with a {@link Transport}. */
  readonly baseUrl: string;
  /** Hosts (`name` or `name:port`) the credential may be sent to. The base URL's host is always one. */
  readonly hosts?: readonly string[];
  readonly credential?: Credential;
  /** Where there are several, of which {@link credential} is the first: core chooses one for each attempt. */
  readonly keys?: readonly PooledKey[];
  /** Sent with every request; never a credential. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeouts?: Partial<Timeouts>;
  readonly transport?: Transport;
  /** Set by core; undefined for directly. */
  readonly way?: Way;
  /** Classifies an answer with an error status. `body` is parsed JSON where it parses (arrays unwrapped), else text. */
  error(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure;
  /** The header of a response that says which service tier was served, where one does; lower case. */
  readonly tierHeader?: string;
  /** Rate-limit headers of the vendor as OpenAI's `x-ratelimit-*`; absent passes those names through. */
  rateLimits?(headers: ResponseHeaders): Readonly<Record<string, string>>;
  /** Where the operator lets callers pay with a subscription of their own; without it their tokens are refused. */
  readonly passThroughAuth?: PassThroughAuth;
  /** What a request can make the vendor do beyond responding; core holds every request to it as it is sent. By model where the vendor has several wires. */
  readonly effects?: ProviderEffects | ((model: string) => ProviderEffects);
}

/**
 * What a field of a request makes a vendor do. `tool`: it runs something with the operator's account, which a key or plan must allow in
 * `serverTools`; `model`: it calls another model, which the caller must be allowed; `stores`: it keeps what was sent or written, which is
 * refused; `price`: the call costs more or less; `residency`: it says where, or by whom, the call is processed. The last two are for
 * codecs, docs and tests: what cannot be billed or promised is not sent.
 */
export interface ProviderEffect {
  readonly does: 'tool' | 'model' | 'price' | 'stores' | 'residency';
  /** Where below the field the value stands, as `[].id`; `[]` is each item of a list, `*` each name of an object. The field itself unless set. */
  readonly at?: string;
  /** The texts that do it; anything but `null` and `false` unless set. */
  readonly values?: RegExp;
  /** The tool as `serverTools` names it; `*` for models that the vendor chooses. The value itself unless set. */
  readonly name?: string;
  /** One sentence for the docs. */
  readonly note?: string;
}

/** By the field of the body that is sent; `model` is the target's model, wherever the vendor has that. */
export type ProviderEffects = Readonly<Record<string, readonly ProviderEffect[]>>;

/** What can be called: an endpoint with its models and prices. Plugins register one for each operation they take part in. */
export interface Offer extends Endpoint {
  readonly specVersion: 1;
  /** The vendor's name, which finds its rows in `config/models.json`; several instances may share it. */
  readonly vendor: string;
  /** The models it has; absent takes the vendor's rows of `config/models.json`. */
  readonly models?: readonly ModelInfo[];
  /** Added to the models above. */
  readonly addModels?: readonly ModelInfo[];
  /** True accepts every model name (`models: ["*"]`). */
  readonly anyModel?: boolean;
  /** Operator's prices by model prefix or `*`; they win over every table. */
  readonly prices?: Readonly<Record<string, Partial<Price> | readonly PriceRow[]>>;
  /** What a rate costs as a multiple of `input` where a price does not say it. */
  readonly priceFactors?: { readonly cache_write_1h: number };
  /** Models whose listed rates are multiplied, since requests go to a place that costs more; fees and the operator's own rates are not. */
  readonly dearerPlace?: { readonly models: RegExp; readonly by: number };
}

/** How a vendor speaks a client's dialect itself, for one model. */
export interface NativeRow {
  /** Appended to the base URL; begins with `/`. */
  readonly path: string;
  /** The headers that go along. Gets those of the caller that the dialect lets through; may refuse one with a GatewayError. */
  headers?(caller: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** Reads the vendor's responses in this format, for metering and hooks. Absent: the provider's chat codec reads them. */
  readonly codec?: Pick<ChatCodec, 'response' | 'stream' | 'reader'>;
  /** Changes a caller's body as the operator wants it, such as that the vendor is to keep nothing. */
  body?(body: object): NativeBody;
  /** Whether requests may refer to what lies in the operator's account at the vendor, which all callers share; no unless set. */
  readonly references?: boolean;
  /**
   * Where the vendor counts the tokens of an input, and how its response tells them. `body` makes of a call's body what is sent
   * there, for vendors that refuse fields they do not count; the whole goes there unless set.
   */
  readonly count?: {
    readonly path: string;
    body?(body: object, model: string): object;
    response(body: unknown): number | undefined;
  };
}

/** How a vendor goes on with an answer that was begun: the last message of the request, of the assistant. */
export interface Continuation {
  /** Whether what it sends begins with what it was given; else it sends what follows. */
  readonly echoes?: boolean;
  /** Whether it is given the beginning without white space at the end. */
  readonly trims?: boolean;
  /** The request as it has to be sent for that; as the codec writes it unless set. */
  write?(request: HttpRequest): HttpRequest;
}

/** A vendor of chat models, as a plugin registers it. */
export interface Provider extends Offer {
  readonly chat?: ChatCodec;
  /** The dialects that the vendor speaks itself for a model, by name, and routes of them that have names of their own; the operator may switch it off. */
  native?(model: string, stream: boolean): Readonly<Record<string, NativeRow | undefined>>;
  /**
   * What shares the vendor's account: instances of one group can read what the vendor encrypted for another one. The instance alone
   * unless set.
   */
  readonly affinity?: string;
  /** `refuse` where the server would fetch addresses of images and files from inside the operator's network. */
  readonly remoteMedia?: 'allow' | 'refuse';
  /** What an estimate of input tokens is multiplied with for this vendor's models; 1 unless set. */
  readonly countFactor?: number;
  /** What the chat codec does with each request field, for docs and tests. */
  readonly fields?: FieldTable;
  /** How the vendor goes on with an answer of this model that was begun elsewhere; undefined where it cannot. */
  continues?(model: string): Continuation | undefined;
  /** How often the vendor's own model list is fetched, in milliseconds; absent never does. */
  readonly refreshModelsMs?: number;
  /** Lists models from the vendor: the request, and what its response says of each; values that are wrong are for the reader to refuse. */
  readonly listModels?: { request(): HttpRequest; response(body: unknown): readonly ModelInfo[] };
}

/**
 * What becomes of one request field at a vendor, as data: `docs/providers/<name>.md` and the matrix are made of these.
 *
 * `passed`: sent as it is; a number outside `min` and `max` is refused. `renamed`: sent under the vendor's name, `to`.
 * `emulated`: the vendor gets something else that comes to the same; the note says what. `dropped`: left out and told
 * in `x-tollgate-dropped`. `refused`: answered with 400, because the answer would not be to what was asked.
 */
export interface FieldRule {
  readonly rule: 'passed' | 'renamed' | 'emulated' | 'dropped' | 'refused';
  /** The vendor's name of it; a dotted path in its body, such as `generationConfig.topP`. */
  readonly to?: string;
  /** One sentence for the docs; of a refused field also for the caller. */
  readonly note?: string;
  /** Values that ask for nothing beyond the default, so that leaving them out changes nothing and is not told. */
  readonly neutral?: readonly unknown[];
  readonly min?: number;
  readonly max?: number;
}

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** Rules that hold for some models or requests only; the first variant that fits is laid over the table. */
export interface FieldVariant {
  /** For whom, in words: `reasoning models (o1, o3, gpt-5 and later)`. */
  readonly when: string;
  /** A request that it fits, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields: FieldRules;
}

/**
 * What an answer may show beside its text; `tool calls` and the like mean streamed ones too. `errors` is lacked only by a
 * provider without a network behind it.
 */
export type AnswerFeature =
  | 'cached tokens'
  | 'errors'
  | 'log probabilities'
  | 'parallel tool calls'
  | 'reasoning content'
  | 'reasoning tokens'
  | 'tool calls';

/** All field rules of a vendor. A field of OpenAI's chat completions that is not named is passed. */
export interface FieldTable {
  readonly fields: FieldRules;
  readonly variants?: readonly FieldVariant[];
  /** What happens to fields that OpenAI does not have. */
  readonly unknown: 'passed' | 'dropped';
  /** Fields of the vendor's own that are passed, when others are dropped. */
  readonly extras?: readonly string[];
  /** What its answers never show, and how that is known. The conformance kit holds it to the fixtures and to the rules. */
  readonly lacks?: Readonly<Partial<Record<AnswerFeature, string>>>;
  /** What a caller may notice and no rule says; a sentence each, for the docs. */
  readonly notes?: readonly string[];
}

/**
 * Where an attempt failed. `connect` to `total` are the four clocks and what happens while they run; `body`: the response
 * itself is wrong (broken off, too large, a redirect, encoded); `aborted`: the caller's signal fired.
 */
export type UpstreamPhase = 'connect' | 'firstByte' | 'idle' | 'total' | 'body' | 'aborted';

/** What a dialect sends to a vendor that speaks it. */
export interface NativeBody {
  readonly body: object;
  /** What was left out; told in `x-tollgate-dropped`. */
  readonly dropped?: readonly string[];
}
