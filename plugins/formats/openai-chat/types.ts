import type {
  AnswerFeature,
  ChatMessage,
  ChatRequest,
  ContentPart,
  Continuation,
  Credential,
  FailureClass,
  FieldRule,
  FinishReason,
  JsonObject,
  ModelInfo,
  Offer,
  PluginApi,
  Provider,
  ProviderEffects,
  ResponseHeaders,
  Schema,
  Timeouts,
  Transport,
} from '../../../contract/index.ts';
import type { EmbeddingCodec, ProviderConfig, TurnOrder } from '../kit/index.ts';

/** Changes of an emulation to the vendor's body; an undefined value removes a field. */
export interface Emulation {
  readonly body?: Readonly<Record<string, unknown>>;
  /** True if the field is emulated only in part; it is then reported in `x-tollgate-dropped`. */
  readonly dropped?: boolean;
  /** Dropped parts of the field, such as `tools.strict`; reported in `x-tollgate-dropped`. */
  readonly reported?: readonly string[];
}

/** Field rule with small pure functions where data is not enough. */
export interface CompatibleRule extends FieldRule {
  /** Converts the value of a passed or renamed field; undefined omits the field. */
  readonly convert?: (value: unknown) => unknown;
  /** Replacement of an emulated field. */
  readonly apply?: (value: unknown, request: ChatRequest) => Emulation;
}

export type CompatibleRules = Readonly<Record<string, CompatibleRule>>;

/** Content of a vendor's error body in any of its shapes. */
export interface VendorError {
  readonly message: string;
  /** Codes and types, in lower case. */
  readonly codes: readonly string[];
  /** Status in the body, for errors with another HTTP status (200, in a stream). */
  readonly status?: number;
  readonly param?: string;
  /** The innermost error object. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Error rules of a vendor in addition to the tables here. */
export interface ErrorRules {
  /** Classes by the vendor's own code or type, exactly as sent, in lower case. */
  readonly codes?: Readonly<Record<string, FailureClass>>;
  /** Classes by text, for failures without a status or code of their own. */
  readonly messages?: readonly {
    readonly status: readonly number[];
    readonly text: RegExp;
    readonly is: FailureClass;
  }[];
  /** Classifies errors beyond the tables; undefined leaves an error to them. */
  readonly classify?: (error: VendorError, status: number, headers: ResponseHeaders) => FailureClass | undefined;
}

/** Documents that a vendor accepts, in addition to text documents, which become text at every vendor. */
export interface FileRules {
  /** Media types accepted as data URLs. */
  readonly data: readonly string[];
  /** True if URLs are accepted. */
  readonly urls?: boolean;
  /** True if ids of files in the operator's account are accepted. */
  readonly ids?: boolean;
  /** Vendor's part for a document, by its name and its URL or data URL; default: OpenAI's `file` part. */
  readonly part?: (filename: string, url: string) => ContentPart;
}

/** Differences of a vendor's usage from OpenAI's. */
export interface UsageRules {
  /** `outside`: completion tokens exclude reasoning tokens. */
  readonly reasoningTokens?: 'inside' | 'outside';
  /** Cost of a call in US dollars as reported by the vendor; default: `usage.cost`. */
  readonly usageCost?: (usage: JsonObject) => number | undefined;
  /** Usage other than tokens, by the names in `fees` of prices. */
  readonly usageUnits?: (usage: JsonObject) => Readonly<Record<string, number>> | undefined;
}

/** Rules for some models or requests, which override the vendor's own; the first match applies. */
export interface Variant {
  /** Description of the matching models or requests. */
  readonly when: string;
  /** Matching models; default: all. Looked up once per model. */
  readonly models?: RegExp;
  /** Condition for a request; default: none. */
  readonly applies?: (request: ChatRequest) => boolean;
  /** Example of a matching request, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields?: CompatibleRules;
  readonly roles?: RoleRules;
  readonly defaults?: Readonly<Record<string, unknown>>;
  /**
   * Wire for such requests; default: `chat`. `responses` is OpenAI's Responses API at `responsesPath`. Rules use
   * chat's field names there too; fields that OpenAI lacks are never passed on it. A variant is skipped if the vendor
   * lacks its wire.
   */
  readonly wire?: 'chat' | 'responses';
}

/** Role sent for a message role; other roles are kept. */
export interface RoleRules {
  readonly system?: 'developer' | 'system';
  readonly developer?: 'developer' | 'system';
}

/** Converts a vendor's own response format to OpenAI's before it is read; anything else passes unchanged. */
export interface OwnWire {
  readonly response?: (body: JsonObject) => unknown;
  /** Created for each stream: returns the chunk for an event's data, undefined for an event without content. */
  readonly events?: () => (data: JsonObject) => JsonObject | undefined;
  /** Returns true for an end marker of a stream, in addition to `[DONE]`; nothing follows it. */
  readonly isEnd?: (data: JsonObject) => boolean;
  /** Vendor's embeddings, in place of OpenAI's. */
  readonly embeddings?: EmbeddingCodec;
}

/** Differences of a vendor from OpenAI's chat completions. Only the name and the URL are required. */
export interface Differences extends UsageRules {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly credential?: Pick<Credential, 'header' | 'prefix'>;
  readonly timeouts?: Partial<Timeouts>;
  /** Set if this address has other prices than the table. */
  readonly dearerPlace?: Offer['dearerPlace'];
  /** Path of an operation, with its query; default: the vendor-neutral path. */
  readonly path?: (operation: string, model: string) => string;
  /** Rules for OpenAI's fields; fields without a rule are passed. */
  readonly fields?: CompatibleRules;
  /** Rule for fields that OpenAI lacks; default: `dropped`, since their effect at the vendor is unknown. */
  readonly unknown?: 'passed' | 'dropped';
  /**
   * Vendor's own fields, which pass even if unknown ones are dropped, and routing names that are its own. Those below the top
   * level have a path, such as `messages.content.uuid`.
   */
  readonly extras?: readonly string[];
  /** Effects of its fields at the vendor; tools that it runs are already known. */
  readonly effects?: ProviderEffects;
  /**
   * Set if the vendor may store requests; the gateway then sends `store: false`. `always`: the vendor stores by
   * default. `asked`: only on the caller's request.
   */
  readonly stores?: 'always' | 'asked';
  readonly variants?: readonly Variant[];
  /** Model behind a name that callers use, for variants and emulations; default: the name itself. */
  readonly modelOf?: (name: string) => string;
  /** Values for fields that the caller did not send. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly roles?: RoleRules;
  /** Order of turns that a model accepts; default: any. An operator's `turnOrder` overrides it. */
  readonly turnOrder?: (model: string) => TurnOrder;
  /** Continuation of an interrupted response, for models that support it. */
  readonly continues?: (model: string) => Continuation | undefined;
  /** Field in which earlier thinking is sent back; default: `drop`. */
  readonly replay?: 'reasoning_content' | 'reasoning' | 'drop';
  /**
   * Formats of `reasoning_details` that the model behind a relay reads, in addition to the relay's own. Without it,
   * no details are sent.
   */
  readonly detailFormats?: (model: string) => readonly string[];
  /** Supported documents; default: none. Text documents become text. */
  readonly files?: FileRules;
  /**
   * Models that require `tools` for calls in the history; they are derived from the history if the request has none.
   */
  readonly historyTools?: RegExp;
  /**
   * Ids of tool calls that do not match are replaced by a hash of this length, equal in call and result. Default: 1
   * to 64 letters, digits, `_` and `-` are valid.
   */
  readonly toolIds?: { readonly valid: RegExp; readonly length: number };
  /** True if the vendor supports `cache_control` on content parts and tools; otherwise the marks are removed. */
  readonly cacheMarks?: boolean;
  /** Final change of the messages; returns the same array if nothing changes. */
  readonly messages?: (messages: readonly ChatMessage[], request: ChatRequest) => readonly ChatMessage[];
  /**
   * `ask`: the usage of a stream requires `stream_options.include_usage`. `always`: usage is always sent, and the
   * field is omitted.
   */
  readonly streamUsage?: 'ask' | 'always';
  /** Options added to `stream_options`, in addition to `include_usage`. */
  readonly streamOptions?: Readonly<Record<string, unknown>>;
  /** Finish reasons of the vendor; a failure class ends the call with that failure. */
  readonly finishReasons?: Readonly<Record<string, FinishReason | { readonly failure: FailureClass }>>;
  /** True if `stop` is valid next to tool calls (OpenAI sends it for a forced function). */
  readonly keepsStop?: boolean;
  /** True if a thinking delta equal to the previous one is a repetition. */
  readonly repeatsReasoning?: boolean;
  /** Audio and video parts that the vendor's models accept, of {@link MEDIA_PARTS}; others are rejected. */
  readonly media?: readonly string[];
  /** True if `custom` tools and `allowed_tools` work as at OpenAI. */
  readonly openAiTools?: boolean;
  /** True if a model's thinking may be at the start of its text, as `<think>…</think>`. */
  readonly thinkTags?: boolean;
  /** True if responses list the pages of a web search next to the choices; they become citations of the message too. */
  readonly listsSources?: boolean;
  readonly errors?: ErrorRules;
  /** Set if the vendor has embeddings; rules as for chat. */
  readonly embeddings?: { readonly fields?: CompatibleRules; readonly unknown?: 'passed' | 'dropped' };
  /** Other operations of the vendor in OpenAI's form; `rerank` in the form of Cohere and Jina. */
  readonly operations?: readonly ('batches' | 'images' | 'moderations' | 'realtime' | 'rerank' | 'transcription')[];
  /** Unsupported parts of these operations, such as image edits or translations of speech. */
  readonly without?: readonly ('images/edits' | 'audio/translations')[];
  /** True if documents to rerank must be texts: an object is sent as its `text`, otherwise as JSON. */
  readonly rerankTexts?: boolean;
  /** Differences of its transcription from OpenAI's. */
  readonly transcription?: {
    /** Accepted fields, in addition to the file, the model, times and formats, if they are fewer than OpenAI's. */
    readonly fields?: readonly string[];
    /** False if `response_format` is not supported, and timestamps are returned for named granularities. */
    readonly formats?: false;
    /** False if `stream` is not supported: the complete response is converted to events. */
    readonly streams?: false;
    /** Minimum number of seconds charged for a request. */
    readonly leastSeconds?: number;
    /** Converts an event of its stream to OpenAI's; undefined for an event that OpenAI lacks. */
    readonly event?: (event: JsonObject) => JsonObject | undefined;
  };
  /** Differences of its images from OpenAI's. */
  readonly images?: {
    /** Converts a request's fields, without the model; `dropped` lists fields that are not sent. */
    readonly write?: (fields: JsonObject) => { readonly body: JsonObject; readonly dropped: readonly string[] };
    /** `json` if images to edit are sent as data URLs in JSON, not as files of a form. */
    readonly edits?: 'json';
  };
  /**
   * Path of OpenAI's Responses API for a model, if the vendor has it. Used for passthrough of callers in that format,
   * and for requests whose variant selects it.
   */
  readonly responsesPath?: (model: string) => string | undefined;
  /** Reasoning summary on the wire `responses`, such as `auto`; default: no summaries requested. */
  readonly reasoningSummary?: string | undefined;
  /** False if the vendor does not list its models. */
  readonly listsModels?: boolean;
  /** Price in an entry of its model list, as a `Price`; the reader of the list validates it. */
  readonly listedPrice?: (row: JsonObject) => unknown;
  /** Features that its responses lack, with the evidence for each. */
  readonly lacks?: Readonly<Partial<Record<AnswerFeature, string>>>;
  /** Response format of a vendor that accepts this wire, except for names. */
  readonly wire?: OwnWire;
  readonly models?: readonly ModelInfo[];
  /** Models added to those of the vendor's table. */
  readonly addModels?: readonly ModelInfo[];
  /** True if `max_tokens: 0` or `-1` means "no limit", as on self-hosted servers; otherwise it is rejected. */
  readonly unlimited?: boolean;
  /** For servers on the operator's own network, which would fetch URLs of images and files from there. */
  readonly remoteMedia?: 'allow' | 'refuse';
  /** True accepts every model name if the configuration lists none. */
  readonly anyModel?: boolean;
  readonly keyRequired?: boolean;
  /** Credential that signs or expires, in place of a key. */
  readonly liveCredential?: (api: PluginApi) => Credential;
  /** Replaces the network. */
  readonly transport?: Transport;
  /** Last change of the provider before it is registered; its operations share the result. */
  readonly outfit?: (offer: Provider) => Provider;
}

/** Definition of a vendor as data, for `openaiCompatible`. */
export interface CompatibleSpec<S extends Readonly<Record<string, Schema>> = Readonly<Record<string, Schema>>>
  extends Differences {
  /** Name of the plugin and the vendor, which selects its rows in `config/models.json`. */
  readonly name: string;
  /** Environment variable that usually holds the key. */
  readonly apiKeyEnv?: string;
  /** Hosts for `api.http()`, in addition to the vendor's: for credentials. */
  readonly hosts?: readonly string[];
  /** Configuration options in addition to those of every provider, as JSON Schema properties. */
  readonly options?: S;
  /** Names of required options. */
  readonly requiredOptions?: readonly string[];
  /** Changes by the options. Throws a TypeError for incompatible options. */
  readonly configure?: (config: ProviderConfig & Readonly<Record<string, unknown>>) => Partial<Differences>;
}
