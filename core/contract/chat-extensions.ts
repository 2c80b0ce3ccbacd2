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
}
