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

/** Who the index's own embeddings are charged to. */
export const INDEXER: Principal = Object.freeze({ credential: 'key', userId: 'rag', account: 'rag' });

/** The errors of a model that does not take the text. */
const TEXT_ERRORS: ReadonlySet<string> = new Set(['invalid_request', 'context_length_exceeded', 'content_filtered']);

/** How long a query waits for its vector: after that, it is searched by words alone. */
const QUERY_MS = 5000;

/** Makes vectors with a model of the gateway, through its pipeline. */
export interface Embedder {
  readonly model: string;
  /** Of passages, on the account `rag`. */
  embedTexts(texts: readonly string[], signal: AbortSignal): ReturnType<EmbedTexts>;
  /** Of a query, on the caller's account. */
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

/** A vector of length 1, so that a dot product is a cosine. */
export function normalise(vector: ArrayLike<number>): Float32Array {
  const floats = Float32Array.from(vector);
  const length = Math.sqrt(floats.reduce((sum, value) => sum + value * value, 0)) || 1;
  return floats.map((value) => value / length);
}
