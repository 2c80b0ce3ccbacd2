import type { CodecCall, HttpRequest, JsonObject, Offer } from '../../../core/index.ts';

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
  readonly usage?: { readonly total_tokens: number };
  readonly meta?: { readonly billed_units: { readonly search_units: number } };
}

declare module '../../../core/contract/call.ts' {
  interface Operations {
    readonly moderations: {
      readonly request: ModerationRequest;
      readonly response: ModerationResponse;
      readonly offer: JsonOffer<ModerationRequest, ModerationResponse>;
    };
    readonly rerank: {
      readonly request: RerankRequest;
      readonly response: RerankResponse;
      readonly offer: JsonOffer<RerankRequest, RerankResponse>;
    };
  }
}
