import { definePlugin, estimateTextTokens, isObject, type Schema } from '../../contract/index.ts';
import type { ModerationRequest, ModerationResponse } from '../formats/kit/index.ts';

/** OpenAI's default. */
const DEFAULT_MODEL = 'omni-moderation-latest';

const REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ModerationRequest',
  examples: [{ model: 'openai/omni-moderation-latest', input: 'Hello there' }],
  type: 'object',
  required: ['input'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256, description: `Default: \`${DEFAULT_MODEL}\`.` },
    input: {
      type: ['string', 'array'],
      minItems: 1,
      maxItems: 2048,
      items: {
        type: ['string', 'object'],
        required: ['type'],
        properties: {
          type: { enum: ['text', 'image_url'] },
          text: { type: 'string' },
          image_url: { type: 'object', required: ['url'], properties: { url: { type: 'string', minLength: 1 } } },
        },
      },
    },
  },
});

const RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Moderation',
  examples: [
    {
      id: 'modr-1',
      model: 'omni-moderation-latest',
      results: [{ flagged: false, categories: { violence: false }, category_scores: { violence: 0.01 } }],
    },
  ],
  type: 'object',
  required: ['id', 'model', 'results'],
  properties: {
    id: { type: 'string' },
    model: { type: 'string' },
    results: {
      type: 'array',
      items: {
        type: 'object',
        required: ['flagged', 'categories', 'category_scores'],
        properties: {
          flagged: { type: 'boolean' },
          categories: { type: 'object', additionalProperties: { type: 'boolean' } },
          category_scores: { type: 'object', additionalProperties: { type: 'number' } },
        },
      },
    },
  },
});

/** Detects unwanted content in texts and images, in OpenAI's shape. */
export default definePlugin({
  name: 'moderations',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.schema(REQUEST);
    api.operation({
      name: 'moderations',
      request: REQUEST,
      texts: { response: [] },
      maxUsage: ({ input }) => ({ prompt_tokens: countTokens(input) }),
      readUsage: ({ usage }) => ({
        prompt_tokens: usage?.['prompt_tokens'] ?? usage?.['total_tokens'],
        cost: usage?.['cost'],
      }),
      isResponse: (value): value is ModerationResponse => isObject(value) && Array.isArray(value['results']),
      routes: [
        {
          path: 'moderations',
          summary: 'Moderation of texts and images',
          description: 'The model defines the categories.',
          response: { description: 'One result for each text, or one for all parts together.', schema: RESPONSE },
          read: (body) => ({ ...body, model: body.model || DEFAULT_MODEL }),
        },
      ],
    });
  },
});

/** Images count as 0 tokens: vendors neither bill them nor report their tokens. */
function countTokens(input: ModerationRequest['input']): number {
  if (typeof input === 'string') return estimateTextTokens(input);
  let tokens = 0;
  for (const item of input) {
    const text = typeof item === 'string' ? item : item['text'];
    if (typeof text === 'string') tokens += estimateTextTokens(text);
  }
  return tokens;
}
