import {
  type ChatMessage,
  type ChatRequest,
  type HttpRequest,
  isObject,
  readArray,
  readObject,
  writeJson,
} from '../../contract/index.ts';
import { withPrefix } from '../formats/openai-chat/continue.ts';
import { withThinking } from '../formats/openai-chat/messages.ts';
import {
  type CompatibleRules,
  drop,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  refuse,
  rename,
} from './openai-compatible.ts';

const BASE_URL = 'https://api.deepseek.com';

const FIELDS: CompatibleRules = {
  ...OPENAI_ONLY,
  frequency_penalty: drop('deprecated by the vendor', 0),
  logit_bias: refuse('no token biases'),
  max_completion_tokens: rename('max_tokens'),
  n: refuse('one choice per response', 1),
  parallel_tool_calls: drop(undefined, true),
  presence_penalty: drop('deprecated by the vendor', 0),
  reasoning_effort: emulate('`low`, `high`, `max`; `none` disables thinking', thinking),
  response_format: emulate('`json_schema` becomes `json_object` with the schema in a system message', jsonMode),
  seed: drop(),
  temperature: pass('no effect while thinking'),
  top_p: pass('no effect while thinking'),
  tools: emulate(
    '`strict` is sent only if `baseUrl` ends with `/beta`; otherwise it is dropped, which is reported',
    looseTools,
  ),
  user: rename('user_id', 'other characters than `a-z A-Z 0-9 _ -` become `_`', userId),
};

/**
 * Sources: api-docs.deepseek.com (2026-10), vercel/ai `packages/deepseek`. Its error code is `invalid_request_error`
 * for nearly every error, including an empty account, so the class comes from the status.
 */
export default openaiCompatible({
  name: 'deepseek',
  baseUrl: BASE_URL,
  apiKeyEnv: 'DEEPSEEK_API_KEY',
  fields: FIELDS,
  extras: ['thinking'],
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  messages: (messages, request) => withSchema(withThinking(messages), request),
  // The beta base URL accepts strict tools, and then requires all tools to be strict.
  configure: ({ baseUrl = BASE_URL }) =>
    /\/beta\/*$/.test(baseUrl)
      ? { fields: { ...FIELDS, tools: pass() }, continues: () => ({ write: withPrefix }) }
      : { ...(baseUrl === BASE_URL && { continues: () => ({ write: atBeta }) }) },
});

/** Only the beta base URL continues an interrupted response. https://api-docs.deepseek.com/guides/chat_prefix_completion */
function atBeta(request: HttpRequest): HttpRequest {
  return withPrefix({ ...request, path: `/beta${request.path}` });
}

function looseTools(value: unknown) {
  const tools = readArray(value);
  const strictOf = (tool: unknown): unknown => readObject(readObject(tool)['function'])['strict'];
  if (tools.every((tool) => strictOf(tool) === undefined)) return { body: { tools } };
  const loose = tools.map((tool) => {
    if (!isObject(tool) || !isObject(tool['function'])) return tool;
    const { strict: _strict, ...rest } = tool['function'];
    return { ...tool, function: rest };
  });
  return { body: { tools: loose }, reported: tools.some((tool) => strictOf(tool) === true) ? ['tools.strict'] : [] };
}

function thinking(value: unknown, { thinking: own }: ChatRequest) {
  if (value === 'none') return { body: own === undefined ? { thinking: { type: 'disabled' } } : {} };
  return { body: { reasoning_effort: nearestEffort(value, ['max', 'high', 'low']) } };
}

function jsonMode(value: unknown) {
  const schema = (value as ChatRequest['response_format'])?.type === 'json_schema';
  return { body: { response_format: schema ? { type: 'json_object' } : value } };
}

function withSchema(
  messages: readonly ChatMessage[],
  { response_format: format }: ChatRequest,
): readonly ChatMessage[] {
  if (format?.type !== 'json_schema') return messages;
  const { name, schema = {} } = format.json_schema;
  const content = `Answer with one JSON object "${name}" and nothing else. It conforms to this JSON Schema:\n${writeJson(schema)}`;
  return [{ role: 'system', content }, ...messages];
}

function userId(value: unknown): unknown {
  return String(value)
    .replace(/[^\w-]/g, '_')
    .slice(0, 512);
}
