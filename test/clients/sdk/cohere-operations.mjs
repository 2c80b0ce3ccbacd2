// Operations of cohere-ai other than chat.
import { CohereClientV2 } from 'cohere-ai';
import * as is from './behaviours.mjs';

const cohere = new CohereClientV2({ environment: is.base, token: is.key });
const once = { maxRetries: 0 };

await is.report({
  async embeddings() {
    const { embeddings, meta } = await cohere.embed(
      { model: is.VECTOR_MODEL, texts: is.TEXTS, inputType: 'search_query', embeddingTypes: ['float'] },
      once,
    );
    is.equal([embeddings.float, meta.billedUnits.inputTokens], [is.VECTORS, 9], 'the vectors');
  },
  async rerank() {
    const documents = ['Rome is wet.', is.HELLO, 'Paris is sunny.'];
    const { results } = await cohere.rerank({ model: 'ranker/m', query: 'Say hello', documents, topN: 2 }, once);
    is.equal([results.length, documents[results[0].index]], [2, is.HELLO], 'the result');
  },
});
