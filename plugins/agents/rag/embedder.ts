import { randomUUID } from 'node:crypto';
import {
  type CallContext,
  GatewayError,
  isGatewayError,
  type PluginApi,
  type Principal,
} from '../../../contract/index.ts';
import { base64ToFloats } from '../../formats/kit/index.ts';
import type { EmbedTexts } from './embed-pending.ts';

/** Account that pays for the index's own embeddings. */
export const INDEXER: Principal = Object.freeze({ credential: 'key', userId: 'rag', account: 'rag' });

/** Errors of a model that rejects the text. */
const TEXT_ERRORS: ReadonlySet<string> = new Set(['invalid_request', 'context_length_exceeded', 'content_filtered']);

/** Longest wait of a query for its vector; after that it is searched by words alone. */
const QUERY_MS = 5000;

/** Creates vectors with a model of the gateway, through its pipeline. */
export interface Embedder {
  readonly model: string;
  /** Embeds passages, charged to the account `rag`. */
  embedTexts(texts: readonly string[], signal: AbortSignal): ReturnType<EmbedTexts>;
  /** Embeds a query, charged to the caller's account. */
  embedQuery(text: string, caller: CallContext): Promise<Float32Array>;
}

export function createEmbedder(api: Pick<PluginApi, 'models'>, model: string): Embedder {
  const call = async (input: readonly string[], context: CallContext): Promise<readonly Float32Array[]> => {
    const request = { model, input, encoding_format: 'float' } as const;
    const { data } = (await api.models.call('embeddings', request, context)).response;
    if (data.length !== input.length)
      throw new GatewayError(
        'provider_invalid_response',
        `The model ${model} returned ${data.length} embeddings for ${input.length} texts.`,
      );
    return data
      .toSorted((a, b) => a.index - b.index)
      .map(({ embedding }) => normalise(typeof embedding === 'string' ? base64ToFloats(embedding) : embedding));
  };
  return {
    model,
    async embedTexts(texts, signal) {
      try {
        return await call(texts, {
          principal: INDEXER,
          requestId: `rag-${randomUUID()}`,
          signal,
          skip: ['rpm', 'concurrency'],
        });
      } catch (error) {
        if (isGatewayError(error) && TEXT_ERRORS.has(error.code)) return 'refused';
        throw error;
      }
    },
    async embedQuery(text, caller) {
      const clock = AbortSignal.timeout(QUERY_MS);
      const signal = caller.signal ? AbortSignal.any([caller.signal, clock]) : clock;
      const [vector] = await call([text], { ...caller, signal });
      return vector ?? new Float32Array();
    },
  };
}

/** Scales a vector to length 1, so that a dot product is a cosine. */
export function normalise(vector: ArrayLike<number>): Float32Array {
  const floats = Float32Array.from(vector);
  const length = Math.sqrt(floats.reduce((sum, value) => sum + value * value, 0)) || 1;
  return floats.map((value) => value / length);
}
