import {
  CHAT_REQUEST,
  CHAT_RESPONSE,
  type ChatChunk,
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  type ContentPart,
  type DialectContext,
  type DialectDefinition,
  type DialectNeed,
  type DialectRequest,
  definePlugin,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readString,
} from '../../../core/index.ts';
import { readRelayDetails } from '../../providers/kit/index.ts';
import { modelNamesSchema, readModelNames } from '../kit/model-names.ts';

/**
 * What goes from one format's dialect to its codecs without anybody between them reading it. From here it would go past the checks
 * of that format (tools that a vendor runs, files in the operator's account): it is left out and told.
 */
const INNER = 'dialect_fields';

/** What reading a request finds beside it. */
interface Findings {
  readonly dropped: Set<string>;
  readonly needs: DialectNeed[];
}

/** A request of this format: the canonical one but for what clients call otherwise and what they may not say. */
function readRequest(body: ChatRequest): Omit<DialectRequest, 'provider'> {
  const findings: Findings = { dropped: new Set(), needs: [] };
  const { dropped, needs } = findings;
  const messages = mapSame(body.messages, (message, at) => readMessage(message, `messages[${at}]`, findings));
  const tools = body.tools ? mapOwn(body.tools, findings) : body.tools;
  for (const [index, tool] of readArray(tools).entries()) needTool(tool, `tools[${index}]`, needs);
  const own = withoutInner(body, findings);
  const isSame = own === body && messages === body.messages && tools === body.tools;
  const request = isSame ? body : { ...own, messages, ...(tools !== undefined && { tools }) };
  return { request, ...(dropped.size > 0 && { dropped: [...dropped] }), ...(needs.length > 0 && { needs }) };
}

function readMessage(message: ChatMessage, at: string, findings: Findings): ChatMessage {
  const read = readReasoning(withoutInner(message, findings));
  const { content, tool_calls: calls } = read;
  const readContent = typeof content === 'object' && content !== null ? readParts(content, at, findings) : content;
  const readCalls = calls ? mapOwn(calls, findings) : calls;
  if (readContent === content && readCalls === calls) return read;
  return {
    ...read,
    ...(readContent !== undefined && { content: readContent }),
    ...(readCalls !== undefined && { tool_calls: readCalls }),
  };
}

function readParts(parts: readonly ContentPart[], at: string, findings: Findings): readonly ContentPart[] {
  return mapSame(mapOwn(parts, findings), (part, index) => readPart(part, `${at}.content[${index}]`, findings.needs));
}

/** The items that this format may say, without what is for another one. */
function mapOwn<T extends object>(items: readonly T[], findings: Findings): readonly T[] {
  const own = items.filter((item) => !('type' in item) || item.type !== 'opaque');
  if (own.length < items.length) findings.dropped.add('opaque');
  return mapSame(own.length < items.length ? own : items, (item) => withoutInner(item, findings));
}

function withoutInner<T extends object>(value: T, { dropped }: Findings): T {
  if (!(INNER in value)) return value;
  dropped.add(INNER);
  const { [INNER]: _inner, ...rest } = value;
  return rest as T;
}

/** The list with each item mapped; the same list where every item stays the same. */
function mapSame<T>(items: readonly T[], map: (item: T, index: number) => T): readonly T[] {
  const mapped = items.map(map);
  return mapped.every((item, index) => item === items[index]) ? items : mapped;
}

/** A tool that is not the caller's own runs with the operator's account at the vendor. */
function needTool(tool: unknown, at: string, needs: DialectNeed[]): void {
  const type = isObject(tool) ? readString(tool['type']) : undefined;
  if (type === undefined || type === 'function' || type === 'custom') return;
  needs.push({ kind: 'server tool', name: type, param: `${at}.type` });
}

/** A document: LiteLLM's clients put an address where OpenAI's put the id of a file in the operator's account. */
function readPart(part: ContentPart, at: string, needs: DialectNeed[]): ContentPart {
  const file = part.type === 'file' ? part['file'] : undefined;
  if (!isObject(file)) return part;
  const id = readString(file['file_id']);
  if (id === undefined) return part;
  if (!/^(?:https?|data):/i.test(id)) {
    needs.push({ kind: 'reference', name: 'file_id', param: `${at}.file.file_id` });
    return part;
  }
  const { file_id: _id, ...rest } = file;
  return { ...part, file: { ...rest, [/^data:/i.test(id) ? 'file_data' : 'file_url']: id } };
}

/** A message whose reasoning is in the canonical form, in whichever a client has kept it. */
function readReasoning(message: ChatMessage): ChatMessage {
  const { thinking_blocks: blocks, ...rest } = message;
  const { reasoning_details: details } = message;
  if (blocks === undefined && !readArray(details).some(isRelayed)) return message;
  const own = readArray(details).flatMap((detail) =>
    isRelayed(detail) ? readRelayDetails([detail]) : asDetail(detail),
  );
  const all = own.length > 0 ? own : readThinkingBlocks(blocks);
  const { reasoning_details: _details, ...others } = rest;
  return all.length > 0 ? { ...rest, reasoning_details: all } : others;
}

function isRelayed(detail: unknown): detail is JsonObject {
  return isObject(detail) && !('kind' in detail);
}

function asDetail(detail: unknown): readonly ReasoningDetail[] {
  return isDetail(detail) ? [detail] : [];
}

function isDetail(value: unknown): value is ReasoningDetail {
  return isObject(value) && typeof value['kind'] === 'string' && typeof value['format'] === 'string';
}

const DESCRIPTION =
  'A stream of server-sent events when `stream` is true, whatever `Accept` says. Fields beyond the listed ones are carried to the provider where it has them.';

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** OpenAI's chat completions: the canonical shape itself, on both surfaces. */
const chat: DialectDefinition<ChatRequest> = {
  name: 'chat',
  request: CHAT_REQUEST,
  response: CHAT_RESPONSE,
  routes: [
    {
      path: '/api/core/:provider/chat/completions',
      summary: 'Chat completion by one provider',
      description: DESCRIPTION,
    },
    {
      path: '/v1/chat/completions',
      summary: 'Chat completion; the model is `provider/model` or an alias',
      description: DESCRIPTION,
    },
  ],
  keepAlive: ': keep-alive\n\n',
  read({ body, params: { provider } }) {
    return { ...readRequest(body), ...(provider !== undefined && { provider }) };
  },
  write: (response, { seal }) => writeResponse(response, seal),
  stream({ request: { stream_options }, seal }) {
    // The final usage chunk, which has no choices, is for those who ask for it.
    const isWanted = ({ usage }: ChatChunk): boolean => !usage || stream_options?.include_usage === true;
    return {
      push: (chunk) => (isWanted(chunk) ? frame(writeChunk(chunk, seal)) : ''),
      end: () => 'data: [DONE]\n\n',
      fail: (error, requestId) => frame(error.toBody(requestId)),
    };
  },
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

export default definePlugin({
  name: 'chat',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      models: modelNamesSchema('gpt-5'),
    },
  },
  setup(api, config) {
    api.dialect({ ...chat, aliases: readModelNames(config) });
  },
});

type Seal = DialectContext['seal'];

/** What a message or delta may hold that this format's clients do not get as it is. */
interface Spoken {
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly order?: readonly string[];
  readonly opaque?: unknown;
  readonly dialect_fields?: unknown;
}

/** A response as this format's clients get it; the same one where nothing has to change. */
function writeResponse(response: ChatResponse, seal: Seal): ChatResponse {
  const { choices } = response;
  if (!('dialect_fields' in response) && choices.every(({ message }) => isPlain(message))) return response;
  const { dialect_fields: _fields, ...rest } = response;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, message: writeSpoken(choice.message, seal) })),
  };
}

/** A chunk as this format's clients get it; the same one where nothing has to change. */
function writeChunk(chunk: ChatChunk, seal: Seal): ChatChunk {
  const { choices } = chunk;
  if (!('dialect_fields' in chunk) && choices.every(({ delta }) => isPlain(delta))) return chunk;
  const { dialect_fields: _fields, ...rest } = chunk;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, delta: writeSpoken(choice.delta, seal) })),
  };
}

function isPlain(spoken: Spoken): boolean {
  return !('reasoning_details' in spoken || 'opaque' in spoken || 'dialect_fields' in spoken);
}

/**
 * What is said: details of reasoning with what a vendor encrypted sealed, and Anthropic's as `thinking_blocks` too. Blocks that only another format
 * knows stay behind: they could not be taken back from a client of this one.
 */
function writeSpoken<T extends Spoken>(spoken: T, seal: Seal): T {
  const { opaque: _opaque, dialect_fields: _inner, reasoning_details: details = [], order, ...rest } = spoken;
  const written = details.flatMap((detail) => sealDetail(detail, seal));
  const blocks = writeThinkingBlocks(written);
  const known = order?.filter((entry) => !entry.startsWith('opaque:'));
  return {
    ...(rest as T),
    ...(known && { order: known }),
    ...(written.length > 0 && { reasoning_details: written }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
  };
}

/** Anthropic's go out byte for byte, as its own clients have them. What cannot be sealed now is left out. */
function sealDetail(detail: ReasoningDetail, seal: Seal): readonly ReasoningDetail[] {
  const { data, format } = detail;
  if (data === undefined || format === 'anthropic') return [detail];
  try {
    return [{ ...detail, data: seal(data) }];
  } catch {
    return [];
  }
}

/** `thinking_blocks` of LiteLLM's clients, which are Anthropic's blocks, as details of reasoning. An unsigned one is nobody's. */
function readThinkingBlocks(value: unknown): readonly ReasoningDetail[] {
  return readArray(value).flatMap((block): readonly ReasoningDetail[] => {
    if (!isObject(block)) return [];
    const data = readString(block['data']);
    if (block['type'] === 'redacted_thinking')
      return data === undefined ? [] : [{ kind: 'encrypted', data, format: 'anthropic' }];
    const text = typeof block['thinking'] === 'string' ? block['thinking'] : '';
    const signature = readString(block['signature']);
    if (block['type'] !== 'thinking' || (text === '' && signature === undefined)) return [];
    return [
      { kind: 'text', text, ...(signature === undefined ? { format: 'none' } : { signature, format: 'anthropic' }) },
    ];
  });
}

/** The details of Anthropic's format as `thinking_blocks`. */
function writeThinkingBlocks(details: readonly ReasoningDetail[]): readonly JsonObject[] {
  return details.flatMap(({ kind, text = '', data, signature, format }): readonly JsonObject[] => {
    if (format !== 'anthropic') return [];
    if (kind === 'encrypted') return data === undefined ? [] : [{ type: 'redacted_thinking', data }];
    return signature === undefined ? [] : [{ type: 'thinking', thinking: text, signature }];
  });
}
