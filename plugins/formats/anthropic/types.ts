import { type JsonObject, MAX_MESSAGES, MAX_PARTS, type Schema } from '../../../contract/index.ts';

/** Wire types of the Messages API: known fields only. Source: https://platform.claude.com/docs/en/api/messages */

/** Content block of any type; the schema below checks the fields that each type requires. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface TextBlock extends Block {
  readonly type: 'text';
  readonly text: string;
}

export interface MessagesMessage {
  readonly role: string;
  readonly content: string | readonly Block[];
}

export interface MessagesTool {
  /** Absent or `custom`: a function of the caller. Any other type is a vendor tool. */
  readonly type?: string | null;
  readonly name?: string;
  readonly description?: string | null;
  readonly input_schema?: JsonObject;
  readonly strict?: boolean | null;
  readonly [field: string]: unknown;
}

/** Client request. */
export interface MessagesRequest {
  readonly model: string;
  /** Absent only when counting tokens. */
  readonly max_tokens?: number | null;
  readonly messages: readonly MessagesMessage[];
  readonly system?: string | readonly Block[] | null;
  readonly stream?: boolean | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly metadata?: JsonObject | null;
  readonly service_tier?: string | null;
  readonly thinking?: JsonObject | null;
  readonly output_config?: JsonObject | null;
  readonly tools?: readonly MessagesTool[] | null;
  readonly tool_choice?: JsonObject | null;
  readonly cache_control?: JsonObject | null;
  readonly [field: string]: unknown;
}

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

/** Request to the vendor. */
export interface AnthropicRequest extends MessagesRequest {
  readonly max_tokens: number;
  readonly system?: readonly TextBlock[];
  readonly messages: readonly AnthropicMessage[];
}

/** Types and required fields of known fields; null means "not set", and unknown fields pass. */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });
const text: Schema = { type: 'string' };
const name: Schema = { type: 'string', minLength: 1, maxLength: 256 };
const object: Schema = { type: 'object' };

/** Required fields by block type. */
const BLOCKS: readonly (readonly [type: string, properties: Readonly<Record<string, Schema>>])[] = Object.freeze([
  ['text', { text }],
  ['image', { source: { $ref: '#/$defs/source' } }],
  ['document', { source: { $ref: '#/$defs/source' } }],
  ['tool_use', { id: { type: 'string', minLength: 1, maxLength: 4096 }, name, input: object }],
  ['tool_result', { tool_use_id: { type: 'string', minLength: 1, maxLength: 4096 } }],
  ['thinking', { thinking: text }],
  ['redacted_thinking', { data: text }],
]);

const ofType = (type: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  if: { required: ['type'], properties: { type: { const: type } } },
  then: { required: Object.keys(properties), properties },
});

const block: Schema = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', minLength: 1, maxLength: 64 },
    signature: nullable('string'),
    is_error: nullable('boolean'),
    title: nullable('string'),
    context: nullable('string'),
    cache_control: nullable('object'),
  },
  allOf: BLOCKS.map(([type, properties]) => ofType(type, properties)),
};

const source: Schema = {
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string', minLength: 1, maxLength: 64 } },
  allOf: [
    ofType('base64', { media_type: { type: 'string', minLength: 1, maxLength: 128 }, data: text }),
    ofType('text', { data: text }),
    ofType('url', { url: { type: 'string', minLength: 1 } }),
    ofType('file', { file_id: { type: 'string', minLength: 1 } }),
  ],
};

const content: Schema = { type: ['string', 'array'], items: { $ref: '#/$defs/block' }, maxItems: MAX_PARTS };

const tool: Schema = {
  type: 'object',
  properties: {
    type: nullable('string', { maxLength: 64 }),
    name,
    description: nullable('string'),
    input_schema: object,
    strict: nullable('boolean'),
    cache_control: nullable('object'),
  },
  allOf: [
    {
      if: { properties: { type: { enum: ['custom', null] } } },
      then: { required: ['name', 'input_schema'] },
    },
  ],
};

const properties: Readonly<Record<string, Schema>> = {
  model: { type: 'string', minLength: 1, maxLength: 256 },
  max_tokens: { type: 'integer', minimum: 1 },
  messages: {
    type: 'array',
    minItems: 1,
    maxItems: MAX_MESSAGES,
    items: {
      type: 'object',
      required: ['role', 'content'],
      properties: { role: { enum: ['user', 'assistant', 'system'] }, content },
    },
  },
  system: { type: ['string', 'array', 'null'], items: { $ref: '#/$defs/block' } },
  stream: nullable('boolean'),
  temperature: nullable('number', { minimum: 0, maximum: 2 }),
  top_p: nullable('number', { minimum: 0, maximum: 1 }),
  top_k: nullable('integer', { minimum: 0 }),
  stop_sequences: nullable('array', { items: text, maxItems: 8192 }),
  metadata: nullable('object', { properties: { user_id: nullable('string') } }),
  service_tier: nullable('string', { maxLength: 64 }),
  thinking: nullable('object', {
    required: ['type'],
    properties: {
      type: { type: 'string', maxLength: 64 },
      budget_tokens: { type: 'integer', minimum: 1 },
      display: nullable('string', { maxLength: 64 }),
    },
  }),
  output_config: nullable('object', {
    properties: { effort: nullable('string', { maxLength: 64 }), format: nullable('object') },
  }),
  tools: nullable('array', { items: { $ref: '#/$defs/tool' }, maxItems: 1024 }),
  tool_choice: nullable('object', {
    required: ['type'],
    properties: {
      type: { enum: ['auto', 'any', 'tool', 'none'] },
      name,
      disable_parallel_tool_use: nullable('boolean'),
    },
    allOf: [ofType('tool', { name })],
  }),
  cache_control: nullable('object'),
};

const example = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] };

export const MESSAGES_REQUEST: Schema = {
  type: 'object',
  required: ['model', 'max_tokens', 'messages'],
  properties,
  $defs: { block, source, tool },
  examples: [{ ...example, max_tokens: 1024 }],
};

/** Request to count tokens: like a message, but `max_tokens` is optional. */
export const COUNT_REQUEST: Schema = {
  ...MESSAGES_REQUEST,
  required: ['model', 'messages'],
  properties: { ...properties, max_tokens: nullable('integer', { minimum: 1 }) },
  examples: [example],
};

const count: Schema = { type: 'integer', minimum: 0 };

export const MESSAGES_RESPONSE: Schema = {
  type: 'object',
  required: ['id', 'type', 'role', 'model', 'content', 'stop_reason', 'stop_sequence', 'usage'],
  properties: {
    id: text,
    type: { const: 'message' },
    role: { const: 'assistant' },
    model: text,
    content: { type: 'array', items: { type: 'object', required: ['type'], properties: { type: text } } },
    stop_reason: { type: 'string' },
    stop_sequence: { type: ['string', 'null'] },
    usage: {
      type: 'object',
      required: ['input_tokens', 'output_tokens'],
      properties: {
        input_tokens: count,
        cache_creation_input_tokens: count,
        cache_read_input_tokens: count,
        output_tokens: count,
      },
    },
  },
};

export const COUNT_RESPONSE: Schema = {
  type: 'object',
  required: ['input_tokens'],
  properties: { input_tokens: count },
};
