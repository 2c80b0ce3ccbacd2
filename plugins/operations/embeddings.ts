import {
  definePlugin,
  estimateTextTokens,
  GatewayError,
  isCount,
  isObject,
  type JsonObject,
  type RouteContext,
  readObject,
  type Schema,
} from '../../contract/index.ts';
import type { EmbeddingRequest, EmbeddingResponse } from '../formats/kit/index.ts';

const EMBEDDING_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:EmbeddingRequest',
  examples: [{ model: 'echo/echo-embedding', input: ['Hello there'] }],
  type: 'object',
  required: ['model', 'input'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    input: {
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      maxItems: 2048,
      items: {
        type: ['string', 'integer', 'array'],
        minLength: 1,
        minItems: 1,
        items: { type: 'integer', minimum: 0 },
        minimum: 0,
      },
    },
    encoding_format: { enum: ['float', 'base64', null] },
    dimensions: { type: ['integer', 'null'], minimum: 1, maximum: 65_536 },
    user: { type: ['string', 'null'], maxLength: 512 },
  },
});

const EMBEDDING_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:EmbeddingList',
  examples: [
    {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.6, 0.8] }],
      model: 'echo-embedding',
      usage: { prompt_tokens: 2, total_tokens: 2 },
    },
  ],
  type: 'object',
  required: ['object', 'data', 'model', 'usage'],
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: { type: 'object', required: ['object', 'index', 'embedding'] } },
    model: { type: 'string' },
    usage: { type: 'object', required: ['prompt_tokens', 'total_tokens'] },
  },
});

/** Source: https://docs.cohere.com/reference/embed */
const COHERE_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:CohereEmbedRequest',
  examples: [{ model: 'echo/echo-embedding', texts: ['Hello there'], input_type: 'search_query' }],
  type: 'object',
  required: ['model', 'texts'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    texts: { type: 'array', minItems: 1, maxItems: 2048, items: { type: 'string', minLength: 1 } },
    input_type: { type: ['string', 'null'], maxLength: 64 },
    embedding_types: { type: ['array', 'null'], maxItems: 8, items: { enum: ['float'] } },
    output_dimension: { type: ['integer', 'null'], minimum: 1, maximum: 65_536 },
    truncate: { type: ['string', 'null'], maxLength: 64 },
  },
});

const COHERE_RESPONSE: Schema = {
  type: 'object',
  required: ['id', 'embeddings', 'meta'],
  properties: { embeddings: { type: 'object', required: ['float'], properties: { float: { type: 'array' } } } },
};

/** Embeddings of texts, in OpenAI's shape on both surfaces, and in Cohere's. */
export default definePlugin({
  name: 'embeddings',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.schema(EMBEDDING_REQUEST);
    api.operation({
      name: 'embeddings',
      request: EMBEDDING_REQUEST,
      texts: { response: [] },
      maxUsage: ({ input }) => ({ prompt_tokens: countTokens(input) }),
      async attempt({ request, offer: { codec }, codecCall, sendForJson, bill }) {
        const response = codec.response(await sendForJson(codec.request(request, codecCall)), request, codecCall);
        assertCount(response, countInputs(request.input));
        // A codec in JavaScript may omit the usage.
        const usage = readObject(response.usage);
        bill({ prompt_tokens: usage['prompt_tokens'], cost: usage['cost'] });
        return response;
      },
      isResponse: (value): value is EmbeddingResponse => isObject(value) && Array.isArray(value['data']),
      routes: [
        {
          path: 'embeddings',
          summary: 'Embeddings',
          response: {
            description: 'One embedding for each input, as numbers or as base64 of little-endian float32.',
            schema: EMBEDDING_RESPONSE,
          },
          // OpenAI's response has no id; Mistral's clients require one.
          write: (response, { state }) => ({ id: state.requestId, ...response }),
        },
        {
          otherPaths: ['/v2/embed'],
          summary: 'Embeddings in Cohere’s format',
          description: 'Embeds texts and returns numbers.',
          body: COHERE_REQUEST,
          response: { description: 'One embedding for each text.', schema: COHERE_RESPONSE },
          read: readCohere,
          write: writeCohere,
        },
      ],
    });
  },
});

/** Number of texts: a list of token numbers is one text. */
function countInputs(input: EmbeddingRequest['input']): number {
  return typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length;
}

/** Rejects a response that does not have exactly one embedding for each input: a caller would match texts with wrong vectors. */
function assertCount({ data }: EmbeddingResponse, inputs: number): void {
  const found = Array.isArray(data) ? data.length : 0;
  if (found === inputs) return;
  throw new GatewayError(
    'provider_invalid_response',
    `The provider returned ${found} embeddings for ${inputs} inputs.`,
  );
}

interface CohereRequest extends EmbeddingRequest {
  readonly texts: readonly string[];
  readonly output_dimension?: number | null;
}

function readCohere(body: EmbeddingRequest): EmbeddingRequest {
  const { texts, output_dimension: dimensions, embedding_types: _, ...rest } = body as CohereRequest;
  return { ...rest, input: texts, ...(isCount(dimensions) && { dimensions }) };
}

function writeCohere({ data, usage }: EmbeddingResponse, { state }: RouteContext): JsonObject {
  return {
    id: state.requestId,
    response_type: 'embeddings_by_type',
    texts: readObject(state.body)['texts'],
    embeddings: { float: data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding) },
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: usage.prompt_tokens } },
  };
}

/** Texts are estimated; token ids of the caller are counted. */
function countTokens(input: EmbeddingRequest['input']): number {
  if (typeof input === 'string') return estimateTextTokens(input);
  let tokens = 0;
  for (const item of input)
    tokens += typeof item === 'string' ? estimateTextTokens(item) : typeof item === 'number' ? 1 : item.length;
  return tokens;
}
