/**
 * The canonical shape of a model call: OpenAI's chat completions, open to unknown fields. Formats and vendors
 * translate to and from this one shape, so they add up instead of multiplying.
 *
 * Source: https://platform.openai.com/docs/api-reference/chat (names stay snake_case: they are the wire's).
 */

/** `function` is the old form of `tool`: it is accepted, and codecs get tools. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'function';

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly [field: string]: unknown;
}

export interface ImagePart {
  readonly type: 'image_url';
  readonly image_url: { readonly url: string; readonly detail?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** A part of a message; others (audio, say) pass as they are. */
export type ContentPart =
  | TextPart
  | ImagePart
  | FilePart
  | OpaquePart
  | { readonly type: string; readonly [field: string]: unknown };

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface ChatMessage extends MessageExtensions {
  readonly role: Role;
  readonly content?: string | readonly ContentPart[] | null;
  readonly name?: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  readonly refusal?: string | null;
  /** The model's visible thinking; vendors that want it back get it back. */
  readonly reasoning_content?: string | null;
  readonly [field: string]: unknown;
}

export interface Tool {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly strict?: boolean | null;
  };
  readonly [field: string]: unknown;
}

export type ToolChoice =
  | 'none'
  | 'auto'
  | 'required'
  | { readonly type: 'function'; readonly function: { readonly name: string } }
  | { readonly type: string; readonly [field: string]: unknown };

export type ResponseFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly json_schema: {
        readonly name: string;
        readonly description?: string;
        readonly schema?: Readonly<Record<string, unknown>>;
        readonly strict?: boolean | null;
      };
    };

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly temperature?: number | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly top_p?: number | null;
  readonly stream?: boolean | null;
  readonly stream_options?: {
    readonly include_usage?: boolean;
    readonly include_obfuscation?: boolean;
    readonly [field: string]: unknown;
  } | null;
  readonly frequency_penalty?: number | null;
  readonly presence_penalty?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly n?: number | null;
  readonly seed?: number | null;
  readonly logprobs?: boolean | null;
  readonly top_logprobs?: number | null;
  readonly logit_bias?: Readonly<Record<string, number>> | null;
  readonly user?: string | null;
  readonly tools?: readonly Tool[];
  readonly tool_choice?: ToolChoice;
  readonly parallel_tool_calls?: boolean;
  readonly response_format?: ResponseFormat;
  readonly reasoning_effort?: string | null;
  readonly cache_control?: CacheControl | null;
  /** Unknown top-level fields by the dialect that they came by; codecs of that dialect merge them. */
  readonly dialect_fields?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /**
   * For `prepare` hooks alone: texts of the caller's own body that no other field has, where they stand in it. A vendor that speaks the
   * caller's format gets them; where a hook changes or removes this field, the request is translated and they are not sent.
   */
  readonly native_texts?: unknown;
  readonly [field: string]: unknown;
}

/**
 * Token counts in OpenAI's arithmetic whatever the vendor's is: `prompt_tokens` includes cached ones,
 * `completion_tokens` includes reasoning.
 */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  /** The vendor's own figure of what the call cost, in US dollars; it wins over price tables. */
  readonly cost?: number;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number;
    readonly cache_write_tokens?: number;
    /** Those of `cache_write_tokens` that were written for an hour. */
    readonly cache_write_1h_tokens?: number;
    readonly audio_tokens?: number;
    /** Those of `audio_tokens` that were cached. */
    readonly cached_audio_tokens?: number;
    readonly image_tokens?: number;
    readonly [field: string]: unknown;
  };
  readonly completion_tokens_details?: {
    readonly reasoning_tokens?: number;
    readonly audio_tokens?: number;
    readonly image_tokens?: number;
    readonly [field: string]: unknown;
  };
  /** What was used beside tokens, by the names that `fees` of prices have, such as `web_search_requests`. */
  readonly units?: Readonly<Record<string, number>>;
  /** The service tier that served the call, where the response does not say it in OpenAI's way. */
  readonly service_tier?: string;
  /** The region that served the call, where that has a price. */
  readonly inference_geo?: string;
  /** Each model's part that is charged, where those are not the counts above: several served the call, or none is. */
  readonly by_model?: readonly (Usage & { readonly model: string })[];
  readonly [field: string]: unknown;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call';

export interface AssistantMessage extends MessageExtensions {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly refusal: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly reasoning_content?: string;
  readonly [field: string]: unknown;
}

export interface ChatChoice {
  readonly index: number;
  readonly message: AssistantMessage;
  readonly finish_reason: FinishReason;
  readonly finish?: NativeFinish;
  readonly logprobs: unknown;
  readonly [field: string]: unknown;
}

export interface ChatResponse {
  readonly id: string;
  readonly object: 'chat.completion';
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly ChatChoice[];
  readonly usage?: Usage;
  readonly [field: string]: unknown;
}

export interface ToolCallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function?: { readonly name?: string; readonly arguments?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface ChatDelta {
  readonly role?: 'assistant';
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  /** Each whole, in the chunk that ends its block. */
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly annotations?: readonly Readonly<Record<string, unknown>>[];
  readonly tool_calls?: readonly ToolCallDelta[];
  readonly [field: string]: unknown;
}

export interface ChunkChoice {
  readonly index: number;
  readonly delta: ChatDelta;
  readonly finish_reason: FinishReason | null;
  readonly finish?: NativeFinish;
  readonly logprobs?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChunk {
  readonly id: string;
  readonly object: 'chat.completion.chunk';
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly ChunkChoice[];
  readonly usage?: Usage | null;
  readonly [field: string]: unknown;
}

/**
 * What the canonical shape has beside OpenAI's chat completions, so that the formats of other vendors and clients lose nothing. A codec or
 * dialect that does not know a field leaves it out; null is absent.
 */

/** A document: its content as a data URL or in base64, or where it is. */
export interface FilePart {
  readonly type: 'file';
  readonly file: {
    readonly filename?: string;
    /** A data URL. */
    readonly file_data?: string;
    readonly file_url?: string;
    readonly [field: string]: unknown;
  };
  /** What the caller says about the document. */
  readonly context?: string;
  readonly citations?: { readonly enabled?: boolean };
  readonly [field: string]: unknown;
}

/** A block, tool or item of a dialect that nobody here understands: written back by codecs and dialects of that name only. */
export interface OpaquePart {
  readonly type: 'opaque';
  readonly dialect: string;
  readonly value: unknown;
  readonly [field: string]: unknown;
}

/** One piece of a model's reasoning, as its maker needs it back. */
export interface ReasoningDetail {
  readonly kind: 'text' | 'summary' | 'encrypted';
  readonly text?: string;
  /** Of `encrypted`: sealed while it is outside. */
  readonly data?: string;
  readonly signature?: string;
  /** Whose format it is: `anthropic`, `responses`, `gemini`, `none`. Nobody else gets it. */
  readonly format: string;
  readonly id?: string;
  readonly [field: string]: unknown;
}

/** How a vendor's cache shall keep what ends here. */
export interface CacheControl {
  readonly type: string;
  readonly ttl?: string;
  readonly [field: string]: unknown;
}

/** The fields of a message. */
export interface MessageExtensions {
  /**
   * The true order of the blocks of a message: `['reasoning:0', 'content:0', 'tool:0']`, indices into `reasoning_details`, the parts
   * of `content` (a text is its only part) and `tool_calls`. Absent: reasoning, content, tools.
   */
  readonly order?: readonly string[];
  readonly reasoning_details?: readonly ReasoningDetail[];
  /** `url_citation` and `file_citation` as OpenAI has them; others as `{type: 'opaque', …}`. */
  readonly annotations?: readonly Readonly<Record<string, unknown>>[];
  /** Of a tool message: whether the tool failed. */
  readonly is_error?: boolean;
  readonly cache_control?: CacheControl | null;
  /** Unknown fields by the dialect that they came by. */
  readonly dialect_fields?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Why a model stopped, in the words of its vendor. */
export interface NativeFinish {
  readonly native?: string;
  /** Which of the request's stop sequences it was. */
  readonly stop_sequence?: string;
  /** Whether no finish reason says what `native` says: the answer was kept and counts as incomplete. */
  readonly unmapped?: true;
}
