import type { Schema } from '../../../core/index.ts';

export const EMBEDDING_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:EmbeddingRequest',
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
    encoding_format: { enum: ['float', 'base64'] },
    dimensions: { type: 'integer', minimum: 1, maximum: 65_536 },
    user: { type: 'string', maxLength: 512 },
  },
});

export const EMBEDDING_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
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

