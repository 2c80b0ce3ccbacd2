import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  type DialectInput,
  type DialectNeed,
  type DialectRequest,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type Tool,
  type ToolCall,
  writeJson,
} from '../../../contract/index.ts';
import { knownNames, tellUnknown } from '../kit/index.ts';
import { cacheControlOf, isUsualOrder, opaqueOf } from './tables.ts';
import { isThinkingBlock, readEffort, readThinking } from './thinking.ts';
import type { Block, MessagesMessage, MessagesRequest, MessagesTool } from './types.ts';

/** State of reading a request. */
interface Reading {
  readonly needs: DialectNeed[];
  /** Paths of the caller's body by canonical path. */
  readonly places: Map<string, string>;
}

/** Suffixes of known paths, by their canonical form. */
const BELOW: Readonly<Record<string, string>> = Object.freeze({
  '.image_url': '.source',
  '.image_url.url': '.source',
  '.file': '.source',
  '.file.file_data': '.source',
  '.file.file_url': '.source',
  '.file.filename': '.title',
  '.function': '',
  '.function.name': '.name',
  '.function.description': '.description',
  '.function.parameters': '.input_schema',
  '.function.strict': '.strict',
  '.function.arguments': '.input',
  '.tool_call_id': '.tool_use_id',
});

/** Request fields with another name in this format. */
const RENAMED: Readonly<Record<string, string>> = Object.freeze({
  max_completion_tokens: 'max_tokens',
  stop: 'stop_sequences',
  user: 'metadata.user_id',
  reasoning_effort: 'thinking',
  response_format: 'output_config.format',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  'dialect_fields.messages': '',
});

/** Path in the caller's body for a canonical path; the same path if unknown. */
function callersPlace(places: ReadonlyMap<string, string>, param: string): string {
  let head = param;
  while (head !== '') {
    const known = places.get(head) ?? (Object.hasOwn(RENAMED, head) ? RENAMED[head] : undefined);
    if (known !== undefined) {
      const tail = param.slice(head.length);
      return `${known}${BELOW[tail] ?? tail}`.replace(/^\./, '');
    }
    const shorter = head.replace(/(?:\.?[^.[\]]+|\[\d+\])$/, '');
    if (shorter === head) break;
    head = shorter;
  }
  return param;
}

/** Reads a request of this format into the canonical form. */
export function readMessages({ body: sent, headers, route }: DialectInput<MessagesRequest>): DialectRequest {
  const body = route.action === 'count' ? { ...sent, stream: false } : sent;
  const reading: Reading = { needs: [], places: new Map() };
  const messages = readTurns(body, reading);
  const tools = readTools(body, reading);
  readReferences(body, reading);
  const dropped = [...lostFields(body)];
  tellNames(body, dropped);
  return {
    request: { model: body.model, messages, ...readFields(body, headers), ...tools },
    ...(dropped.length > 0 && { dropped }),
    ...(reading.needs.length > 0 && { needs: reading.needs }),
    place: (param) => callersPlace(reading.places, param),
  };
}

/** Names of this format below the top level. Tools and calls keep theirs for codecs of this format. */
const NAMES = knownNames({
  message: 'role content',
  text: 'type text citations cache_control',
  image: 'type source cache_control',
  document: 'type source title context citations cache_control',
  tool_result: 'type tool_use_id content is_error cache_control',
  tool_choice: 'type name disable_parallel_tool_use',
});

function tellNames({ system, messages, tool_choice: choice }: MessagesRequest, dropped: string[]): void {
  const tellBlocks = (blocks: unknown, at: string): void => {
    if (!Array.isArray(blocks)) return;
    for (const block of blocks.filter(isBlock)) {
      tellUnknown(block, block.type, NAMES, at, dropped);
      if (block.type === 'tool_result') tellBlocks(block['content'], `${at}.content`);
    }
  };
  tellBlocks(system, 'system');
  for (const message of messages) {
    tellUnknown(message, 'message', NAMES, 'messages', dropped);
    tellBlocks(message.content, 'messages.content');
  }
  tellUnknown(choice, 'tool_choice', NAMES, 'tool_choice', dropped);
}

/** Tools that the caller runs, although only providers of this format know them. */
const CLIENT_TOOL = /^(?:bash|text_editor|memory)_\d+$/;

/** Tools and the tool choice. */
function readTools(
  { tools, tool_choice: choice }: MessagesRequest,
  reading: Reading,
): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'> {
  const read = (tools ?? []).map((tool, index) => readTool(tool, `tools[${index}]`, reading));
  return {
    ...(read.length > 0 && { tools: read }),
    ...readChoice(choice),
    ...(choice?.['disable_parallel_tool_use'] === true && { parallel_tool_calls: false }),
  };
}

function readTool(tool: MessagesTool, at: string, reading: Reading): Tool {
  const { type, name, description, input_schema: parameters, strict, cache_control: _control, ...rest } = tool;
  reading.places.set(at, at);
  const model = readString(tool['model']);
  if (model !== undefined) reading.needs.push({ kind: 'model', name: model, param: `${at}.model` });
  if (typeof type === 'string' && type !== 'custom') {
    reading.needs.push({ kind: CLIENT_TOOL.test(type) ? 'native' : 'server tool', name: type, param: `${at}.type` });
    // Tool that only codecs of this format can write.
    const opaque: JsonObject = opaqueOf(tool);
    return opaque as Tool;
  }
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(typeof description === 'string' && { description }),
      ...(parameters && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
    ...cacheControlOf(tool),
    ...(Object.keys(rest).length > 0 && { dialect_fields: { messages: rest } }),
  };
}

function readChoice(choice: MessagesRequest['tool_choice']): Pick<ChatRequest, 'tool_choice'> {
  const { type, name } = readObject(choice);
  if (type === 'tool') return { tool_choice: { type: 'function', function: { name: String(name) } } };
  if (type === 'any') return { tool_choice: 'required' };
  return type === 'auto' || type === 'none' ? { tool_choice: type } : {};
}

/** Fields that the canonical request expresses; all others go to `dialect_fields`. */
const SAID: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'temperature', 'top_p', 'stop_sequences', 'service_tier'],
  ...['tools', 'tool_choice', 'cache_control', 'metadata'],
]);

/** Fields of a request other than messages and tools. */
function readFields(body: MessagesRequest, headers: Readonly<Record<string, unknown>>): Partial<ChatRequest> {
  const { max_tokens, temperature, top_p, stop_sequences: stop, service_tier: tier, stream } = body;
  const user = readString(readObject(body.metadata)['user_id']);
  const effort = readEffort(body.thinking, body.output_config);
  const own = ownFields(body, headers);
  const format = readFormat(body);
  return {
    ...(typeof max_tokens === 'number' && { max_completion_tokens: max_tokens }),
    ...(stream === true && { stream }),
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof top_p === 'number' && { top_p }),
    ...(stop && stop.length > 0 && { stop }),
    ...(user !== undefined && { user }),
    ...(typeof tier === 'string' && { service_tier: tier === 'standard_only' ? 'default' : tier }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(format && { response_format: format }),
    ...cacheControlOf(body),
    ...(Object.keys(own).length > 0 && { dialect_fields: { messages: own } }),
  };
}

function readFormat({ output_config: config, output_format: old }: MessagesRequest): ChatRequest['response_format'] {
  const format = readObject(readObject(config)['format'] ?? old);
  const { type, schema } = format;
  if (type !== 'json_schema' || !isObject(schema)) return undefined;
  return { type, json_schema: { name: 'response', schema, strict: true } };
}

/** Fields that only a provider of this format understands. */
function ownFields(body: MessagesRequest, headers: Readonly<Record<string, unknown>>): JsonObject {
  const unsaid = Object.entries(body).filter(
    ([name, value]) => !SAID.has(name) && value !== null && value !== undefined && name !== '__proto__',
  );
  const { user_id: _user, ...metadata } = readObject(body.metadata);
  const betas = [headers['anthropic-beta']]
    .flat()
    .flatMap((value) => (typeof value === 'string' ? value.split(',') : []))
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return {
    ...Object.fromEntries(unsaid),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(betas.length > 0 && { betas }),
  };
}

/** Fields, in addition to {@link SAID}, that other canonical fields or needs express. */
const SAID_OTHERWISE: ReadonlySet<string> = new Set([
  ...['thinking', 'output_config', 'output_format', 'container', 'mcp_servers', 'fallbacks'],
  ...['thread', 'user_profile_id', 'workspace_id'],
]);

/** Fields that refer to resources of the operator's account. */
const REFERENCES = Object.freeze(['container', 'thread', 'user_profile_id', 'workspace_id']);

/** Fields that only a provider of this format understands. */
function lostFields(body: MessagesRequest): readonly string[] {
  const { metadata: _metadata, ...others } = body;
  return Object.keys(ownFields(others, {})).filter((name) => !SAID_OTHERWISE.has(name));
}

/** Adds needs for resources of the operator's account and for other models named in a request. */
function readReferences(body: MessagesRequest, { needs }: Reading): void {
  const { mcp_servers: servers, fallbacks } = body;
  for (const name of REFERENCES)
    if ((body[name] ?? null) !== null) needs.push({ kind: 'reference', name, param: name });
  if (readArray(servers).length > 0) needs.push({ kind: 'reference', name: 'mcp_servers', param: 'mcp_servers' });
  for (const [index, one] of readArray(fallbacks).entries()) {
    const model = readString(isObject(one) ? one['model'] : one);
    if (model !== undefined) needs.push({ kind: 'model', name: model, param: `fallbacks[${index}].model` });
  }
}

/** Attribution header of Claude Code. It changes with every call, so prompt caches would never hit. */
const ATTRIBUTION = /^x-anthropic-billing-header:[^\n]*\n*/;

/** Reads system texts and messages as canonical messages. A turn with tool results becomes several messages. */
function readTurns({ system, messages }: MessagesRequest, reading: Reading): readonly ChatMessage[] {
  const read: ChatMessage[] = [];
  const add = (message: ChatMessage, at: string, contentAt = `${at}.content`): string => {
    const place = `messages[${read.length}]`;
    reading.places.set(place, at).set(`${place}.content`, contentAt);
    read.push(message);
    return place;
  };
  const instructions = readSystem(system);
  if (instructions) {
    const place = add({ role: 'system', content: instructions.content }, 'system', 'system');
    for (const [index, from] of instructions.from.entries())
      reading.places.set(`${place}.content[${index}]`, `system[${from}]`);
  }
  messages.forEach((message, index) => {
    const at = `messages[${index}]`;
    if (typeof message.content === 'string') add({ role: roleOf(message), content: message.content }, at);
    else if (message.role === 'assistant') readAssistant(message.content, at, add, reading);
    else readUser(roleOf(message), message.content, at, add, reading);
  });
  return read;
}

type Add = (message: ChatMessage, at: string, contentAt?: string) => string;

function roleOf({ role }: MessagesMessage): 'user' | 'assistant' | 'system' {
  return role === 'assistant' || role === 'system' ? role : 'user';
}

/** System texts without the attribution, with the indexes of their blocks; undefined if nothing remains. */
function readSystem(
  system: MessagesRequest['system'],
): { readonly content: string | readonly ContentPart[]; readonly from: readonly number[] } | undefined {
  if (typeof system === 'string') {
    const content = system.replace(ATTRIBUTION, '');
    return content === '' ? undefined : { content, from: [] };
  }
  const texts = (system ?? []).flatMap((block, index) => {
    const text = typeof block['text'] === 'string' ? block['text'] : '';
    const kept = index === 0 ? text.replace(ATTRIBUTION, '') : text;
    return kept === '' ? [] : [{ part: { type: 'text', text: kept, ...cacheControlOf(block) } as const, index }];
  });
  return texts.length === 0
    ? undefined
    : { content: texts.map(({ part }) => part), from: texts.map(({ index }) => index) };
}

/** Reads tool results first, one message each, then the rest of the user's turn as one more. */
function readUser(
  role: 'user' | 'assistant' | 'system',
  blocks: readonly Block[],
  at: string,
  add: Add,
  reading: Reading,
): void {
  const rest: { readonly block: Block; readonly at: string }[] = [];
  blocks.forEach((block, index) => {
    const place = `${at}.content[${index}]`;
    if (block.type === 'tool_result' && role === 'user') readResult(block, place, add, reading);
    else rest.push({ block, at: place });
  });
  if (rest.length === 0 && blocks.length > 0) return;
  const place = add({ role, content: rest.map((one) => readPart(one.block, one.at, reading)) }, at);
  for (const [index, one] of rest.entries()) reading.places.set(`${place}.content[${index}]`, one.at);
}

function readResult(block: Block, at: string, add: Add, reading: Reading): void {
  const { content, is_error: failed, tool_use_id: id } = block;
  const blocks = Array.isArray(content) ? content.filter(isBlock) : undefined;
  const parts = blocks?.map((part, index) => readPart(part, `${at}.content[${index}]`, reading));
  const place = add(
    {
      role: 'tool',
      tool_call_id: String(id),
      content: parts ?? (typeof content === 'string' ? content : ''),
      ...(typeof failed === 'boolean' && { is_error: failed }),
      ...cacheControlOf(block),
    },
    at,
  );
  for (const index of (parts ?? []).keys()) reading.places.set(`${place}.content[${index}]`, `${at}.content[${index}]`);
}

function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value['type'] === 'string';
}

/** Reads an assistant message with blocks by kind; `order` records their sequence if it is not the default. */
function readAssistant(blocks: readonly Block[], at: string, add: Add, reading: Reading): void {
  const parts: ContentPart[] = [];
  const details: ReasoningDetail[] = [];
  const calls: ToolCall[] = [];
  const order: string[] = [];
  const from = new Map<string, string>();
  blocks.forEach((block, index) => {
    const place = `${at}.content[${index}]`;
    if (isThinkingBlock(block)) {
      order.push(`reasoning:${details.push(readThinking(block)) - 1}`);
    } else if (block.type === 'tool_use') {
      from.set(`tool_calls[${calls.length}]`, place);
      order.push(`tool:${calls.push(readCall(block)) - 1}`);
    } else {
      from.set(`content[${parts.length}]`, place);
      const part = block.type === 'text' ? readPart(block, place, reading) : readOpaque(block, place, reading);
      order.push(`content:${parts.push(part) - 1}`);
    }
  });
  const reasoning = details.map(({ text }) => text ?? '').join('');
  const message: ChatMessage = {
    role: 'assistant',
    content: parts.length > 0 ? parts : calls.length > 0 ? null : '',
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(!isUsualOrder(order) && { order }),
  };
  const place = add(message, at);
  for (const [part, callers] of from) reading.places.set(`${place}.${part}`, callers);
}

function readCall(block: Block): ToolCall {
  const { type: _type, id, name, input, cache_control: _control, ...rest } = block;
  return {
    id: String(id),
    type: 'function',
    function: { name: String(name), arguments: writeJson(input ?? {}) },
    ...cacheControlOf(block),
    ...(Object.keys(rest).length > 0 && { dialect_fields: { messages: rest } }),
  };
}

/** Maximum text length of a vendor-specific block for other providers. */
const MAX_TEXT = 4000;

/** Blocks that other providers receive as text: results of the provider's tools, and summaries. */
const DESCRIBED = /_tool_result$|^(?:server_tool_use|mcp_tool_use|search_result|compaction|tool_reference)$/;

/** Fields that only their provider can read. */
const UNREADABLE: ReadonlySet<string> = new Set('encrypted_content encrypted_index signature cache_control'.split(' '));

/** Reads a block of user content or of a tool result as a part of a message. */
function readPart(block: Block, at: string, reading: Reading): ContentPart {
  const cached = cacheControlOf(block);
  const source = isObject(block['source']) ? block['source'] : {};
  if (block.type === 'text') return { ...readText(block), ...cached };
  if (block.type === 'image') {
    const url = sourceUrl(source);
    if (url !== undefined) return { type: 'image_url', image_url: { url }, ...cached };
  }
  if (block.type === 'document') {
    const part = readDocument(block, source);
    if (part) return { ...part, ...cached };
  }
  return readOpaque(block, at, reading);
}

/** Reads a text; its citations are kept for codecs and dialects of this format. */
function readText(block: Block): ContentPart {
  const citations = readArray(block['citations']);
  const annotations = citations.filter(isObject).map(opaqueOf);
  return { type: 'text', text: String(block['text']), ...(annotations.length > 0 && { annotations }) };
}

function sourceUrl({ type, media_type: media, data, url }: Readonly<Record<string, unknown>>): string | undefined {
  if (type === 'base64') return `data:${String(media)};base64,${String(data)}`;
  return type === 'url' ? readString(url) : undefined;
}

function readDocument(block: Block, source: Readonly<Record<string, unknown>>): ContentPart | undefined {
  const url = sourceUrl(source);
  const text = readString(source['type'] === 'content' ? joinedText(source['content']) : source['data']);
  const isText = source['type'] === 'text' || source['type'] === 'content';
  if (url === undefined && (!isText || text === undefined)) return undefined;
  const data = isText ? `data:text/plain;base64,${Buffer.from(text ?? '').toString('base64')}` : url;
  const filename = readString(block['title']);
  const context = readString(block['context']);
  const { citations } = block;
  return {
    type: 'file',
    file: {
      ...(filename !== undefined && { filename }),
      ...(source['type'] === 'url' ? { file_url: data } : { file_data: data }),
    },
    ...(context !== undefined && { context }),
    ...(isObject(citations) && { citations }),
    // Citations refer to its parts; other formats have one text.
    ...(source['type'] === 'content' && { dialect_fields: { messages: { source } } }),
  };
}

/** Text of a document given in parts; undefined if it has other parts. */
function joinedText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  const texts = readArray(content).map((part) =>
    isObject(part) && part['type'] === 'text' ? part['text'] : undefined,
  );
  return texts.every((text) => typeof text === 'string') ? texts.join('\n\n') : undefined;
}

/** Wraps a block that only providers of this format understand, with its text for other providers. */
function readOpaque(block: Block, at: string, reading: Reading): ContentPart {
  const { source } = block;
  const isFile = isObject(source) && source['type'] === 'file';
  if (isFile) reading.needs.push({ kind: 'reference', name: 'file', param: `${at}.source` });
  if (typeof block['file_id'] === 'string')
    reading.needs.push({ kind: 'reference', name: block.type, param: `${at}.file_id` });
  const isDescribed = DESCRIBED.test(block.type);
  if (!isDescribed) reading.needs.push({ kind: 'native', name: block.type, param: at });
  return { ...opaqueOf(block), ...(isDescribed && { text: describeBlock(block) }) };
}

function describeBlock(block: Block): string {
  const { type, content } = block;
  if (type === 'compaction' && typeof content === 'string') return content.slice(0, MAX_TEXT);
  const json = JSON.stringify(block, (field, value: unknown) => (UNREADABLE.has(field) ? undefined : value));
  return `[${type}] ${json}`.slice(0, MAX_TEXT);
}
