import {
  type CostPart,
  costOf,
  definePlugin,
  estimateTextTokens,
  GatewayError,
  isCount,
  isObject,
  type JsonObject,
  type Metered,
  type PluginApi,
  type Price,
  type Route,
  type RouteContext,
  type Schema,
  type Target,
} from '../../contract/index.ts';
import { type EmbeddingRequest, type EmbeddingResponse, readCost } from '../formats/kit/index.ts';
import { callContext } from './kit/model-routes.ts';

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
      estimate: (request, { price }) => costOfTokens(countTokens(request.input), price),
      async attempt({ request, offer: { codec }, codecCall, price, sendForJson, meter }) {
        const response = codec.response(await sendForJson(codec.request(request, codecCall)), request, codecCall);
        assertCount(response, countInputs(request.input));
        // A codec in JavaScript may omit the usage.
        const counted = isObject(response.usage) ? response.usage['prompt_tokens'] : undefined;
        // The input was not empty, so a count of 0 is invalid.
        const reported = isCount(counted) && counted > 0 ? counted : undefined;
        const providerCost = readCost(response.usage);
        meter({
          ...costOfTokens(reported ?? countTokens(request.input), price),
          estimated: reported === undefined,
          providerCost,
        });
        return response;
      },
      isResponse: (value): value is EmbeddingResponse => isObject(value) && Array.isArray(value['data']),
    });
    const route = (
      path: string,
      summary: string,
      find: (ctx: RouteContext, model: string) => readonly Target[] | undefined,
    ): Route<Schema> => ({
      method: 'POST',
      path,
      summary,
      auth: ['key'],
      isIdempotent: true,
      body: EMBEDDING_REQUEST,
      responses: {
        200: {
          description: 'One embedding for each input, as numbers or as base64 of little-endian float32.',
          schema: EMBEDDING_RESPONSE,
        },
      },
      async handler(ctx) {
        const request = ctx.state.body as EmbeddingRequest;
        const { requestId, principal, session, trace, signal, onOutcome } = ctx.state;
        const targets = find(ctx as RouteContext, request.model);
        const context = { requestId, principal, session, trace, signal, onOutcome, ...(targets && { targets }) };
        const { response, headers } = await api.models.call('embeddings', request, context);
        ctx.set(headers);
        // OpenAI's response has no id; Mistral's clients require one.
        ctx.body = { id: requestId, ...response };
      },
    });
    api.route(
      route('/api/core/:provider/embeddings', 'Embeddings by one provider', (ctx, model) => [
        { provider: ctx.params['provider'] ?? '', model },
      ]),
    );
    api.route(route('/v1/embeddings', 'Embeddings; the model is `provider/model` or an alias', () => undefined));
    addCohereRoute(api);
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

function addCohereRoute(api: PluginApi): void {
  api.route({
    method: 'POST',
    path: '/v2/embed',
    auth: ['key'],
    isIdempotent: true,
    body: COHERE_REQUEST,
    summary: 'Embeddings in Cohere’s format; the model is `provider/model` or an alias',
    description: 'Embeds texts and returns numbers.',
    responses: { 200: { description: 'One embedding for each text.', schema: COHERE_RESPONSE } },
    async handler(context) {
      const ctx = context as RouteContext<JsonObject & { readonly model: string; readonly texts: readonly string[] }>;
      const { model, texts, output_dimension: dimensions, embedding_types: _, ...rest } = ctx.state.body;
      const request = { ...rest, model, input: texts, ...(isCount(dimensions) && { dimensions }) };
      const called = await api.models.call('embeddings', request, callContext(ctx as RouteContext, request));
      const { data, usage } = called.response;
      ctx.set(called.headers);
      ctx.body = {
        id: ctx.state.requestId,
        response_type: 'embeddings_by_type',
        texts,
        embeddings: { float: data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding) },
        meta: { api_version: { version: '2' }, billed_units: { input_tokens: usage.prompt_tokens } },
      };
    },
  });
}

/** Cost of input tokens; embeddings have no output. */
function costOfTokens(tokens: number, price: Price | undefined): Metered {
  const usage = { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens };
  const parts: CostPart[] = [];
  const cost = costOf(usage, price, undefined, undefined, parts);
  return { units: { prompt_tokens: tokens }, cost, parts };
}

/** Texts are estimated; token ids of the caller are counted. */
function countTokens(input: EmbeddingRequest['input']): number {
  if (typeof input === 'string') return estimateTextTokens(input);
  let tokens = 0;
  for (const item of input)
    tokens += typeof item === 'string' ? estimateTextTokens(item) : typeof item === 'number' ? 1 : item.length;
  return tokens;
}
