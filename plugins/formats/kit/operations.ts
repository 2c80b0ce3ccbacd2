import type {
  AttemptResponse,
  CallFacts,
  ChatResponse,
  CodecCall,
  HttpRequest,
  JsonCodec,
  JsonObject,
  JsonOffer,
  Offer,
  Target,
  UploadedFile,
} from '../../../contract/index.ts';
import type { FormFile } from './multipart.ts';

export type { JsonCodec, JsonOffer };

/** Request body of `POST /v1/moderations`, in OpenAI's shape. */
export interface ModerationRequest {
  readonly model: string;
  readonly input: string | readonly string[] | readonly JsonObject[];
  readonly [field: string]: unknown;
}

/** One result for each text, or one for all parts together. */
export interface ModerationResponse {
  readonly id: string;
  readonly model: string;
  readonly results: readonly {
    readonly flagged: boolean;
    readonly categories: Readonly<Record<string, boolean>>;
    readonly category_scores: Readonly<Record<string, number>>;
    readonly [field: string]: unknown;
  }[];
  readonly usage?: JsonObject;
}

/** Request body of `POST /v1/rerank`, the common subset of Cohere and Jina. */
export interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly (string | Readonly<Record<string, unknown>>)[];
  readonly top_n?: number | null;
  readonly return_documents?: boolean | null;
  readonly [field: string]: unknown;
}

/** Best documents first, in the common shape of Cohere and Jina. */
export interface RerankResponse {
  readonly id: string;
  readonly model: string;
  readonly results: readonly {
    /** Index of the document in the request. */
    readonly index: number;
    readonly relevance_score: number;
    readonly document?: Readonly<Record<string, unknown>>;
  }[];
  /** Vendor's usage, if reported. */
  readonly usage?: { readonly total_tokens?: number; readonly cost?: number };
  readonly meta?: { readonly billed_units: { readonly search_units: number } };
}

/** Speech to transcribe; the file is read when it is sent. */
export interface TranscriptionRequest {
  readonly model: string;
  /** `translate` returns English for any spoken language. */
  readonly task: 'transcribe' | 'translate';
  readonly file: UploadedFile;
  readonly response_format?: 'json' | 'text' | 'srt' | 'verbose_json' | 'vtt' | 'diarized_json';
  readonly language?: string;
  readonly prompt?: string;
  readonly temperature?: number;
  readonly timestamp_granularities?: readonly string[];
  readonly include?: readonly string[];
  readonly stream?: boolean;
  readonly [field: string]: unknown;
}

/** Exactly one field is set: JSON, text, or the events of a stream. */
export interface TranscriptionResponse {
  readonly json?: JsonObject;
  readonly text?: string;
  readonly events?: AsyncIterable<JsonObject>;
}

export interface TranscriptionOffer extends Offer {
  readonly codec: {
    request(input: TranscriptionRequest, sound: Uint8Array, call: CodecCall): HttpRequest;
    /** Returns the vendor's JSON, with `text`. Throws `StreamFailure` for an invalid body. */
    response(body: unknown): JsonObject;
    /** Converts a stream event of the vendor to OpenAI's; undefined drops it. Default: events pass unchanged. */
    event?(event: JsonObject): JsonObject | undefined;
  };
}

/** Images to generate from a prompt, or to edit if `images` is set. The files are read when they are sent. */
export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  readonly n?: number | null;
  readonly size?: string | null;
  readonly quality?: string | null;
  readonly partial_images?: number | null;
  readonly stream?: boolean | null;
  readonly images?: readonly UploadedFile[];
  readonly mask?: UploadedFile;
  readonly [field: string]: unknown;
}

/** Exactly one field is set: OpenAI's body, or the events of a stream. */
export interface ImageResponse {
  readonly json?: JsonObject;
  readonly events?: AsyncIterable<JsonObject>;
}

export interface ImageOffer extends Offer {
  readonly codec: {
    request(input: ImageRequest, files: readonly FormFile[], call: CodecCall): HttpRequest;
    /** Returns the vendor's JSON, with `data`. Throws `StreamFailure` for an invalid body. */
    response(body: unknown, call: CodecCall): JsonObject;
  };
}

/** Batch to create at a vendor. Its requests were checked one by one; the vendor's input is stored under `ticket`. */
export interface BatchRequest {
  readonly model: string;
  readonly ticket: string;
  readonly requests: number;
  /** Maximum cost of all requests, in nano-dollars; null if the price is unknown. */
  readonly cost: number | null;
  /** End of the reservation, in Unix milliseconds. */
  readonly heldUntil: number;
}

/** Created batch. */
export interface BatchResponse {
  /** Vendor's response. */
  readonly batch: JsonObject;
  /** Id of the call that created the batch; the reservation has this id. */
  readonly callId: string;
  readonly facts: CallFacts;
  /** Budgets of the reservation; undefined without one. */
  readonly budgets?: readonly { readonly id: string; readonly until?: number }[];
}

/** Registration of a provider that supports batches. */
export interface BatchOffer extends Offer {
  readonly wire: 'openai' | 'anthropic' | 'gemini';
  /** Request formats by dialect: the path below the base URL for a single request of that format. */
  readonly paths: Readonly<Record<string, string>>;
  /** Query string of batch and file URLs, for vendors where lines of files also contain `paths`. */
  readonly query?: string | undefined;
  /**
   * Token price in a batch as a fraction of the regular price; fees are not reduced. A `batch` tier of a price takes
   * precedence.
   */
  readonly factor: number;
  /** Reads the response to one request. Throws `StreamFailure` for an invalid body. */
  response(dialect: string, body: unknown, call: CodecCall): ChatResponse;
}

/**
 * Opens a realtime websocket at a vendor, or describes work on one: everything known about a response before it is
 * written.
 */
export interface RealtimeRequest {
  readonly model: string;
  /**
   * `open` is the websocket itself. `response` is a response, reserved before it begins. `transcription` is a
   * transcription, reserved before the audio is passed on. `begun` and `transcribed` are the same, started by the
   * vendor before a reservation; they are charged afterwards.
   */
  readonly kind: 'open' | 'response' | 'begun' | 'transcription' | 'transcribed';
  /** Id of the gateway's state for it. */
  readonly ticket: string;
  /** Estimated input tokens. */
  readonly text: number;
  readonly audio: number;
  readonly images: number;
  /** Output token limit; null if only the model or the remaining budget limits it. */
  readonly max_tokens: number | null;
  /** True if the response may contain audio. */
  readonly speaks: boolean;
}

/** Result of a {@link RealtimeRequest}. */
export interface RealtimeResponse {
  /** Opened websocket and its target. */
  readonly socket?: Pick<AttemptResponse, 'send' | 'body' | 'destroy'>;
  readonly target?: Target;
}

/** Registration of a provider with OpenAI's realtime websocket. */
export interface RealtimeOffer extends Offer {
  /** Path below the base URL. */
  path(model: string): string;
}

/** Call of one tool of an MCP server. */
export interface ToolRequest {
  /** `mcp/server/tool`. */
  readonly model: string;
  /** JSON object, as text: as the arguments of a tool call in a chat. */
  readonly arguments: string;
}

/** Result of a tool. Source: https://modelcontextprotocol.io/specification/2026-07-28/server/tools */
export interface ToolResponse {
  readonly content: readonly JsonObject[];
  /** `structuredContent` as text: guardrails check all of it, whatever the names of its fields. */
  readonly structured_json?: string;
  /** True if the tool ran and failed. */
  readonly isError?: boolean;
}

declare module '../../../contract/call.ts' {
  interface Operations {
    readonly mcp: { readonly request: ToolRequest; readonly response: ToolResponse; readonly offer: Offer };
    readonly realtime: {
      readonly request: RealtimeRequest;
      readonly response: RealtimeResponse;
      readonly offer: RealtimeOffer;
    };
    readonly batches: { readonly request: BatchRequest; readonly response: BatchResponse; readonly offer: BatchOffer };
    readonly moderations: {
      readonly request: ModerationRequest;
      readonly response: ModerationResponse;
      readonly offer: JsonOffer<ModerationRequest, ModerationResponse>;
    };
    readonly transcription: {
      readonly request: TranscriptionRequest;
      readonly response: TranscriptionResponse;
      readonly offer: TranscriptionOffer;
    };
    readonly images: { readonly request: ImageRequest; readonly response: ImageResponse; readonly offer: ImageOffer };
    readonly rerank: {
      readonly request: RerankRequest;
      readonly response: RerankResponse;
      readonly offer: JsonOffer<RerankRequest, RerankResponse>;
    };
  }
}

/** Cost of a call in US dollars, from its usage. */
export function readCost(usage: JsonObject | undefined): number | undefined {
  const cost = usage?.['cost'];
  return typeof cost === 'number' ? cost : undefined;
}
