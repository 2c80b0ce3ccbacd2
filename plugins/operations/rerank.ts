import { definePlugin, estimateTextTokens, isObject, type OperationUsage, type Schema } from '../../contract/index.ts';
import type { RerankRequest, RerankResponse } from '../formats/kit/index.ts';

const REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:RerankRequest',
  examples: [{ model: 'cohere/rerank-v3.5', query: 'Which drink is hot?', documents: ['Tea', 'Ice cream'] }],
  type: 'object',
  required: ['model', 'query', 'documents'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    query: { type: 'string', minLength: 1 },
    documents: {
      type: 'array',
      minItems: 1,
      maxItems: 10_000,
      items: { type: ['string', 'object'], properties: { text: { type: 'string' } } },
    },
    top_n: { type: ['integer', 'null'], minimum: 1 },
    return_documents: { type: ['boolean', 'null'] },
    max_tokens_per_doc: { type: ['integer', 'null'], minimum: 1 },
  },
});

const RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Rerank',
  examples: [{ id: 'rerank-1', model: 'rerank-v3.5', results: [{ index: 0, relevance_score: 0.9 }] }],
  type: 'object',
  required: ['id', 'model', 'results'],
  properties: {
    id: { type: 'string' },
    model: { type: 'string' },
    results: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'relevance_score'],
        properties: {
          index: { type: 'integer' },
          relevance_score: { type: 'number' },
          document: { type: 'object', description: 'Present if `return_documents` is true.' },
        },
      },
    },
    usage: { type: 'object' },
    meta: { type: 'object' },
  },
});

/** Ranks documents by relevance to a query, in the common shape of Cohere's and Jina's clients. */
export default definePlugin({
  name: 'rerank',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.schema(REQUEST);
    api.operation({
      name: 'rerank',
      request: REQUEST,
      texts: { response: ['results[].document'] },
      maxUsage,
      readUsage: ({ usage, meta }) => ({
        prompt_tokens: usage?.total_tokens,
        units: { [SEARCHES]: meta?.billed_units.search_units },
        cost: usage?.cost,
      }),
      isResponse: (value): value is RerankResponse => isObject(value) && Array.isArray(value['results']),
      routes: [
        {
          path: 'rerank',
          otherPaths: ['/v2/rerank'],
          summary: 'Rank documents by their relevance to a query',
          response: { description: 'Documents, most relevant first.', schema: RESPONSE },
          // Cohere's own response always has it, and clients of its v2 require it.
          write: (response, { path }) =>
            path === '/v2/rerank' ? { meta: { api_version: { version: '2' } }, ...response } : response,
        },
      ],
    });
  },
});

/** Unit of vendors that bill searches: one query over a hundred documents of 500 tokens. https://cohere.com/pricing */
const SEARCHES = 'search_units';
const DOCUMENTS_OF_SEARCH = 100;
const TOKENS_OF_DOCUMENT = 500;

/** The query is read with each document; a long document counts as several. */
function maxUsage({ query, documents }: RerankRequest): OperationUsage {
  const inQuery = estimateTextTokens(query);
  let tokens = 0;
  let pieces = 0;
  for (const document of documents) {
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    const read = inQuery + estimateTextTokens(text);
    tokens += read;
    pieces += Math.max(1, Math.ceil(read / TOKENS_OF_DOCUMENT));
  }
  return { prompt_tokens: tokens, units: { [SEARCHES]: Math.ceil(pieces / DOCUMENTS_OF_SEARCH) } };
}
