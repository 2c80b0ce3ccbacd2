import type { CodecCall, HttpRequest, Offer } from '../../../core/index.ts';

/** What `POST /v1/embeddings` takes: OpenAI's shape. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  readonly encoding_format?: 'float' | 'base64' | null;
  readonly dimensions?: number | null;
  readonly user?: string | null;
  readonly [field: string]: unknown;
}

/** One embedding for each input, in its order. */
export interface EmbeddingResponse {
  readonly object: 'list';
  /** `embedding` is numbers, or base64 of little-endian float32 when the request asked for it. */
  readonly data: readonly {
    readonly object: 'embedding';
    readonly index: number;
    readonly embedding: readonly number[] | string;
  }[];
  readonly model: string;
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number; readonly [field: string]: unknown };
}

/** Translates embeddings; every method is pure and called anew for every attempt. */
export interface EmbeddingCodec {
  request(input: EmbeddingRequest, call: CodecCall): HttpRequest;
  /** `body` is parsed JSON. Throws `StreamFailure` when a 200 holds an error. */
  response(body: unknown, input: EmbeddingRequest, call: CodecCall): EmbeddingResponse;
}

/** What a provider registers with `api.offer('embeddings', …)`. */
export interface EmbeddingOffer extends Offer {
  readonly codec: EmbeddingCodec;
}

declare module '../../../core/contract/call.ts' {
  interface Operations {
    readonly embeddings: {
      readonly request: EmbeddingRequest;
      readonly response: EmbeddingResponse;
      readonly offer: EmbeddingOffer;
    };
  }
}
