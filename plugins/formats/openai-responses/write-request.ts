import {
  type ChatMessage,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import { FORMAT, INCLUDE_ENCRYPTED, isSet, SAME_FIELDS, usualOrder } from './tables.ts';
import type { Item, ResponsesRequest } from './types.ts';

/** Chat request whose fields already follow the vendor's rules: names, ranges, roles and documents as at OpenAI. */
export interface ChatFields {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly [field: string]: unknown;
}

/** Request options in addition to the fields of chat. */
export interface WritingRules {
  readonly stream: boolean;
  readonly streamOptions?: Readonly<Record<string, unknown>> | undefined;
  /** Reasoning summary for the caller, such as `auto`; default: none requested. */
  readonly summary?: string | undefined;
}

/** Chat fields with the same name in this API. */
const SAME: readonly string[] = [...SAME_FIELDS, 'max_output_tokens', 'moderation'];

/**
 * Writes a chat request for OpenAI's Responses API. The vendor stores nothing: reasoning arrives encrypted, and
 * earlier reasoning is sent back with the request. Also returns the names of dropped fields.
 * https://developers.openai.com/api/reference/resources/responses
 */
export function writeResponsesRequest(
  chat: ChatFields,
  { stream, streamOptions, summary }: WritingRules,
): { readonly body: ResponsesRequest; readonly dropped: readonly string[] } {
  const { model, messages } = chat;
  const dropped = new Set<string>();
  const customCalls = customCallsOf(messages);
  const input = messages.flatMap((message) => writeItems(message, { customCalls, withReasoning: true, dropped }));
  const same = SAME.flatMap((name) => (isSet(chat[name]) ? [[name, chat[name]] as const] : []));
  const tools = toolsOf(chat['tools'], dropped);
  const choice = choiceOf(chat['tool_choice']);
  const text = textOf(chat);
  const effort = chat['reasoning_effort'];
  const reasoning = {
    ...(isSet(effort) && { effort }),
    ...(summary !== undefined && effort !== 'none' && { summary }),
  };
  const body: ResponsesRequest = {
    model,
    input,
    ...Object.fromEntries(same),
    ...(tools.length > 0 && { tools, ...(isSet(choice) && { tool_choice: choice }) }),
    ...(Object.keys(text).length > 0 && { text }),
    ...(Object.keys(reasoning).length > 0 && { reasoning }),
    include: [INCLUDE_ENCRYPTED],
    store: false,
    ...(stream && { stream, ...(streamOptions && { stream_options: streamOptions }) }),
  };
  return { body, dropped: [...dropped] };
}

/** Ids of custom tool calls: their results are items of another type. */
function customCallsOf(messages: readonly ChatMessage[]): ReadonlySet<string> {
  const calls = messages.flatMap((message) => readArray(message.tool_calls).filter(isObject));
  return new Set(calls.flatMap(({ type, id }) => (type === 'custom' && typeof id === 'string' ? [id] : [])));
}

/** Converts a tool that the caller runs; undefined for any other, which the vendor would run. */
export function writeTool(tool: unknown): Item | undefined {
  const { type, function: called, custom } = readObject(tool);
  if (type === 'custom') {
    const { format, ...rest } = readObject(custom);
    return { type, ...rest, ...(isSet(format) && { format: formatOf(format) }) };
  }
  if (type !== 'function') return undefined;
  const { name, description, parameters, strict } = readObject(called);
  return {
    type,
    name,
    ...(isSet(description) && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    // Strict is the default in this API, but not in chat.
    strict: strict ?? false,
  };
}

/** Format of a custom tool: chat wraps a grammar's fields in an object. */
function formatOf(format: unknown): unknown {
  const { type, grammar } = readObject(format);
  return type === 'grammar' && isObject(grammar) ? { type, ...grammar } : format;
}

function toolsOf(tools: unknown, dropped: Set<string>): readonly Item[] {
  return readArray(tools).flatMap((tool): readonly Item[] => {
    const written = writeTool(tool);
    if (written) return [written];
    dropped.add(`tools.${readString(readObject(tool)['type']) ?? 'unknown'}`);
    return [];
  });
}

/** Tool choice by name: chat wraps each name in an object of its type. */
function choiceOf(choice: unknown): unknown {
  if (!isObject(choice)) return choice;
  const { type } = choice;
  if (type === 'allowed_tools') {
    const { mode, tools } = readObject(choice['allowed_tools']);
    return { type, mode, tools: readArray(tools).map(choiceOf) };
  }
  const named = typeof type === 'string' ? choice[type] : undefined;
  return isObject(named) ? { type, ...named } : choice;
}

function textOf({ response_format: format, verbosity }: ChatFields): JsonObject {
  const { type, json_schema: schema } = readObject(format);
  const written = type === 'json_schema' ? { type, schema: {}, ...readObject(schema) } : format;
  return { ...(isSet(format) && { format: written }), ...(isSet(verbosity) && { verbosity }) };
}

export interface ItemRules {
  readonly customCalls?: ReadonlySet<string>;
  /** True to include opened reasoning that this format's vendor encrypted; default: false. */
  readonly withReasoning?: boolean;
  /** Collects the names of dropped fields. */
  readonly dropped?: Set<string>;
}

/** Converts a canonical message to input items. */
export function writeItems(message: ChatMessage, rules: ItemRules = {}): readonly Item[] {
  const { role, content, tool_call_id: id = '', name } = message;
  if (role === 'assistant') return assistantItems(message, rules);
  const parts = partsOf(content, 'input_text');
  if (role === 'tool' || role === 'function') {
    const type = rules.customCalls?.has(id) ? 'custom_tool_call_output' : 'function_call_output';
    const output = typeof content === 'string' ? content : parts.length > 0 ? parts : '';
    return [{ type, call_id: id, output }];
  }
  if (isSet(name)) rules.dropped?.add('name');
  return parts.length > 0 ? [{ type: 'message', role, content: parts }] : [];
}

/** Items of an assistant message, in original order if known: reasoning precedes its result. */
function assistantItems(message: ChatMessage, { withReasoning = false, dropped }: ItemRules): readonly Item[] {
  const { content, refusal, tool_calls: calls = [], reasoning_details, dialect_fields: fields } = message;
  const parts = partsOf(content, 'output_text');
  const details = reasoning_details ?? [];
  const phase = fields?.[FORMAT]?.['phase'];
  const items: Item[] = [];
  let said: Item[] = [];
  let thought: ReasoningDetail[] = [];
  const endMessage = (): void => {
    if (said.length > 0)
      items.push({ type: 'message', role: 'assistant', content: said, ...(isSet(phase) && { phase }) });
    said = [];
  };
  const endThought = (): void => {
    const item = withReasoning ? reasoningItem(thought) : undefined;
    if (item) items.push(item);
    thought = [];
  };
  for (const place of orderOf(message, parts.length, calls.length, details.length)) {
    const [kind, at] = place.split(':');
    const detail = kind === 'reasoning' ? details[Number(at)] : undefined;
    if (kind !== 'content') endMessage();
    if (!detail || detail.id !== thought.at(-1)?.id) endThought();
    if (detail) thought.push(detail);
    else if (kind === 'content') said.push(...parts.slice(Number(at), Number(at) + 1));
    else items.push(...calls.slice(Number(at), Number(at) + 1).map(callItem));
  }
  if (refusal) said.push({ type: 'refusal', refusal });
  endMessage();
  endThought();
  // The vendor rejects reasoning without a following item.
  while (items.at(-1)?.['type'] === 'reasoning') items.pop();
  const sent = items.filter(({ type }) => type === 'reasoning').length;
  const wanted = new Set(details.filter(isBeyondText).map((detail) => detail.id ?? detail)).size;
  if (withReasoning && sent < wanted) dropped?.add('reasoning');
  return items;
}

/** Returns true if a detail contains more than the text of a thought. */
function isBeyondText({ data, signature }: ReasoningDetail): boolean {
  return data !== undefined || signature !== undefined;
}

/** Order of the message if it names every part once; otherwise reasoning, content, calls. */
function orderOf({ order }: ChatMessage, parts: number, calls: number, details: number): readonly string[] {
  const usual = usualOrder(details, parts, calls);
  const isSame = order?.length === usual.length && usual.every((place) => order.includes(place));
  return isSame ? order : usual;
}

/**
 * Creates a reasoning item from its details. Without encrypted content, no item is created: the vendor would look for an
 * item that it was asked not to store. It has no id for the same reason.
 */
function reasoningItem(details: readonly ReasoningDetail[]): Item | undefined {
  const own = details.filter(({ format }) => format === FORMAT);
  const data = own.findLast((detail) => detail.data !== undefined)?.data;
  if (data === undefined) return undefined;
  const summary = own.flatMap(({ text }) => (text === undefined ? [] : [{ type: 'summary_text', text }]));
  return { type: 'reasoning', summary, encrypted_content: data };
}

function callItem(call: object): Item {
  const { id: call_id, type, function: called, custom } = readObject(call);
  if (type === 'custom') return { type: 'custom_tool_call', call_id, ...readObject(custom) };
  const { name, arguments: text } = readObject(called);
  return { type: 'function_call', call_id, name, arguments: text };
}

function partsOf(content: ChatMessage['content'], textType: 'input_text' | 'output_text'): readonly Item[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: textType, text: content }];
  return readArray(content).flatMap((part) => (isObject(part) ? [partOf(part, textType)] : []));
}

function partOf(part: JsonObject, textType: string): Item {
  const { type, prompt_cache_breakpoint: mark } = part;
  const marked = isSet(mark) ? { prompt_cache_breakpoint: mark } : {};
  if (type === 'text') return { type: textType, text: readString(part['text']) ?? '', ...marked };
  if (type === 'image_url') {
    const { url, detail } = readObject(part['image_url']);
    return { type: 'input_image', image_url: url, detail: readString(detail) ?? 'auto', ...marked };
  }
  if (type === 'file') return { type: 'input_file', ...fileOf(readObject(part['file'])), ...marked };
  return type === 'opaque' ? readObject(part['value']) : part;
}

/** Document; its URL has a separate field, unlike in chat. */
function fileOf({ file_data: data, ...file }: JsonObject): JsonObject {
  if (data === undefined) return file;
  const { filename: _name, ...rest } = file;
  return /^https:/i.test(String(data)) ? { ...rest, file_url: data } : { ...file, file_data: data };
}
