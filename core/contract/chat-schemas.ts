import type { Schema } from './json.ts';

/** The request schemas of the OpenAI surface: types and ranges of spec 2.1, open to fields that vendors add. */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });

/** The most tokens one may ask for: what 32 bits hold, so that a price times tokens times choices stays an exact number. */
const MAX_TOKENS = 2_147_483_647;

const contentPart: Schema = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', minLength: 1, maxLength: 64 },
    text: { type: 'string' },
    image_url: {
      type: 'object',
      required: ['url'],
      properties: { url: { type: 'string', minLength: 1 }, detail: { type: 'string', maxLength: 32 } },
    },
  },
  allOf: [
    { if: { required: ['type'], properties: { type: { const: 'text' } } }, then: { required: ['text'] } },
    { if: { required: ['type'], properties: { type: { const: 'image_url' } } }, then: { required: ['image_url'] } },
  ],
};

const toolCall: Schema = {
  type: 'object',
  required: ['id', 'type', 'function'],
  properties: {
    id: { type: 'string' },
    type: { const: 'function' },
    function: {
      type: 'object',
      required: ['name', 'arguments'],
      properties: { name: { type: 'string', minLength: 1, maxLength: 256 }, arguments: { type: 'string' } },
    },
  },
};

const message: Schema = {
  type: 'object',
  required: ['role'],
  properties: {
    role: { enum: ['system', 'developer', 'user', 'assistant', 'tool'] },
    content: { type: ['string', 'array', 'null'], items: contentPart },
    name: { type: 'string', maxLength: 256 },
    tool_calls: nullable('array', { items: toolCall, maxItems: 1024 }),
    tool_call_id: { type: 'string', maxLength: 4096 },
    reasoning_content: nullable('string'),
  },
  allOf: [
    {
      // An assistant may have said nothing but tool calls; everybody else has content.
      if: { not: { properties: { role: { const: 'assistant' } } } },
      then: { required: ['content'], properties: { content: { type: ['string', 'array'] } } },
      else: { if: { not: { required: ['tool_calls'] } }, then: { required: ['content'] } },
    },
    { if: { required: ['role'], properties: { role: { const: 'tool' } } }, then: { required: ['tool_call_id'] } },
  ],
};

const tool: Schema = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', minLength: 1, maxLength: 64 },
    function: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 256 },
        description: { type: 'string' },
        parameters: { type: 'object' },
        strict: nullable('boolean'),
      },
    },
  },
  if: { required: ['type'], properties: { type: { const: 'function' } } },
  then: { required: ['function'] },
};

export const CHAT_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ChatCompletionRequest',
  examples: [{ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }] }],
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    messages: { type: 'array', minItems: 1, items: message },
    temperature: nullable('number', { minimum: 0, maximum: 2 }),
    top_p: nullable('number', { minimum: 0, maximum: 1 }),
    max_tokens: nullable('integer', { minimum: 1, maximum: MAX_TOKENS }),
    max_completion_tokens: nullable('integer', { minimum: 1, maximum: MAX_TOKENS }),
    stream: nullable('boolean'),
    stream_options: nullable('object', {
      properties: { include_usage: { type: 'boolean' }, include_obfuscation: { type: 'boolean' } },
    }),
    frequency_penalty: nullable('number', { minimum: -2, maximum: 2 }),
    presence_penalty: nullable('number', { minimum: -2, maximum: 2 }),
    stop: { type: ['string', 'array', 'null'], items: { type: 'string' }, maxItems: 16 },
    n: nullable('integer', { minimum: 1, maximum: 128 }),
    seed: nullable('integer'),
    logprobs: nullable('boolean'),
    top_logprobs: nullable('integer', { minimum: 0, maximum: 20 }),
    logit_bias: nullable('object', { additionalProperties: { type: 'number', minimum: -100, maximum: 100 } }),
    user: nullable('string', { maxLength: 512 }),
    tools: nullable('array', { items: tool, maxItems: 1024 }),
    tool_choice: { type: ['string', 'object', 'null'], properties: { type: { type: 'string' } } },
    parallel_tool_calls: nullable('boolean'),
    response_format: {
      type: ['object', 'null'],
      required: ['type'],
      properties: {
        type: { enum: ['text', 'json_object', 'json_schema'] },
        json_schema: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 64 },
            schema: { type: 'object' },
            strict: nullable('boolean'),
          },
        },
      },
      if: { type: 'object', required: ['type'], properties: { type: { const: 'json_schema' } } },
      then: { required: ['json_schema'] },
    },
    reasoning_effort: nullable('string', { maxLength: 32 }),
  },
});

/** What answers look like, for the OpenAPI document; answers are made to fit by the codecs and held to it by tests. */
const usage: Schema = {
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  properties: {
    prompt_tokens: { type: 'integer' },
    completion_tokens: { type: 'integer' },
    total_tokens: { type: 'integer' },
  },
};

export const CHAT_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ChatCompletion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  properties: {
    id: { type: 'string' },
    object: { const: 'chat.completion' },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    model: { type: 'string' },
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'message', 'finish_reason', 'logprobs'],
        properties: {
          index: { type: 'integer' },
          message: { type: 'object', required: ['role', 'content', 'refusal'] },
          finish_reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] },
        },
      },
    },
    usage,
  },
});
