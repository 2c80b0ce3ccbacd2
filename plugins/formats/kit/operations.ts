import type {
  AttemptResponse,
  CallFacts,
  ChatResponse,
  CodecCall,
  HttpRequest,
  JsonObject,
  Offer,
  Target,
  UploadedFile,
} from '../../../contract/index.ts';
import type { FormFile } from './multipart.ts';

/** Translates an operation whose request and response are JSON; every method is pure and called anew for every attempt. */
export interface JsonCodec<Request, Response> {
  request(input: Request, call: CodecCall): HttpRequest;
  /** `body` is parsed JSON. Throws `StreamFailure` when a 200 holds an error. */
  response(body: unknown, input: Request, call: CodecCall): Response;
}

/** What a provider registers with `api.offer(…)` for such an operation. */
export interface JsonOffer<Request, Response> extends Offer {
  readonly codec: JsonCodec<Request, Response>;
}

/** What `POST /v1/moderations` takes: OpenAI's shape. */
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

/** What `POST /v1/rerank` takes: what Cohere and Jina have in common. */
export interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly (string | Readonly<Record<string, unknown>>)[];
  readonly top_n?: number | null;
  readonly return_documents?: boolean | null;
  readonly [field: string]: unknown;
}

/** The best documents first, as Cohere and Jina both have them. */
export interface RerankResponse {
  readonly id: string;
  readonly model: string;
  readonly results: readonly {
    /** Of the document in the request. */
    readonly index: number;
    readonly relevance_score: number;
    readonly document?: Readonly<Record<string, unknown>>;
  }[];
  /** What the vendor counted, where it did. */
  readonly usage?: { readonly total_tokens?: number; readonly cost?: number };
  readonly meta?: { readonly billed_units: { readonly search_units: number } };
}

/** Speech to be written down; the file is read when it is sent. */
export interface TranscriptionRequest {
  readonly model: string;
  /** `translate` writes English, whatever is spoken. */
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

/** One of them: JSON, text, or the events of a stream. */
export interface TranscriptionResponse {
  readonly json?: JsonObject;
  readonly text?: string;
  readonly events?: AsyncIterable<JsonObject>;
}

export interface TranscriptionOffer extends Offer {
  readonly codec: {
    request(input: TranscriptionRequest, sound: Uint8Array, call: CodecCall): HttpRequest;
    /** The vendor's JSON, with `text`. Throws `StreamFailure` for what is none. */
    response(body: unknown): JsonObject;
    /** An event of the vendor's stream as callers get it, OpenAI's; undefined for one that they do not get. As it came unless set. */
    event?(event: JsonObject): JsonObject | undefined;
  };
}

/** Images by words; with `images` those are changed. The files are read when they are sent. */
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

/** One of them: OpenAI's body, or the events of a stream. */
export interface ImageResponse {
  readonly json?: JsonObject;
  readonly events?: AsyncIterable<JsonObject>;
}

export interface ImageOffer extends Offer {
  readonly codec: {
    request(input: ImageRequest, files: readonly FormFile[], call: CodecCall): HttpRequest;
    /** The vendor's JSON, with `data`. Throws `StreamFailure` for what is none. */
    response(body: unknown, call: CodecCall): JsonObject;
  };
}

/** A batch as it is begun at a vendor: its requests were checked one by one, and what goes to the vendor is kept under `ticket`. */
export interface BatchRequest {
  readonly model: string;
  readonly ticket: string;
  readonly requests: number;
  /** The most that all of them may come to, in nano-dollars; null where the price is not known. */
  readonly cost: number | null;
  /** Unix milliseconds until which that is reserved. */
  readonly heldUntil: number;
}

/** What is known of a batch that has begun. */
export interface BatchResponse {
  /** What the vendor said. */
  readonly batch: JsonObject;
  /** The call that it was begun with: what is reserved stands under it. */
  readonly callId: string;
  readonly facts: CallFacts;
  /** The budgets that it counts in; undefined where nothing is reserved. */
  readonly budgets?: readonly { readonly id: string; readonly until?: number }[];
}

/** What a provider registers that takes batches. */
export interface BatchOffer extends Offer {
  readonly wire: 'openai' | 'anthropic' | 'gemini';
  /** The formats of its requests, by dialect: how the path ends that such a request is sent to by itself, below the base URL. */
  readonly paths: Readonly<Record<string, string>>;
  /** What the addresses of its batches and files end with after a `?`, where lines of files name those `paths` as well. */
  readonly query?: string | undefined;
  /** What tokens cost as a part of what they cost in a call by itself; fees are not less. A tier `batch` of a price comes before it. */
  readonly factor: number;
  /** Reads the response to one request. Throws `StreamFailure` for what is none. */
  response(dialect: string, body: unknown, call: CodecCall): ChatResponse;
}

/** What opens a realtime websocket at a vendor, or what comes on one: all that is known of a response before it is written. */
export interface RealtimeRequest {
  readonly model: string;
  /**
   * `open`: the websocket itself. `response`: a response, held before it begins. `transcription`: the transcription of sound, held before
   * the sound is passed on. `begun` and `transcribed`: the same where the vendor did it before anything was held; they are owed.
   */
  readonly kind: 'open' | 'response' | 'begun' | 'transcription' | 'transcribed';
  /** What the gateway has of it. */
  readonly ticket: string;
  /** The tokens that the model is to read, estimated. */
  readonly text: number;
  readonly audio: number;
  readonly images: number;
  /** The tokens that it may write at most; null for as many as the model can, or as money is left for. */
  readonly max_tokens: number | null;
  /** Whether it may speak. */
  readonly speaks: boolean;
}

/** What came of it. */
export interface RealtimeResponse {
  /** The websocket that was opened, and where. */
  readonly socket?: Pick<AttemptResponse, 'send' | 'body' | 'destroy'>;
  readonly target?: Target;
}

/** What a provider registers whose vendor has OpenAI's realtime websocket. */
export interface RealtimeOffer extends Offer {
  /** Below the base URL. */
  path(model: string): string;
}

declare module '../../../contract/call.ts' {
  interface Operations {
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

/** What a usage says that a call cost, in US dollars. */
export function readCost(usage: JsonObject | undefined): number | undefined {
  const cost = usage?.['cost'];
  return typeof cost === 'number' ? cost : undefined;
}
