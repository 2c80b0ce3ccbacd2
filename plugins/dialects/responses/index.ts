import {
  type AssistantMessage,
  type ChatResponse,
  type ContentPart,
  type DialectDefinition,
  definePlugin,
  GatewayError,
  isObject,
  type JsonObject,
  MAX_MESSAGES,
  MAX_PARTS,
  type PluginApi,
  type ReasoningDetail,
  readArray,
  readString,
  type Schema,
} from '../../../core/index.ts';
import { createSetting } from './blocks.ts';
import { native } from './native.ts';
import { createOutput, type Output } from './output.ts';
import { readRequest } from './read.ts';
import { endOf, type ResponsesContext, responseId, writeResponse } from './response.ts';
import { socket } from './socket.ts';
import { createResponseStore, type ResponseStore } from './store.ts';
import { stream } from './stream.ts';
import type { ResponsesBody } from './types.ts';

/** Types of the fields that are read; fields, items, parts and tools that nobody here knows pass. Null is "not set". */

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

const RESPONSES_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
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

const COUNT_RESPONSE: Schema = Object.freeze({
  type: 'object',
  required: ['object', 'input_tokens'],
  properties: { object: { const: 'response.input_tokens' }, input_tokens: { type: 'integer' } },
});

/** The routes by which callers read and delete what `store: on` keeps of theirs. */
function addStoreRoutes(api: Pick<PluginApi, 'route'>, store: ResponseStore): void {
  const path = '/v1/responses/:id';
  api.route({
    ...{ method: 'GET', path, auth: ['key'], summary: 'A response of the caller that is kept' },
    responses: { 200: { description: 'The response.', schema: RESPONSES_RESPONSE } },
    async handler(ctx) {
      const kept = await store.get(ctx.state.principal, ctx.params['id'] ?? '');
      if (!kept) throw notFound();
      ctx.body = kept.response;
    },
  });
  api.route({
    ...{ method: 'DELETE', path, auth: ['key'], summary: 'Delete a response of the caller' },
    responses: { 200: { description: 'It is deleted.', schema: DELETED } },
    async handler(ctx) {
      const id = ctx.params['id'] ?? '';
      if (!(await store.remove(ctx.state.principal, id))) throw notFound();
      ctx.body = { id, object: 'response', deleted: true };
    },
  });
}

const DELETED = Object.freeze({
  type: 'object',
  required: ['id', 'object', 'deleted'],
  properties: { id: { type: 'string' }, object: { const: 'response' }, deleted: { const: true } },
});

function notFound(): GatewayError {
  return new GatewayError(
    'not_found',
    'No response with this id is kept for you. It may have been deleted, or be too old.',
  );
}

const DESCRIPTION =
  'A stream of server-sent events when `stream` is true. Tools that only OpenAI runs are left out for other providers and told in `x-tollgate-dropped`.';

const responses: DialectDefinition<ResponsesBody> = {
  name: 'responses',
  request: RESPONSES_REQUEST,
  response: RESPONSES_RESPONSE,
  routes: [
    { path: '/v1/responses', summary: 'Response; the model is `provider/model` or an alias', description: DESCRIPTION },
    {
      path: '/v1/responses/input_tokens',
      summary: 'Count the tokens of a request for a response',
      action: 'count',
      response: COUNT_RESPONSE,
    },
  ],
  prefixes: ['/v1/responses'],
  keepAlive: ': keep-alive\n\n',
  read: readRequest,
  write,
  stream,
  count: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
  native,
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

/** OpenAI's Responses API, which Codex and the newer SDKs use by default. */
export default definePlugin({
  name: 'responses',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      store: {
        type: 'string',
        enum: ['off', 'short', 'on'],
        default: 'short',
        description:
          'Whether responses are kept for requests that continue them: not at all, for an hour, or for `retention` and with routes to read and delete them.',
      },
      retention: {
        type: 'string',
        format: 'duration',
        default: '720h',
        description: 'How long `store: on` keeps a response.',
      },
      websocket: {
        type: 'boolean',
        default: true,
        description: 'Whether responses are sent on websockets too. Where it is off, clients are told to use POST.',
      },
      models: {
        type: 'object',
        description:
          'Model names of this format’s clients, each with what it stands for: `provider/model`, or several in the order to try.',
        additionalProperties: {
          anyOf: [
            { type: 'string', minLength: 1 },
            { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } },
          ],
        },
      },
    },
  },
  setup(api, { store: mode, retention, websocket, models = {} }) {
    const store = createResponseStore(api, mode, retention);
    const aliases = Object.fromEntries(Object.entries(models).map(([name, targets]) => [name, [targets].flat()]));
    const { expand, remember } = store;
    api.dialect({ ...responses, aliases, expand, remember, ...(websocket && { socket }) });
    if (mode === 'on') addStoreRoutes(api, store);
  },
});

/** A whole response in this format. */
export function write({ model, choices, usage }: ChatResponse, context: ResponsesContext): unknown {
  const [choice] = choices;
  const finish = choice?.finish_reason ?? null;
  const output = createOutput(
    createSetting(context, () => {}),
    phaseOf(choice?.message),
  );
  if (choice) writeMessage(choice.message, choice.logprobs, output);
  output.close(finish);
  return writeResponse(context, {
    id: responseId(context),
    model,
    output: output.items(),
    usage,
    ...endOf(finish, output.hasRefusal),
  });
}

function phaseOf(message: AssistantMessage | undefined): string | undefined {
  return readString(message?.dialect_fields?.['responses']?.['phase']);
}

function writeMessage(message: AssistantMessage, logprobs: unknown, output: Output): void {
  const { order, tool_calls: calls = [], refusal, annotations, ...rest } = message;
  const parts = partsOf(message.content);
  const thoughts = thoughtsOf(message);
  const steps: Readonly<Record<string, (index: number) => void>> = {
    reasoning: (index) => thoughts[index]?.(output),
    content(index) {
      const part = parts[index];
      if (part?.type !== 'text') return;
      const cited = [...readObjects(part['annotations']), ...(index === parts.length - 1 ? (annotations ?? []) : [])];
      output.delta({ content: readString(part['text']) ?? '', annotations: cited }, logprobs);
    },
    tool(index) {
      const call = calls[index];
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- providers may send other kinds
      if (call?.type === 'function') output.delta({ tool_calls: [{ index, ...call }] }, undefined);
    },
  };
  for (const place of order ?? usualOrder(thoughts.length, parts.length, calls.length)) {
    const [kind = '', index] = place.split(':');
    steps[kind]?.(Number(index));
  }
  output.delta({ ...(refusal && { refusal }), images: readArray(rest['images']) }, undefined);
}

function partsOf(content: unknown): readonly ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return readArray(content).filter(
    (part): part is JsonObject & ContentPart => isObject(part) && typeof part['type'] === 'string',
  );
}

function readObjects(value: unknown): readonly JsonObject[] {
  return readArray(value).filter(isObject);
}

function usualOrder(thoughts: number, parts: number, calls: number): readonly string[] {
  const list = (kind: string, length: number) => Array.from({ length }, (_, index) => `${kind}:${index}`);
  return [...list('reasoning', thoughts), ...list('content', parts), ...list('tool', calls)];
}

/**
 * How each of the details is written, by its index. Those of one item stand together; where no detail shows its text, the visible
 * thinking is that of the first one.
 */
function thoughtsOf({
  reasoning_content: visible,
  reasoning_details: details = [],
}: AssistantMessage): readonly ((output: Output) => void)[] {
  if (details.length === 0) return visible ? [(output) => output.reasoning(visible)] : [];
  const isTold = details.some(({ text }) => text !== undefined);
  return details.map((detail, index) => (output) => {
    if (index > 0 && isSameItem(details[index - 1], detail)) return;
    const length = details.slice(index + 1).findIndex((next, at) => !isSameItem(details[index + at], next));
    if (index === 0 && !isTold && visible) output.reasoning(visible);
    output.details(details.slice(index, length < 0 ? undefined : index + 1 + length));
  });
}

function isSameItem(one: ReasoningDetail | undefined, other: ReasoningDetail): boolean {
  return one !== undefined && one.id !== undefined && one.id === other.id;
}
