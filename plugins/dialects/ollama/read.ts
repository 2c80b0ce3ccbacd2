import {
  CHAT_REQUEST,
  type ChatMessage,
  type ChatRequest,
  type DialectInput,
  type DialectRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Schema,
  type Tool,
  type ToolCall,
  writeJson,
} from '../../../contract/index.ts';
import { invalid, knownNames, tellUnknown } from '../../formats/kit/index.ts';
import { assertNoServers } from '../../formats/kit/servers.ts';
import { fillIn } from '../kit/fill-in.ts';

export type OllamaBody = JsonObject;

const chat = readObject(CHAT_REQUEST['properties']);
const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });
const images = nullable('array', { maxItems: 256, items: { type: 'string', minLength: 1 } });

/** Options with an equivalent in chat, by its name there. */
const OPTIONS: Readonly<Record<string, string>> = Object.freeze({
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  seed: 'seed',
  stop: 'stop',
  presence_penalty: 'presence_penalty',
  frequency_penalty: 'frequency_penalty',
  repeat_penalty: 'repetition_penalty',
});

/** Fields of both routes of Ollama that generate text. */
const COMMON: Readonly<Record<string, Schema>> = Object.freeze({
  model: chat['model'] as Schema,
  stream: nullable('boolean', { description: 'Default: true.' }),
  format: { type: ['string', 'object', 'null'], description: '`json`, or a JSON Schema.' },
  think: { type: ['boolean', 'string', 'null'], description: 'Enables thinking, or sets its effort.' },
  keep_alive: { type: ['string', 'number', 'null'] },
  logprobs: nullable('boolean'),
  top_logprobs: chat['top_logprobs'] as Schema,
  options: nullable('object', {
    properties: {
      num_predict: nullable('integer', { minimum: -2, maximum: 2_147_483_647 }),
      temperature: chat['temperature'],
      top_p: chat['top_p'],
      top_k: nullable('integer', { minimum: 0 }),
      min_p: nullable('number', { minimum: 0, maximum: 1 }),
      seed: chat['seed'],
      stop: chat['stop'],
      presence_penalty: chat['presence_penalty'],
      frequency_penalty: chat['frequency_penalty'],
      repeat_penalty: nullable('number', { minimum: 0 }),
    },
  }),
});

const TOOL_CALL: Schema = {
  type: 'object',
  required: ['function'],
  properties: {
    id: nullable('string', { maxLength: 4096 }),
    function: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string', minLength: 1, maxLength: 256 }, arguments: nullable('object') },
    },
  },
};

const MESSAGE: Schema = {
  type: 'object',
  required: ['role'],
  properties: {
    role: { enum: ['system', 'user', 'assistant', 'tool'] },
    content: nullable('string'),
    thinking: nullable('string'),
    images,
    tool_calls: nullable('array', { maxItems: 1024, items: TOOL_CALL }),
    tool_name: nullable('string', { maxLength: 256 }),
    tool_call_id: nullable('string', { maxLength: 4096 }),
  },
};

export const OLLAMA_CHAT: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:OllamaChatRequest',
  examples: [{ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }], stream: false }],
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    ...COMMON,
    messages: { type: 'array', maxItems: readObject(chat['messages'])['maxItems'], items: MESSAGE },
    tools: chat['tools'],
  },
});

export const OLLAMA_GENERATE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:OllamaGenerateRequest',
  examples: [{ model: 'echo/echo', prompt: 'Hello there', stream: false }],
  type: 'object',
  required: ['model'],
  properties: {
    ...COMMON,
    prompt: nullable('string'),
    suffix: nullable('string'),
    system: nullable('string'),
    template: nullable('string'),
    raw: nullable('boolean'),
    context: nullable('array', { items: { type: 'integer' } }),
    images,
  },
});

const OWN = ['model', 'stream', 'format', 'think', 'options', 'logprobs', 'top_logprobs'];
const OF_CHAT: ReadonlySet<string> = new Set([...OWN, 'messages', 'tools']);
const OF_GENERATE: ReadonlySet<string> = new Set([
  ...[...OWN, 'prompt', 'suffix', 'system', 'images'],
  ...['template', 'raw', 'context'],
]);

/** Returns true for a request to `/api/generate`. */
export function isGenerate({ route }: Pick<DialectInput, 'route'>): boolean {
  return route.path.endsWith('/generate');
}

/** Converts a request of Ollama's to a chat. Source: https://github.com/ollama/ollama/blob/main/docs/api.md */
export function readOllama(input: DialectInput<OllamaBody>): DialectRequest {
  const { body } = input;
  assertNoServers(body['tools']);
  const generates = isGenerate(input);
  const { messages, places } = generates ? readPrompt(body) : readMessages(body);
  const { sent, left } = readOptions(readObject(body['options']));
  const known = generates ? OF_GENERATE : OF_CHAT;
  const unknown = Object.keys(body).filter((name) => !known.has(name) && isSet(body[name]));
  const tools = generates ? [] : readArray(body['tools']);
  const { logprobs, top_logprobs: rivals } = body;
  const request: ChatRequest = {
    model: String(body['model']),
    messages,
    stream: body['stream'] !== false,
    ...sent,
    ...readFormat(body['format']),
    ...readThink(body['think']),
    ...(tools.length > 0 && { tools: tools as readonly Tool[] }),
    ...(logprobs === true && { logprobs, ...(typeof rivals === 'number' && { top_logprobs: rivals }) }),
  };
  const dropped = [...unknown, ...left.map((name) => `options.${name}`)];
  for (const message of readArray(body['messages']).map(readObject)) {
    tellUnknown(message, 'message', NAMES, 'messages', dropped);
    for (const call of readArray(message['tool_calls']).map(readObject)) {
      tellUnknown(call, 'call', NAMES, 'messages.tool_calls', dropped);
      tellUnknown(call['function'], 'function', NAMES, 'messages.tool_calls.function', dropped);
    }
  }
  return {
    request,
    ...(dropped.length > 0 && { dropped }),
    place: (param) => placeOf(param, places),
  };
}

/** Names of Ollama's messages and calls. */
const NAMES = knownNames({
  message: 'role content thinking images tool_calls tool_name tool_call_id',
  call: 'id type function',
  function: 'index name description arguments',
});

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

interface ReadMessages {
  readonly messages: readonly ChatMessage[];
  /** Path of each message in the caller's body. */
  readonly places: readonly string[];
}

/** Converts a request to `/api/generate` to one turn. */
function readPrompt(body: OllamaBody): ReadMessages {
  if (body['raw'] === true) throw invalid('raw', 'must be false, since vendors apply the prompt template');
  if (isSet(body['template'])) throw invalid('template', 'must be removed, since vendors apply the prompt template');
  if (readArray(body['context']).length > 0)
    throw invalid('context', 'must be removed, since token ids differ between models; use /api/chat');
  const prompt = readString(body['prompt']) ?? '';
  const suffix = readString(body['suffix']) ?? '';
  const pictures = readArray(body['images']);
  if (prompt === '' && suffix === '' && pictures.length === 0)
    throw invalid('prompt', 'must not be empty, since the gateway does not load or unload models');
  const system = readString(body['system']) ?? '';
  const own: readonly ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  const turn: readonly ChatMessage[] =
    suffix === '' ? [{ role: 'user', content: withImages(prompt, pictures, 'images') }] : fillIn(prompt, suffix);
  if (suffix !== '' && pictures.length > 0) throw invalid('images', 'cannot be combined with `suffix`');
  return { messages: [...own, ...turn], places: [...own.map(() => 'system'), ...turn.map(() => 'prompt')] };
}

/** Call without a result so far. */
interface OpenCall {
  readonly id: string;
  readonly name: string;
}

function readMessages(body: OllamaBody): ReadMessages {
  const sent = readArray(body['messages']).map(readObject);
  if (sent.length === 0)
    throw invalid('messages', 'must not be empty, since the gateway does not load or unload models');
  let open: OpenCall[] = [];
  const messages = sent.map((message, at): ChatMessage => {
    const place = `messages[${at}]`;
    const content = readString(message['content']) ?? '';
    const role = message['role'];
    if (role === 'tool') return { role, content, tool_call_id: takeCall(open, message, place) };
    const pictures = readArray(message['images']);
    if (role !== 'assistant') {
      const own = role === 'system' ? 'system' : 'user';
      return { role: own, content: withImages(content, pictures, `${place}.images`) };
    }
    const calls = readArray(message['tool_calls']).map((call, nth) => readCall(readObject(call), `${at}_${nth}`));
    open = calls.map(({ id, function: { name } }) => ({ id, name }));
    const thinking = readString(message['thinking']) ?? '';
    return {
      role,
      content: content === '' && calls.length > 0 ? null : content,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
  });
  return { messages, places: sent.map((_, at) => `messages[${at}]`) };
}

/** Ollama's clients need no ids: a call without one gets an id from its position. */
function readCall({ id, function: called }: JsonObject, place: string): ToolCall {
  const { name, arguments: values } = readObject(called);
  return {
    id: readString(id) || `call_${place}`,
    type: 'function',
    function: { name: String(name), arguments: writeJson(values ?? {}) },
  };
}

/** Finds the call for a result: by id, else by name, else the first without a result. */
function takeCall(open: OpenCall[], message: JsonObject, place: string): string {
  const { tool_call_id: id, tool_name: name } = message;
  const found =
    open.find((call) => isSet(id) && call.id === id) ??
    open.find((call) => isSet(name) && call.name === name) ??
    open.find(() => !isSet(id) && !isSet(name));
  if (!found) throw invalid(place, 'must match a call in `tool_calls` of the preceding assistant message');
  open.splice(open.indexOf(found), 1);
  return found.id;
}

/** Prefix of the base64 of each image type that models accept. */
const MEDIA_TYPES: readonly (readonly [begins: string, type: string])[] = Object.freeze([
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
]);

function withImages(text: string, pictures: readonly unknown[], place: string): NonNullable<ChatMessage['content']> {
  if (pictures.length === 0) return text;
  const parts = pictures.map((picture, at) => {
    const data = String(picture);
    const type = MEDIA_TYPES.find(([begins]) => data.startsWith(begins))?.[1];
    if (type === undefined) throw invalid(`${place}[${at}]`, 'must be a PNG, JPEG, GIF or WebP image in base64');
    return { type: 'image_url', image_url: { url: `data:${type};base64,${data}` } };
  });
  return text === '' ? parts : [{ type: 'text', text }, ...parts];
}

function readOptions(options: JsonObject): { readonly sent: JsonObject; readonly left: readonly string[] } {
  const { num_predict: limit, ...others } = options;
  const set = Object.entries(others).filter(([, value]) => value !== undefined && value !== null);
  return {
    sent: {
      // A negative value means no limit, or up to the end of the context: the behaviour of a chat without a limit.
      ...(typeof limit === 'number' && limit > 0 && { max_completion_tokens: limit }),
      ...Object.fromEntries(set.flatMap(([name, value]) => (OPTIONS[name] ? [[OPTIONS[name], value]] : []))),
    },
    left: set.flatMap(([name]) => (OPTIONS[name] ? [] : [name])),
  };
}

function readFormat(format: unknown): Pick<ChatRequest, 'response_format'> {
  if (!isSet(format)) return {};
  if (format === 'json') return { response_format: { type: 'json_object' } };
  if (!isObject(format)) throw invalid('format', 'must be `json` or a JSON Schema');
  return { response_format: { type: 'json_schema', json_schema: { name: 'response', schema: format } } };
}

const LEVELS: readonly unknown[] = Object.freeze(['low', 'medium', 'high', 'max']);

function readThink(think: unknown): Pick<ChatRequest, 'reasoning_effort'> {
  if (!isSet(think)) return {};
  if (typeof think === 'boolean') return { reasoning_effort: think ? 'medium' : 'none' };
  if (!LEVELS.includes(think)) throw invalid('think', 'must be true, false, `low`, `medium`, `high` or `max`');
  return { reasoning_effort: String(think) };
}

const PLACES: Readonly<Record<string, string>> = Object.freeze({
  max_completion_tokens: 'options.num_predict',
  reasoning_effort: 'think',
  ...Object.fromEntries(Object.entries(OPTIONS).map(([own, canonical]) => [canonical, `options.${own}`])),
});

function placeOf(param: string, places: readonly string[]): string {
  const [, at, rest = ''] = /^messages\[(\d+)\](.*)$/.exec(param) ?? [];
  if (at !== undefined) {
    const place = places[Number(at)] ?? 'messages';
    if (!place.startsWith('messages')) return place;
    const image = /^\.content\[(\d+)\]/.exec(rest);
    return image ? `${place}.images` : place + rest;
  }
  if (param.startsWith('response_format')) return 'format';
  const [name = ''] = param.split(/[.[]/, 1);
  return PLACES[name] ?? param;
}
