/**
 * Canonical shape of a model call: OpenAI's chat completions, open to unknown fields. All formats and vendors translate to and from
 * this one shape, so translators add up instead of multiplying.
 *
 * Source: https://platform.openai.com/docs/api-reference/chat (names stay in snake_case, as on the wire).
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

/** Part of a message. Other types, such as audio, pass unchanged. */
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
  /** Visible reasoning of the model, returned to vendors that require it. */
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
  /** Unknown top-level fields by dialect; codecs of that dialect merge them. */
  readonly dialect_fields?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /**
   * Texts of the caller's body that no other field contains, at their original paths. Only `prepare` hooks receive them. A vendor
   * that speaks the caller's format receives them. If a hook changes or removes this field, the request is translated without them.
   */
  readonly native_texts?: unknown;
  readonly [field: string]: unknown;
}

/**
 * Token counts as OpenAI counts them, for all vendors: `prompt_tokens` includes cached tokens, `completion_tokens` includes
 * reasoning.
 */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  /** Cost of the call in US dollars as reported by the vendor; overrides price tables. */
  readonly cost?: number;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number;
    readonly cache_write_tokens?: number;
    /** Part of `cache_write_tokens` with a lifetime of one hour. */
    readonly cache_write_1h_tokens?: number;
    readonly audio_tokens?: number;
    /** Part of `audio_tokens` read from a cache. */
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
  /** Usage other than tokens, by the names of `fees` in prices, such as `web_search_requests`. */
  readonly units?: Readonly<Record<string, number>>;
  /** Service tier that served the call, if the response does not contain it in OpenAI's form. */
  readonly service_tier?: string;
  /** Region that served the call, if regions have prices. */
  readonly inference_geo?: string;
  /** Billed usage per model, if it differs from the counts above: several models served the call, or none is charged. */
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
  /**
   * Fields of the request that the vendor ignored, as its response says. Core reports them in `x-tollgate-dropped`, like those of
   * the request, and removes this list.
   */
  readonly dropped?: readonly string[];
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
  /** Complete details, in the chunk that ends their block. */
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly annotations?: readonly Readonly<Record<string, unknown>>[];
  readonly tool_calls?: readonly ToolCallDelta[];
  /** Complete calls of servers' tools. */
  readonly mcp_calls?: readonly ServerToolCall[];
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
 * Fields of the canonical shape in addition to OpenAI's chat completions, so that formats of other vendors and clients lose
 * nothing. Codecs and dialects ignore unknown fields; null means absent.
 */

/** Document, with its content as a data URL, in base64, or as a URL. */
export interface FilePart {
  readonly type: 'file';
  readonly file: {
    readonly filename?: string;
    /** A data URL. */
    readonly file_data?: string;
    readonly file_url?: string;
    readonly [field: string]: unknown;
  };
  /** The caller's description of the document. */
  readonly context?: string;
  readonly citations?: { readonly enabled?: boolean };
  readonly [field: string]: unknown;
}

/** Block, tool or item that only its dialect understands. Only codecs and dialects of that name write it back. */
export interface OpaquePart {
  readonly type: 'opaque';
  readonly dialect: string;
  readonly value: unknown;
  readonly [field: string]: unknown;
}

/** Piece of a model's reasoning, in the form that its vendor requires back. */
export interface ReasoningDetail {
  readonly kind: 'text' | 'summary' | 'encrypted';
  readonly text?: string;
  /** For `encrypted`: sealed while a client holds it. */
  readonly data?: string;
  readonly signature?: string;
  /** Format: `anthropic`, `responses`, `gemini`, `none`. Only vendors of that format receive it. */
  readonly format: string;
  readonly id?: string;
  readonly [field: string]: unknown;
}

/** Call of a server's tool that the gateway made for a chat, and its result as the model got it. */
export interface ServerToolCall {
  readonly id: string;
  readonly server: string;
  /** Name at its server. */
  readonly name: string;
  /** Arguments as JSON. */
  readonly arguments: string;
  readonly output: string;
  readonly is_error?: boolean;
}

/** Cache instruction of a vendor for the prefix that ends here. */
export interface CacheControl {
  readonly type: string;
  readonly ttl?: string;
  readonly [field: string]: unknown;
}

/** Additional fields of a message. */
export interface MessageExtensions {
  /**
   * Order of the blocks of a message: `['reasoning:0', 'content:0', 'tool:0']`, with indices into `reasoning_details`, the parts of
   * `content` (a text is its only part) and `tool_calls`. Default: reasoning, content, tools.
   */
  readonly order?: readonly string[];
  readonly reasoning_details?: readonly ReasoningDetail[];
  /** `url_citation` and `file_citation` in OpenAI's form; others as `{type: 'opaque', …}`. */
  readonly annotations?: readonly Readonly<Record<string, unknown>>[];
  /** Tool messages only: true if the tool failed. */
  readonly is_error?: boolean;
  /** Assistant messages only: calls of servers' tools before this message. */
  readonly mcp_calls?: readonly ServerToolCall[];
  readonly cache_control?: CacheControl | null;
  /** Unknown fields by dialect. */
  readonly dialect_fields?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Finish reason as the vendor reported it. */
export interface NativeFinish {
  readonly native?: string;
  /** Stop sequence of the request that matched. */
  readonly stop_sequence?: string;
  /** True if no standard finish reason corresponds to `native`; the response was accepted and counts as incomplete. */
  readonly unmapped?: true;
}
