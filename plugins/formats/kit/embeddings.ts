import type { CodecCall, HttpRequest, Offer } from '../../../contract/index.ts';

/** Request body of `POST /v1/embeddings`, in OpenAI's shape. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  readonly encoding_format?: 'float' | 'base64' | null;
  readonly dimensions?: number | null;
  readonly user?: string | null;
  readonly [field: string]: unknown;
}

/** Response with one embedding for each input, in input order. */
export interface EmbeddingResponse {
  readonly object: 'list';
  /** `embedding` is an array of numbers, or base64 of little-endian float32 if requested. */
  readonly data: readonly {
    readonly object: 'embedding';
    readonly index: number;
    readonly embedding: readonly number[] | string;
  }[];
  readonly model: string;
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number; readonly [field: string]: unknown };
}

/** Translates embeddings. Every method is pure and called again for every attempt. */
export interface EmbeddingCodec {
  request(input: EmbeddingRequest, call: CodecCall): HttpRequest;
  /** `body` is parsed JSON. Throws `StreamFailure` when a 200 contains an error. */
  response(body: unknown, input: EmbeddingRequest, call: CodecCall): EmbeddingResponse;
}

/** Registration of a provider for `api.offer('embeddings', …)`. */
export interface EmbeddingOffer extends Offer {
  readonly codec: EmbeddingCodec;
}

declare module '../../../contract/call.ts' {
  interface Operations {
    readonly embeddings: {
      readonly request: EmbeddingRequest;
      readonly response: EmbeddingResponse;
      readonly offer: EmbeddingOffer;
    };
  }
}

/** Encodes numbers as base64 of little-endian 32-bit floats, as OpenAI's `encoding_format: "base64"`. */
export function floatsToBase64(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeFloatLE(value, index * 4);
  });
  return bytes.toString('base64');
}

/** Decodes base64 of little-endian 32-bit floats; bytes beyond a multiple of four are ignored. */
export function base64ToFloats(text: string): readonly number[] {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => bytes.readFloatLE(index * 4));
}

/** Scales a vector to length 1, as OpenAI's embeddings are; a zero vector stays unchanged. */
export function toUnitLength(values: readonly number[]): readonly number[] {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return length > 0 && Number.isFinite(length) ? values.map((value) => value / length) : values;
}
