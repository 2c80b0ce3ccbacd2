import { MAX_MESSAGES, MAX_PARTS, type Schema } from '../../../contract/index.ts';

/**
 * OpenAI's Responses API: shapes and names shared by the client dialect and the vendor codec.
 * https://developers.openai.com/api/reference/resources/responses, and the schemas of
 * github.com/openai/openai-openapi.
 */

/** Item of `input` or `output`, of any type. */
export type Item = Readonly<Record<string, unknown>>;

/** Request fields that are written for vendors. */
export interface ResponsesRequest {
  readonly model: string;
  readonly input: readonly Item[];
  readonly store: false;
  readonly [field: string]: unknown;
}

export interface ResponsesBody {
  readonly model: string;
  readonly input?: string | readonly Item[] | null;
  readonly instructions?: string | null;
  readonly tools?: readonly Item[] | null;
  readonly tool_choice?: string | Item | null;
  readonly text?: { readonly format?: Item | null; readonly verbosity?: string | null } | null;
  readonly reasoning?: {
    readonly effort?: string | null;
    readonly summary?: string | null;
    readonly [field: string]: unknown;
  } | null;
  readonly include?: readonly string[] | null;
  readonly stream?: boolean | null;
  readonly store?: boolean | null;
  readonly previous_response_id?: string | null;
  readonly max_output_tokens?: number | null;
  readonly [field: string]: unknown;
}

/** Stream event; SSE frames and websocket frames are made from it. */
export interface ResponsesEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Types of the fields that are read; unknown fields, items, parts and tools pass. Null means "not set". */

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });
const id = nullable('string', { maxLength: 4096 });
/** As in chat: more output than any model writes. */
const MAX_TOKENS = 2_147_483_647;

const item: Schema = {
  type: 'object',
  properties: {
    type: nullable('string', { maxLength: 64 }),
    id,
    call_id: id,
    role: { enum: ['user', 'assistant', 'system', 'developer', null] },
    name: nullable('string', { maxLength: 256 }),
    namespace: nullable('string', { maxLength: 256 }),
    content: { type: ['string', 'array', 'null'], items: { type: 'object' }, maxItems: MAX_PARTS },
    arguments: { type: ['string', 'object', 'null'] },
    input: { type: ['string', 'object', 'null'] },
    summary: nullable('array', { items: { type: 'object' } }),
    encrypted_content: nullable('string'),
    tools: nullable('array', { items: { type: 'object' }, maxItems: 1024 }),
  },
};

const tool: Schema = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', minLength: 1, maxLength: 64 },
    name: nullable('string', { maxLength: 256 }),
    description: nullable('string'),
    parameters: nullable('object'),
    strict: nullable('boolean'),
    tools: nullable('array', { items: { type: 'object' }, maxItems: 1024 }),
  },
};

export const RESPONSES_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ResponsesRequest',
  examples: [{ model: 'echo/echo', input: 'Hello there' }],
  type: 'object',
  required: ['model', 'input'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    input: { type: ['string', 'array'], items: item, maxItems: MAX_MESSAGES },
    instructions: nullable('string'),
    tools: nullable('array', { items: tool, maxItems: 1024 }),
    tool_choice: { type: ['string', 'object', 'null'] },
    text: nullable('object', {
      properties: {
        format: nullable('object', {
          required: ['type'],
          properties: {
            type: { enum: ['text', 'json_object', 'json_schema'] },
            name: nullable('string', { maxLength: 64 }),
            description: nullable('string'),
            schema: nullable('object'),
            strict: nullable('boolean'),
          },
        }),
        verbosity: nullable('string', { maxLength: 32 }),
      },
    }),
    reasoning: nullable('object', {
      properties: { effort: nullable('string', { maxLength: 32 }), summary: nullable('string', { maxLength: 32 }) },
    }),
    include: nullable('array', { items: { type: 'string', maxLength: 128 }, maxItems: 64 }),
    stream: nullable('boolean'),
    stream_options: nullable('object', { properties: { include_obfuscation: nullable('boolean') } }),
    store: nullable('boolean'),
    background: nullable('boolean'),
    previous_response_id: nullable('string', { maxLength: 256 }),
    max_output_tokens: nullable('integer', { minimum: 1, maximum: MAX_TOKENS }),
    max_tool_calls: nullable('integer', { minimum: 0 }),
    temperature: nullable('number', { minimum: 0, maximum: 2 }),
    top_p: nullable('number', { minimum: 0, maximum: 1 }),
    top_logprobs: nullable('integer', { minimum: 0, maximum: 20 }),
    parallel_tool_calls: nullable('boolean'),
    metadata: nullable('object'),
    user: nullable('string', { maxLength: 512 }),
    safety_identifier: nullable('string', { maxLength: 512 }),
    prompt_cache_key: nullable('string', { maxLength: 4096 }),
    service_tier: nullable('string', { maxLength: 64 }),
    truncation: nullable('string', { maxLength: 32 }),
  },
});

/** Request to compact: like a request for a response, but without streaming, and with optional input. */
export const COMPACT_REQUEST: Schema & { readonly $id: string } = Object.freeze({
  ...RESPONSES_REQUEST,
  $id: 'tollgate:CompactRequest',
  required: ['model'],
  properties: {
    ...(RESPONSES_REQUEST['properties'] as Readonly<Record<string, Schema>>),
    input: { type: ['string', 'array', 'null'], items: item, maxItems: MAX_MESSAGES },
    stream: { enum: [false, null] },
  },
});

export const COMPACT_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:CompactedResponse',
  type: 'object',
  required: ['id', 'object', 'created_at', 'output'],
  properties: {
    id: { type: 'string' },
    object: { const: 'response.compaction' },
    created_at: { type: 'integer', description: 'Unix time in seconds.' },
    output: { type: 'array', items: { type: 'object', required: ['type'] } },
    usage: nullable('object'),
  },
});

export const RESPONSES_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Response',
  type: 'object',
  required: ['id', 'object', 'created_at', 'status', 'model', 'output'],
  properties: {
    id: { type: 'string' },
    object: { const: 'response' },
    created_at: { type: 'integer', description: 'Unix time in seconds.' },
    status: { enum: ['completed', 'incomplete', 'failed', 'in_progress'] },
    model: { type: 'string' },
    output: { type: 'array', items: { type: 'object', required: ['type'] } },
    incomplete_details: nullable('object'),
    error: nullable('object'),
    usage: nullable('object', {
      required: ['input_tokens', 'output_tokens', 'total_tokens'],
      properties: {
        input_tokens: { type: 'integer' },
        output_tokens: { type: 'integer' },
        total_tokens: { type: 'integer' },
      },
    }),
  },
});

export const COUNT_RESPONSE: Schema = Object.freeze({
  type: 'object',
  required: ['object', 'input_tokens'],
  properties: { object: { const: 'response.input_tokens' }, input_tokens: { type: 'integer' } },
});
