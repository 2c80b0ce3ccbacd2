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
  ProviderEffects,
  ResponseHeaders,
  Schema,
  Timeouts,
  Transport,
} from '../../../contract/index.ts';
import type { EmbeddingCodec, ProviderConfig, TurnOrder } from '../kit/index.ts';

/** What an emulation puts into the vendor's body; an undefined value removes a field. */
export interface Emulation {
  readonly body?: Readonly<Record<string, unknown>>;
  /** True when the wish could not be met in full: the field is told in `x-tollgate-dropped`. */
  readonly dropped?: boolean;
  /** Parts of the field that are left out, such as `tools.strict`; told in `x-tollgate-dropped`. */
  readonly told?: readonly string[];
}

/** A field rule that also says how, with small pure functions where data does not reach. */
export interface CompatibleRule extends FieldRule {
  /** Changes the value of a passed or renamed field; undefined leaves the field out. */
  readonly convert?: (value: unknown) => unknown;
  /** What an emulated field becomes. */
  readonly apply?: (value: unknown, request: ChatRequest) => Emulation;
}

export type CompatibleRules = Readonly<Record<string, CompatibleRule>>;

/** What a vendor's error body says, whichever of its shapes it has. */
export interface VendorError {
  readonly message: string;
  /** Codes and types, in lower case. */
  readonly codes: readonly string[];
  /** A status that the body itself names, for errors that came with another one (200, in a stream). */
  readonly status?: number;
  readonly param?: string;
  /** The innermost error object. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What a vendor says beyond the tables here. */
export interface ErrorRules {
  /** Classes by the vendor's own code or type, exactly as sent, in lower case. */
  readonly codes?: Readonly<Record<string, FailureClass>>;
  /** Classes by text, for failures that the vendor gives neither a status nor a code of their own. */
  readonly messages?: readonly {
    readonly status: readonly number[];
    readonly text: RegExp;
    readonly is: FailureClass;
  }[];
  /** For what tables do not reach; undefined leaves it to them. */
  readonly classify?: (error: VendorError, status: number, headers: ResponseHeaders) => FailureClass | undefined;
}

/** Which documents a vendor takes, beside those whose content is text: these become text everywhere. */
export interface FileRules {
  /** Media types that are taken as data URLs. */
  readonly data: readonly string[];
  /** True where addresses are taken. */
  readonly urls?: boolean;
  /** True where ids of files in the operator's account are. */
  readonly ids?: boolean;
  /** The vendor's part for a document, by its name and its address or data URL; OpenAI's `file` part unless set. */
  readonly part?: (filename: string, url: string) => ContentPart;
}

/** How a vendor's usage differs from OpenAI's. */
export interface UsageRules {
  /** `outside`: reasoning tokens come on top of completion tokens. */
  readonly reasoningTokens?: 'inside' | 'outside';
  /** What the vendor says a call cost, in US dollars, where it is not simply `usage.cost`. */
  readonly usageCost?: (usage: JsonObject) => number | undefined;
  /** What was used beside tokens, by the names that `fees` of prices have. */
  readonly usageUnits?: (usage: JsonObject) => Readonly<Record<string, number>> | undefined;
}

/** Rules for some models or requests only, laid over the vendor's own; the first that applies is taken. */
export interface Variant {
  /** For whom, in words. */
  readonly when: string;
  /** The models that it is for; all unless set. Looked up once a model. */
  readonly models?: RegExp;
  /** What a request for them has, where it is not for all. */
  readonly applies?: (request: ChatRequest) => boolean;
  /** A request that it fits, for tests and docs. */
  readonly example: Readonly<Record<string, unknown>> & { readonly model: string };
  readonly fields?: CompatibleRules;
  readonly roles?: RoleRules;
  readonly defaults?: Readonly<Record<string, unknown>>;
  /**
   * The wire that such requests go by: `responses` is OpenAI's Responses API, at `responsesPath`. Rules name chat's fields there, too;
   * fields that OpenAI does not have are never passed on it. A variant of a wire that the vendor does not have is passed over.
   * `chat` unless set.
   */
  readonly wire?: 'chat' | 'responses';
}

/** What a message role is sent as; a role that is not named is kept. */
export interface RoleRules {
  readonly system?: 'developer' | 'system';
  readonly developer?: 'developer' | 'system';
}

/** A vendor's own way to write responses, made into OpenAI's before they are read; what it leaves as it is passes. */
export interface OwnWire {
  readonly response?: (body: JsonObject) => unknown;
  /** Made for each stream: the chunk for the data of an event, undefined where it says nothing. */
  readonly events?: () => (data: JsonObject) => JsonObject | undefined;
  /** Whether an event is the end marker of a stream, behind which nothing follows; beside `[DONE]`. */
  readonly isEnd?: (data: JsonObject) => boolean;
  /** Its embeddings, in place of OpenAI's. */
  readonly embeddings?: EmbeddingCodec;
}

/** How a vendor differs from OpenAI's chat completions. Everything is optional but its name and address. */
export interface Differences extends UsageRules {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly credential?: Pick<Credential, 'header' | 'prefix'>;
  readonly timeouts?: Partial<Timeouts>;
  /** Where prices of the table are not those of this address. */
  readonly dearerPlace?: Offer['dearerPlace'];
  /** The path of an operation, with its query; the vendor-neutral one unless set. */
  readonly path?: (operation: string, model: string) => string;
  /** A field of OpenAI's chat completions that is not named is passed. */
  readonly fields?: CompatibleRules;
  /** Fields that OpenAI does not have: `dropped` unless set, since nobody knows what they make the vendor do. */
  readonly unknown?: 'passed' | 'dropped';
  /** The vendor's own fields, passed when unknown ones are dropped, and routing names that are its own. */
  readonly extras?: readonly string[];
  /** What its fields make the vendor do; tools that it runs are known already. */
  readonly effects?: ProviderEffects;
  /** Set where the vendor may keep requests: it is told `store: false`, `always` where it keeps them by default, else when callers say so. */
  readonly stores?: 'always' | 'asked';
  readonly variants?: readonly Variant[];
  /** The model behind a name that callers use, by which variants and emulations are found; the name itself unless set. */
  readonly modelOf?: (name: string) => string;
  /** Fields sent when the caller gave none. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly roles?: RoleRules;
  /** The order of turns that a model accepts; any unless set. An operator's `turnOrder` is laid over it. */
  readonly turnOrder?: (model: string) => TurnOrder;
  /** How it goes on with an answer that was begun, for models that can. */
  readonly continues?: (model: string) => Continuation | undefined;
  /** The name under which earlier thinking is sent back; `drop` unless set. */
  readonly replay?: 'reasoning_content' | 'reasoning' | 'drop';
  /**
   * Whose `reasoning_details` the model behind a relay reads: the names of formats, beside the relay's own. Others never get any;
   * without it nobody does.
   */
  readonly detailFormats?: (model: string) => readonly string[];
  /** Which documents it takes; none unless set, but those whose content is text become text. */
  readonly files?: FileRules;
  /** The models for which calls in the history need `tools`: they are derived from the history where the request has none. */
  readonly historyTools?: RegExp;
  /**
   * Tool call ids that do not match are replaced by a hash of this length, the same in call and result. By default those are that
   * are not 1 to 64 letters, digits, `_` and `-`.
   */
  readonly toolIds?: { readonly valid: RegExp; readonly length: number };
  /** True where `cache_control` on content parts and tools means something; elsewhere the marks stay behind. */
  readonly cacheMarks?: boolean;
  /** Changes the messages last; returns the same array when there is nothing to change. */
  readonly messages?: (messages: readonly ChatMessage[], request: ChatRequest) => readonly ChatMessage[];
  /** `ask`: usage of a stream comes when `stream_options.include_usage` asks. `always`: it comes, and the field is not sent. */
  readonly streamUsage?: 'ask' | 'always';
  /** Put into `stream_options` beside `include_usage`. */
  readonly streamOptions?: Readonly<Record<string, unknown>>;
  /** Finish reasons of the vendor's own; a failure class ends the call with that failure. */
  readonly finishReasons?: Readonly<Record<string, FinishReason | { readonly failure: FailureClass }>>;
  /** True when `stop` beside tool calls is meant (OpenAI says so for a forced function). */
  readonly keepsStop?: boolean;
  /** True when a thinking delta equal to the one before it is a repetition. */
  readonly repeatsReasoning?: boolean;
  /** Parts of sound and video that the vendor's models take, of {@link MEDIA_PARTS}; others are refused. */
  readonly media?: readonly string[];
  /** True where tools of the type `custom` and a choice of `allowed_tools` mean what they do at OpenAI. */
  readonly openAiTools?: boolean;
  /** True where a model's thinking may stand in its words, as `<think>…</think>` at their beginning. */
  readonly thinkTags?: boolean;
  readonly errors?: ErrorRules;
  /** Present when the vendor has embeddings; rules as for chat. */
  readonly embeddings?: { readonly fields?: CompatibleRules; readonly unknown?: 'passed' | 'dropped' };
  /** Which other operations the vendor has, in OpenAI's form; `rerank` in the form of Cohere and Jina. */
  readonly operations?: readonly ('batches' | 'images' | 'moderations' | 'realtime' | 'rerank' | 'transcription')[];
  /** What of these the vendor does not have: it makes images and does not edit them, or writes down speech and does not translate it. */
  readonly without?: readonly ('images/edits' | 'audio/translations')[];
  /** True where documents to rerank are texts alone: an object goes as its `text`, else as JSON. */
  readonly rerankTexts?: boolean;
  /** How its transcription differs from OpenAI's. */
  readonly transcription?: {
    /** The fields that it takes beside the file, the model, times and formats, where these are fewer. */
    readonly fields?: readonly string[];
    /** False where it has no `response_format`, and tells times where granularities are named. */
    readonly formats?: false;
    /** False where it has no `stream`: what it responds whole becomes events. */
    readonly streams?: false;
    /** The seconds that it charges a request for at least. */
    readonly leastSeconds?: number;
    /** An event of its stream in OpenAI's words; undefined for one that OpenAI does not have. */
    readonly event?: (event: JsonObject) => JsonObject | undefined;
  };
  /** How its images differ from OpenAI's. */
  readonly images?: {
    /** What it gets of a request's fields, without the model; `dropped` is what it gets nothing of. */
    readonly write?: (fields: JsonObject) => { readonly body: JsonObject; readonly dropped: readonly string[] };
    /** Set to `json` where images to edit go as data URLs in JSON, not as files of a form. */
    readonly edits?: 'json';
  };
  /**
   * The path of OpenAI's Responses API where the vendor has it for a model; callers of that format are passed on to it, and requests
   * for which a variant says so.
   */
  readonly responsesPath?: (model: string) => string | undefined;
  /** How reasoning is summed up on the wire `responses`, as `auto`; summaries are not asked for unless set. */
  readonly reasoningSummary?: string | undefined;
  /** False when the vendor does not list its models. */
  readonly listsModels?: boolean;
  /** What an entry of its list of models says that the model costs, as a `Price`; checked by who reads the list. */
  readonly listedPrice?: (row: JsonObject) => unknown;
  /** What its responses never show, and how that is known. */
  readonly lacks?: Readonly<Partial<Record<AnswerFeature, string>>>;
  /** What a caller may notice and no rule says; a sentence each, for the docs. */
  readonly notes?: readonly string[];
  /** How a vendor that takes this form, but for names, writes its responses. */
  readonly wire?: OwnWire;
  readonly models?: readonly ModelInfo[];
  /** Added to the models of the vendor's table. */
  readonly addModels?: readonly ModelInfo[];
  /** True where `max_tokens: 0` or `-1` means "no limit", as at servers of one's own; elsewhere it is refused. */
  readonly unlimited?: boolean;
  /** For servers on the operator's own network, which would fetch addresses of images and files from there. */
  readonly remoteMedia?: 'allow' | 'refuse';
  /** True accepts every model name while the configuration lists none. */
  readonly anyModel?: boolean;
  readonly keyRequired?: boolean;
  /** In place of a key: a credential that signs or expires. */
  readonly liveCredential?: (api: PluginApi) => Credential;
  /** Replaces the network. */
  readonly transport?: Transport;
}

/** A vendor as data: what `openaiCompatible` makes a plugin of. */
export interface CompatibleSpec<S extends Readonly<Record<string, Schema>> = Readonly<Record<string, Schema>>>
  extends Differences {
  /** The plugin's name and the vendor's, which finds its rows in `config/models.json`. */
  readonly name: string;
  /** The environment variable that usually holds the key. */
  readonly apiKeyEnv?: string;
  /** Where `api.http()` may connect, next to the vendor: for credentials. */
  readonly hosts?: readonly string[];
  /** Configuration options beside those that every provider has, as JSON Schema properties. */
  readonly options?: S;
  /** Names of options that must be given. */
  readonly requiredOptions?: readonly string[];
  /** What the options change. Throws a TypeError when they do not go together. */
  readonly configure?: (config: ProviderConfig & Readonly<Record<string, unknown>>) => Partial<Differences>;
}
