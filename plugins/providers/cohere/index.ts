import {
  type ChatMessage,
  type ChatRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import {
  drop,
  type Emulation,
  emulate,
  OPENAI_ONLY,
  openaiCompatible,
  refuse,
  rename,
  within,
} from '../openai-compatible.ts';
import { cohereEmbeddings } from './embeddings.ts';
import { chunksOf, completionOf } from './read.ts';

const PATHS: Readonly<Record<string, string>> = Object.freeze({
  'chat/completions': '/v2/chat',
  models: '/v1/models?endpoint=chat&page_size=1000',
  rerank: '/v2/rerank',
});

/** Cohere's API v2. Sources: docs.cohere.com/reference/chat, cohere-ai 8.1 (generated from its OpenAPI document). */
export default openaiCompatible({
  name: 'cohere',
  baseUrl: 'https://api.cohere.com',
  apiKeyEnv: 'COHERE_API_KEY',
  path: (operation) => PATHS[operation] ?? `/v2/${operation}`,
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: within(0, 1),
    logit_bias: refuse('no token biases'),
    logprobs: drop('its log probabilities have no token texts', false),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    presence_penalty: within(0, 1),
    reasoning_effort: emulate(
      '`none` becomes `thinking: {"type": "disabled"}`; other values leave reasoning on',
      effort,
    ),
    response_format: emulate(
      '`json_schema` becomes the schema of `json_object`; not with tools or `documents`',
      format,
    ),
    stop: rename('stop_sequences', 'a single string becomes a list', (stop) =>
      typeof stop === 'string' ? [stop] : stop,
    ),
    tool_choice: emulate('`REQUIRED`, `NONE`; a named tool becomes `REQUIRED`, which is reported', choice),
    tools: emulate('with `strict_tools` if a tool is strict', tools),
    top_k: rename('k'),
    top_logprobs: drop(),
    top_p: rename('p'),
    user: drop(),
  },
  extras: [
    'citation_options',
    'documents',
    'k',
    'p',
    'priority',
    'safety_mode',
    'stop_sequences',
    'strict_tools',
    'thinking',
  ],
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  messages: (messages) => messages.map(messageOf),
  streamUsage: 'always',
  finishReasons: {
    complete: 'stop',
    stop_sequence: 'stop',
    max_tokens: 'length',
    tool_call: 'tool_calls',
    error: { failure: 'broken_off' },
    timeout: { failure: 'broken_off' },
  },
  wire: {
    response: completionOf,
    events: chunksOf,
    isEnd: ({ type }) => type === 'message-end',
    embeddings: cohereEmbeddings,
  },
  operations: ['rerank'],
  rerankTexts: true,
  lacks: {
    'log probabilities': 'it returns token ids instead of texts',
    'reasoning tokens': 'its usage does not count them separately',
  },
  errors: {
    messages: [
      { status: [400], text: /too many tokens|context (?:length|window)/i, is: 'context_length' },
      { status: [498], text: /.*/, is: 'content_filter' },
    ],
  },
});

/** Models that think, by name. https://docs.cohere.com/docs/reasoning */
const THINKS = /^command-a-(?:plus|reasoning)/;

function effort(value: unknown, { model, thinking }: ChatRequest): Emulation {
  if (thinking !== undefined) return { body: {} };
  if (!THINKS.test(model)) return { dropped: value !== 'none' };
  return { body: { thinking: { type: value === 'none' ? 'disabled' : 'enabled' } } };
}

function format(value: unknown, { tools: called, documents }: ChatRequest): Emulation {
  const { type, json_schema: wanted } = readObject(value);
  if (type !== 'json_object' && type !== 'json_schema') return { body: {} };
  // The vendor rejects the combination.
  if ((called?.length ?? 0) > 0 || readArray(documents).length > 0) return { dropped: true };
  const { schema } = readObject(wanted);
  return { body: { response_format: { type: 'json_object', ...(isObject(schema) && { json_schema: schema }) } } };
}

function choice(value: unknown): Emulation {
  if (value === 'none') return { body: { tool_choice: 'NONE' } };
  if (value === 'required') return { body: { tool_choice: 'REQUIRED' } };
  return isObject(value) ? { body: { tool_choice: 'REQUIRED' }, dropped: true } : { body: {} };
}

function tools(value: unknown): Emulation {
  const rows = readArray(value).map(readObject);
  const isStrict = rows.some((tool) => readObject(tool['function'])['strict'] === true);
  const plain = rows.map((tool) => {
    const { strict: _, ...called } = readObject(tool['function']);
    return { type: 'function', function: { parameters: { type: 'object', properties: {} }, ...called } };
  });
  return { body: { tools: plain, ...(isStrict && { strict_tools: true }) } };
}

/** Converts a message to the vendor's form: thoughts become the tool plan, or a part of the content. */
function messageOf(message: ChatMessage): ChatMessage {
  if (message.role !== 'assistant') return message;
  const { content, reasoning_content: thoughts, tool_calls: calls, role } = message;
  const thought = readString(thoughts);
  const said =
    typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : (content ?? []);
  const own: JsonObject = { role, ...(calls && { tool_calls: calls }) };
  if (calls && thought !== undefined)
    return { ...own, role, tool_plan: thought, ...(said.length > 0 && { content: said }) };
  const parts = thought === undefined ? said : [{ type: 'thinking', thinking: thought }, ...said];
  if (parts.length === 0) return { ...own, role, ...(!calls && { content: '' }) };
  return { ...own, role, content: thought === undefined && typeof content === 'string' ? content : parts };
}
