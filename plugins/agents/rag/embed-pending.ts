import type { Chunk } from './chunk-file.ts';
import type { IndexLock } from './index-lock.ts';
import type { IndexWriter } from './index-writer.ts';

/** Vectors of unit length, one per text; `refused` if the model rejects these texts but may accept others. */
export type EmbedTexts = (texts: readonly string[]) => Promise<readonly Float32Array[] | 'refused'>;

/** Maximum texts and characters of one call: vendors limit both. */
const MAX_TEXTS = 64;
const MAX_CHARACTERS = 48_000;

interface Waiting {
  readonly id: number;
  readonly hash: string;
  readonly text: string;
}

/** Dependencies for writing embeddings. */
export interface EmbedDeps {
  readonly writer: Pick<IndexWriter, 'unembedded' | 'putVectors'>;
  readonly lock: Pick<IndexLock, 'write'>;
  readonly embed: EmbedTexts;
  /** Text of a passage for its embedding. */
  readonly text: (passage: Chunk) => string;
  /** True if the model has embedded any text of this index before. */
  readonly isProven: boolean;
}

/**
 * Embeds every passage without a vector, equal ones once. Texts that the model refuses get an empty vector, so that
 * they are not retried, except when it refuses all. Throws if the model is unreachable; finished embeddings are kept.
 */
export async function embedPending(model: string, { writer, lock, embed, text, isProven }: EmbedDeps): Promise<void> {
  let proven = isProven;
  let refused: string[] = [];
  const put = (vectors: readonly { readonly hash: string; readonly vector: Float32Array }[]): void => {
    lock.write(() => writer.putVectors(model, vectors));
  };
  const embedBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const vectors = await embed(batch.map((waiting) => waiting.text));
    if (vectors !== 'refused') {
      proven = true;
      put(batch.map(({ hash }, at) => ({ hash, vector: vectors[at] ?? new Float32Array() })));
    } else if (batch.length === 1) refused.push(...batch.map(({ hash }) => hash));
    else {
      // A single text may cause the refusal: splitting in halves finds it in a few calls.
      const half = Math.ceil(batch.length / 2);
      await embedBatch(batch.slice(0, half));
      await embedBatch(batch.slice(half));
    }
  };
  for (let above = 0; ; ) {
    const waiting = writer
      .unembedded(above, MAX_TEXTS)
      .map(({ id, hash, passage }) => ({ id, hash, text: text(passage) }));
    const batch = fitting(waiting);
    const last = batch.at(-1);
    if (!last) return;
    above = last.id;
    await embedBatch([...new Map(batch.map((one) => [one.hash, one])).values()]);
    if (!proven) throw new TypeError(`${model} rejects all texts`);
    if (refused.length > 0) put(refused.map((hash) => ({ hash, vector: new Float32Array() })));
    refused = [];
  }
}

/** The first texts, as many as one call may have. */
function fitting(waiting: readonly Waiting[]): readonly Waiting[] {
  let characters = 0;
  return waiting.filter(({ text: { length } }, at) => {
    characters += length;
    return at === 0 || characters <= MAX_CHARACTERS;
  });
}
