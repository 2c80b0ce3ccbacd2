import type { Schema } from './json.ts';

/**
 * Request schemas of the OpenAI surface: types and ranges of spec 2.1, open to fields that vendors add. They accept known
 * deviations of clients from the canonical form. These are null for "not set", `functions` for tools, calls and tools without
 * `type`, and 0 or −1 for "no limit". Codecs get the canonical form; `plugins/formats/kit/lenient-chat.ts` makes it.
 */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });

/** Maximum number of messages per request and of parts per message: the documented limits of vendors, the same in every format. */
export const MAX_MESSAGES = 100_000;
export const MAX_PARTS = 2048;

/** A part of a message. */
export const CONTENT_PART: Schema = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', minLength: 1, maxLength: 64 },
    text: { type: 'string' },
    // A plain URL, as Mistral's clients send it, is converted to an object when it is read.
    image_url: {
      type: ['object', 'string'],
      minLength: 1,
      required: ['url'],
      properties: { url: { type: 'string', minLength: 1 }, detail: nullable('string', { maxLength: 32 }) },
    },
  },
  allOf: [
    { if: { required: ['type'], properties: { type: { const: 'text' } } }, then: { required: ['text'] } },
    { if: { required: ['type'], properties: { type: { const: 'image_url' } } }, then: { required: ['image_url'] } },
  ],
};

const toolCall: Schema = {
  type: 'object',
  required: ['id', 'function'],
  properties: {
    id: { type: 'string' },
    type: { enum: ['function', null] },
    function: {
      type: 'object',
      required: ['name', 'arguments'],
      properties: { name: { type: 'string', minLength: 1, maxLength: 256 }, arguments: { type: 'string' } },
    },
  },
};

/** Piece of a model's reasoning, returned by the client. */
const reasoningDetail: Schema = {
  type: 'object',
  properties: { text: nullable('string'), data: nullable('string'), signature: nullable('string') },
};

/** Alternatives to content in assistant messages. */
const CALLS = [{ required: ['tool_calls'] }, { required: ['function_call'] }];

const ofRole = (role: string, then: Schema): Schema => ({
  if: { required: ['role'], properties: { role: { const: role } } },
  then,
});

const WITH_CONTENT: Schema = { required: ['content'], properties: { content: { type: ['string', 'array'] } } };

/** Content rules by role. Assistant messages may have only calls, tool messages may be empty, and all others need content. */
const BY_ROLE: Schema = {
  allOf: [
    { if: { not: { properties: { role: { enum: ['assistant', 'tool', 'function'] } } } }, then: WITH_CONTENT },
    {
      if: { properties: { role: { const: 'assistant' } }, not: { anyOf: CALLS } },
      then: { required: ['content'] },
    },
    ofRole('tool', { required: ['tool_call_id'], properties: { tool_call_id: { type: 'string' } } }),
    ofRole('function', { required: ['name'], properties: { name: { type: 'string', minLength: 1 } } }),
  ],
};

export const CHAT_MESSAGE: Schema = {
  type: 'object',
  required: ['role'],
  properties: {
    role: { enum: ['system', 'developer', 'user', 'assistant', 'tool', 'function'] },
    content: { type: ['string', 'array', 'null'], items: CONTENT_PART, maxItems: MAX_PARTS },
    name: nullable('string', { maxLength: 256 }),
    tool_calls: nullable('array', { items: toolCall, maxItems: 1024 }),
    tool_call_id: nullable('string', { maxLength: 4096 }),
    function_call: nullable('object', {
      required: ['name', 'arguments'],
      properties: { name: { type: 'string', minLength: 1, maxLength: 256 }, arguments: { type: 'string' } },
    }),
    refusal: nullable('string'),
    reasoning_content: nullable('string'),
    reasoning_details: nullable('array', { items: reasoningDetail, maxItems: 1024 }),
    thinking_blocks: nullable('array', { items: { type: 'object' }, maxItems: 1024 }),
    order: nullable('array', { items: { type: 'string', maxLength: 64 }, maxItems: 4096 }),
    is_error: nullable('boolean'),
  },
  // Common messages come first: each failed condition costs the validator an error object.
  if: {
    required: ['role', 'content'],
    properties: {
      role: { enum: ['system', 'developer', 'user', 'assistant'] },
      content: { type: ['string', 'array'] },
    },
  },
  else: {
    if: { required: ['role'], properties: { role: { enum: ['system', 'developer', 'user'] } } },
    then: WITH_CONTENT,
    else: {
      if: { required: ['role', 'content'], properties: { role: { const: 'assistant' } } },
      else: BY_ROLE,
    },
  },
};

const functionObject: Schema = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 256 },
    description: nullable('string'),
    parameters: nullable('object'),
    strict: nullable('boolean'),
  },
};

const tool: Schema = {
  type: 'object',
  properties: { type: nullable('string', { minLength: 1, maxLength: 64 }), function: functionObject },
  if: { properties: { type: { enum: ['function', null] } } },
  then: { required: ['function'] },
};

/** Larger than the output limit of any model. With it and the largest `n`, no sum of tokens or money overflows. */
const MAX_TOKENS = 2_147_483_647;
const limit = nullable('integer', { minimum: -1, maximum: MAX_TOKENS });
/** Limit of a 64-bit number, within the precision of JSON numbers. */
const MAX_SEED = 2 ** 63;

export const CHAT_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ChatCompletionRequest',
  examples: [{ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }] }],
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    messages: { type: 'array', minItems: 1, maxItems: MAX_MESSAGES, items: CHAT_MESSAGE },
    temperature: nullable('number', { minimum: 0, maximum: 2 }),
    top_p: nullable('number', { minimum: 0, maximum: 1 }),
    max_tokens: limit,
    max_completion_tokens: limit,
    stream: nullable('boolean'),
    stream_options: nullable('object', {
      properties: { include_usage: nullable('boolean'), include_obfuscation: nullable('boolean') },
    }),
    frequency_penalty: nullable('number', { minimum: -2, maximum: 2 }),
    presence_penalty: nullable('number', { minimum: -2, maximum: 2 }),
    stop: { type: ['string', 'array', 'null'], items: { type: 'string' }, maxItems: 16 },
    n: nullable('integer', { minimum: 1, maximum: 128 }),
    seed: nullable('integer', { minimum: -MAX_SEED, maximum: MAX_SEED }),
    logprobs: nullable('boolean'),
    top_logprobs: nullable('integer', { minimum: 0, maximum: 20 }),
    logit_bias: nullable('object', { additionalProperties: { type: 'number', minimum: -100, maximum: 100 } }),
    user: nullable('string', { maxLength: 512 }),
    tools: nullable('array', { items: tool, maxItems: 1024 }),
    tool_choice: { type: ['string', 'object', 'null'], properties: { type: { type: 'string' } } },
    parallel_tool_calls: nullable('boolean'),
    functions: nullable('array', { items: functionObject, maxItems: 1024 }),
    function_call: { type: ['string', 'object', 'null'], properties: { name: { type: 'string' } } },
    response_format: {
      type: ['object', 'null'],
      required: ['type'],
      properties: {
        type: { enum: ['text', 'json_object', 'json_schema'] },
        json_schema: {
          type: ['object', 'null'],
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 64 },
            description: nullable('string'),
            schema: nullable('object'),
            strict: nullable('boolean'),
          },
        },
      },
      if: { type: 'object', required: ['type'], properties: { type: { const: 'json_schema' } } },
      then: { required: ['json_schema'], properties: { json_schema: { type: 'object' } } },
    },
    reasoning_effort: nullable('string', { maxLength: 32 }),
    // Passed unchanged to vendors that support them.
    audio: {},
    metadata: {},
    modalities: {},
    moderation: {},
    prediction: {},
    prompt_cache_key: {},
    prompt_cache_options: {},
    prompt_cache_retention: {},
    safety_identifier: {},
    service_tier: nullable('string', { maxLength: 64 }),
    store: {},
    verbosity: {},
    web_search_options: {},
    extra_body: {},
  },
});
