import { base64ToFloats, type PluginApi, type Principal } from '../../../core/index.ts';
import { hashOf } from './files.ts';
import type { Library } from './library.ts';
import { normalise } from './search.ts';

/** Who the index's own embeddings are charged to. */
export const INDEXER: Principal = Object.freeze({ credential: 'key', userId: 'rag', account: 'rag' });

/** Texts in one embeddings call. */
const BATCH = 64;

/** Makes vectors with a model of the gateway, through its pipeline; every text is embedded once. */
export interface Embedder {
  /** The hashes of the texts' vectors, which are in the library afterwards. */
  embedAll(texts: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
  /** The vector of a query, on the caller's account. */
  embedQuery(
    text: string,
    caller: { readonly principal: Principal; readonly requestId: string; readonly signal: AbortSignal },
  ): Promise<Float32Array>;
}

export function createEmbedder(api: Pick<PluginApi, 'embed'>, library: Library, model: string): Embedder {
  const call = async (
    input: readonly string[],
    caller: Parameters<Embedder['embedQuery']>[1],
  ): Promise<readonly Float32Array[]> => {
    const { data } = await api.embed(
      { model, input, encoding_format: 'float' },
      { ...caller, skip: ['rpm', 'concurrency'] },
    );
    return data
      .toSorted((a, b) => a.index - b.index)
      .map(({ embedding }) => normalise(typeof embedding === 'string' ? base64ToFloats(embedding) : embedding));
  };
  return {
    async embedAll(texts, signal) {
      const hashes = texts.map((text) => hashOf(`${model}\n${text}`));
      const known = library.knownVectors(hashes);
      const missing = [
        ...new Map(hashes.flatMap((hash, at) => (known.has(hash) ? [] : [[hash, texts[at] ?? ''] as const]))).entries(),
      ];
      for (let at = 0; at < missing.length; at += BATCH) {
        const batch = missing.slice(at, at + BATCH);
        const vectors = await call(
          batch.map(([, text]) => text),
          { principal: INDEXER, requestId: `rag-${hashOf(batch[0]?.[0] ?? '').slice(0, 16)}`, signal },
        );
        library.putVectors(batch.flatMap(([hash], nth) => (vectors[nth] ? [{ hash, vector: vectors[nth] }] : [])));
      }
      return hashes;
    },
    async embedQuery(text, caller) {
      const [vector] = await call([text], caller);
      if (!vector) throw new TypeError('the embeddings model answered without a vector');
      return vector;
    },
  };
}
