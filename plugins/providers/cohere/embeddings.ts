import { isObject, readArray, readCount, readObject, readString, StreamFailure } from '../../../contract/index.ts';
import { type EmbeddingCodec, floatsToBase64, invalid } from '../kit/index.ts';

/** Maximum number of texts per call. https://docs.cohere.com/reference/embed */
const MAX_TEXTS = 96;

/** Cohere's input types by Gemini's task types. */
const INPUT_TYPES: Readonly<Record<string, string>> = Object.freeze({
  RETRIEVAL_QUERY: 'search_query',
  RETRIEVAL_DOCUMENT: 'search_document',
  CLASSIFICATION: 'classification',
  CLUSTERING: 'clustering',
});

/** Embeddings of API v2. Source: https://docs.cohere.com/reference/embed */
export const cohereEmbeddings: EmbeddingCodec = Object.freeze<EmbeddingCodec>({
  request(input, { model }) {
    const texts = [input.input].flat();
    if (!texts.every((text) => typeof text === 'string'))
      throw invalid('input', 'must be text for this provider, which does not accept token ids');
    if (texts.length > MAX_TEXTS) throw invalid('input', `must hold at most ${MAX_TEXTS} texts for this provider`);
    const { dimensions, input_type: own, task_type: task, truncate, encoding_format: _, ...rest } = input;
    const wanted = readString(own) ?? INPUT_TYPES[readString(task) ?? ''] ?? 'search_document';
    const dropped = Object.keys(rest).filter((name) => name !== 'model' && name !== 'input' && rest[name] !== null);
    return {
      path: '/v2/embed',
      body: {
        model,
        texts,
        input_type: wanted,
        embedding_types: ['float'],
        ...(typeof dimensions === 'number' && { output_dimension: dimensions }),
        ...(typeof truncate === 'string' && { truncate }),
      },
      ...(dropped.length > 0 && { dropped }),
    };
  },
  response(body, input, call) {
    const rows = readArray(readObject(readObject(body)['embeddings'])['float']);
    const wanted = [input.input].flat().length;
    if (
      rows.length !== wanted ||
      !rows.every((row) => Array.isArray(row) && row.every((each) => typeof each === 'number'))
    )
      throw new StreamFailure({
        class: 'upstream_error',
        message: 'The provider did not return an embedding for each text.',
      });
    const vectors = rows as readonly (readonly number[])[];
    const units = readObject(readObject(isObject(body) ? body['meta'] : undefined)['billed_units']);
    const tokens = readCount(units['input_tokens']) ?? 0;
    return {
      object: 'list',
      model: call.model,
      data: vectors.map((values, index) => ({
        object: 'embedding' as const,
        index,
        embedding: input.encoding_format === 'base64' ? floatsToBase64(values) : values,
      })),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  },
});
