import { createHash } from 'node:crypto';
import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type ToolCall,
} from '../../../contract/index.ts';
import {
  FORMAT_FIELDS,
  invalid,
  MESSAGE_FIELDS,
  RESPONSE_FIELDS,
  readDataUrl,
  textOfDetails,
  writeRelayDetails,
} from '../kit/index.ts';
import type { Differences, FileRules, RoleRules, Variant } from './types.ts';

type ToolIds = NonNullable<Differences['toolIds']>;

/** Rules of a vendor for messages, compiled once. */
interface MessageRules extends Pick<Differences, 'detailFormats'> {
  readonly roles: RoleRules;
  readonly replay: NonNullable<Differences['replay']>;
  readonly toolIds: ToolIds;
  readonly cacheMarks: boolean;
  readonly files: FileRules;
  readonly media: readonly string[];
  /** Message fields to send. */
  readonly kept: ReadonlySet<string>;
  /** Message fields to remove, such as another vendor's signatures; undefined for all that are not kept. */
  readonly removed: ReadonlySet<string> | undefined;
  /** The Responses API accepts images in tool results and earlier reasoning; its writer selects what it needs. */
  readonly isForResponses: boolean;
}

const REMOVED: ReadonlySet<string> = new Set([...FORMAT_FIELDS, ...RESPONSE_FIELDS]);

/** Additional fields for the writer of the Responses API. */
const RESPONSES_FIELDS: readonly string[] = ['reasoning_details', 'order', 'dialect_fields'];

/**
 * Default for vendors without a documented limit. Other vendors' ids have characters that some reject, or a signature
 * of thousands of characters.
 */
export const TOOL_IDS = Object.freeze({ valid: /^[A-Za-z0-9_-]{1,64}$/, length: 40 });

/** For vendors without document support. */
export const NO_FILES: FileRules = Object.freeze({ data: [] });

/** Text for a tool result that contains only images and files. */
const ELSEWHERE = 'The result follows in the next user message.';

/** Message rules for requests that match a variant, or none. */
export function messageRules(differences: Differences, variant: Variant | undefined): MessageRules {
  const {
    replay = 'drop',
    toolIds = TOOL_IDS,
    cacheMarks = false,
    files = NO_FILES,
    media = [],
    detailFormats,
    unknown,
    extras = [],
  } = differences;
  const isForResponses = variant?.wire === 'responses';
  return {
    roles: variant?.roles ?? differences.roles ?? {},
    replay,
    toolIds,
    cacheMarks,
    media,
    isForResponses,
    files: isForResponses ? { ...files, urls: true } : files,
    kept: new Set([
      ...MESSAGE_FIELDS,
      replay,
      ...(isForResponses ? RESPONSES_FIELDS : []),
      ...extras.flatMap((path) => /^messages\.(\w+)$/.exec(path)?.[1] ?? []),
    ]),
    removed: unknown === 'passed' && !isForResponses ? REMOVED : undefined,
    ...(detailFormats && { detailFormats }),
  };
}

/**
 * Adapts messages to the vendor: roles, earlier thinking, tool call ids, documents. Images and files in tool results
 * follow in one user message after the results of their turn. Adds the names of dropped parts to `left`.
 */
export function mapMessages(
  messages: readonly ChatMessage[],
  model: string,
  rules: MessageRules,
  left: Set<string>,
): readonly ChatMessage[] {
  const mapped: ChatMessage[] = [];
  let media: ContentPart[] = [];
  for (let index = 0; index < messages.length; index += 1) {
    const message = messages[index];
    if (!message) continue;
    if (media.length > 0 && message.role !== 'tool') {
      mapped.push({ role: 'user', content: media });
      media = [];
    }
    const result = mapMessage(message, index, model, rules, left);
    mapped.push(result.role === 'tool' && !rules.isForResponses ? withoutMedia(result, media) : result);
  }
  if (media.length > 0) mapped.push({ role: 'user', content: media });
  return mapped;
}

/** Reduces a tool result to its text. Other parts are added to `media`, after a heading with the call's id. */
function withoutMedia(message: ChatMessage, media: ContentPart[]): ChatMessage {
  const { content, tool_call_id: id } = message;
  if (!Array.isArray(content)) return message;
  const parts: readonly ContentPart[] = content;
  const others = parts.filter(({ type }) => type !== 'text');
  if (others.length === 0) return message;
  media.push({ type: 'text', text: `Result of call ${id}:` }, ...others);
  const texts = parts.filter(({ type }) => type === 'text');
  return { ...message, content: texts.length > 0 ? texts : ELSEWHERE };
}

/** Returns the same message if nothing changes. */
function mapMessage(
  message: ChatMessage,
  index: number,
  model: string,
  rules: MessageRules,
  left: Set<string>,
): ChatMessage {
  const { roles, toolIds } = rules;
  const { role, content, tool_calls: calls, tool_call_id: id } = message;
  let changes: Record<string, unknown> | undefined;
  const change = (field: string, value: unknown): void => {
    changes ??= {};
    changes[field] = value;
  };
  const sentRole = role === 'system' || role === 'developer' ? roles[role] : undefined;
  if (sentRole !== undefined && sentRole !== role) change('role', sentRole);
  for (const field in message) {
    if (rules.kept.has(field) || rules.removed?.has(field) === false) continue;
    change(field, undefined);
    if (!FORMAT_FIELDS.has(field)) left.add(`messages.${field}`);
  }
  if (Array.isArray(content)) {
    const mapped = mapContent(content, index, rules, left);
    if (mapped !== content) change('content', mapped === '' && calls ? null : mapped);
  }
  if (!rules.isForResponses && (message.reasoning_content || message.reasoning_details)) {
    const mapped = mapReasoning(message, model, rules, left);
    for (const field in mapped) change(field, mapped[field]);
  }
  if (calls?.some((call) => !isPlainCall(call, toolIds)))
    change(
      'tool_calls',
      calls.map((call) => plainCall(call, toolIds, rules.removed !== undefined)),
    );
  if (id !== undefined && !toolIds.valid.test(id)) change('tool_call_id', shortId(id, toolIds.length));
  return changes ? withChanges(message, changes) : message;
}

/**
 * Earlier thinking, as text if the vendor accepts it, or as details that it can read. Lost thinking is reported as
 * dropped.
 */
function mapReasoning(
  message: ChatMessage,
  model: string,
  { replay, detailFormats }: MessageRules,
  left: Set<string>,
): Readonly<Record<string, unknown>> {
  const details: unknown = message.reasoning_details;
  const text = message.reasoning_content ?? textOfDetails(details);
  const isReplayed = replay !== 'drop' && text && (message[replay] === undefined || message[replay] === null);
  const count = readArray(details).length;
  const sent = count > 0 && detailFormats ? writeRelayDetails(details, detailFormats(model)) : [];
  if (sent.length < count && (replay === 'drop' || readArray(details).some(isBeyondText))) left.add('reasoning');
  return { ...(isReplayed && { [replay]: text }), ...(sent.length > 0 && { reasoning_details: sent }) };
}

/** Returns true if a detail contains more than the text of a thought. */
function isBeyondText(detail: unknown): boolean {
  return isObject(detail) && (typeof detail['data'] === 'string' || typeof detail['signature'] === 'string');
}

/** Removes cache marks that the vendor does not support, and tools of other formats. */
export function plainTools(tools: readonly unknown[], cacheMarks: boolean): readonly unknown[] {
  const isForeign = (tool: unknown): boolean => isObject(tool) && tool['type'] === 'opaque';
  const isPlain = (tool: unknown): boolean =>
    !isObject(tool) || !('dialect_fields' in tool || (!cacheMarks && 'cache_control' in tool));
  if (tools.every((tool) => isPlain(tool) && !isForeign(tool))) return tools;
  return tools
    .filter((tool) => !isForeign(tool))
    .map((tool) => {
      if (!isObject(tool) || isPlain(tool)) return tool;
      const { cache_control: mark, dialect_fields: _fields, ...rest } = tool;
      return cacheMarks && mark !== undefined ? { ...rest, cache_control: mark } : rest;
    });
}

function withChanges(message: ChatMessage, changes: Readonly<Record<string, unknown>>): ChatMessage {
  const entries = Object.entries({ ...message, ...changes }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as ChatMessage;
}

function isPlainCall(call: ToolCall, toolIds: ToolIds): boolean {
  if (!toolIds.valid.test(call.id)) return false;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers may send other kinds
  if (call.type !== 'function') return true;
  return Object.keys(call).length === 3 && Object.keys(call.function).length === 2 && call.function.arguments !== '';
}

/** Names that other vendors add to a tool call: thought signatures and indices. */
const CALL_ADDITIONS: ReadonlySet<string> = new Set(['cache_control', 'dialect_fields', 'index', ...RESPONSE_FIELDS]);

/** Removes other vendors' additions from a tool call, and all other names unless `isOpen`. */
function plainCall(call: ToolCall, toolIds: ToolIds, isOpen: boolean): ToolCall {
  const id = !toolIds.valid.test(call.id) ? shortId(call.id, toolIds.length) : call.id;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers may send other kinds
  if (call.type !== 'function') return { ...(call as ToolCall), id };
  const { name, arguments: text, ...inner } = call.function;
  // Clients of streams without arguments send back an empty string, which is invalid JSON.
  const called = { name, arguments: text === '' ? '{}' : text };
  if (!isOpen) return { id, type: 'function', function: called };
  const others = Object.entries(call).filter(([field]) => !CALL_ADDITIONS.has(field));
  const { thought_signature: _signature, ...own } = inner as JsonObject;
  return { ...(Object.fromEntries(others) as object), id, type: 'function', function: { ...called, ...own } };
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Deterministic id of `length` letters and digits for a text; at most 64. */
export function shortId(text: string, length: number): string {
  const bytes = createHash('sha512').update(text).digest();
  return Array.from(bytes.subarray(0, length), (byte) => BASE62[byte % 62]).join('');
}

/** Part types with audio or video; a vendor's table lists the supported ones. */
export const MEDIA_PARTS = Object.freeze(['input_audio', 'audio_url', 'video_url'] as const);

function isMedia(type: unknown): type is (typeof MEDIA_PARTS)[number] {
  return (MEDIA_PARTS as readonly unknown[]).includes(type);
}

/**
 * Reduces the tools of a request to functions, for vendors without other tools. With `allowed_tools`, only the
 * allowed tools are sent, with its mode as the choice. Throws `invalid_request` naming a tool with free text input.
 */
export function fitTools(request: ChatRequest): ChatRequest {
  const tools = readArray(request.tools).map(readObject);
  const custom = tools.findIndex(({ type }) => type === 'custom');
  if (custom >= 0) throw invalid(`tools[${custom}].type`, 'must be function; this provider has no custom tools');
  const { type, allowed_tools: given } = readObject(request.tool_choice);
  if (type !== 'allowed_tools') return request;
  const { mode, tools: named } = readObject(given);
  const names = new Set(readArray(named).map((tool) => nameOf(readObject(tool))));
  const allowed = (request.tools ?? []).filter((tool) => names.has(nameOf(readObject(tool))));
  if (allowed.length === 0) throw invalid('tool_choice.allowed_tools.tools', 'must name tools that are in `tools`');
  const choice = mode === 'required' ? 'required' : 'auto';
  return { ...request, tools: allowed, tool_choice: choice };
}

function nameOf(tool: Readonly<Record<string, unknown>>): unknown {
  return readObject(tool['function'])['name'] ?? tool['name'];
}

/** Part fields for other formats; vendors of this wire never get them. */
const FOREIGN: readonly string[] = Object.freeze([
  ...['annotations', 'citations', 'context', 'dialect_fields', 'extra_content'],
]);

/** Adapts the content of the message at this index to the vendor; returns the same value if nothing changes. */
function mapContent(
  content: readonly ContentPart[],
  at: number,
  rules: MessageRules,
  left: Set<string>,
): ChatMessage['content'] {
  if (content.every((part) => isPlain(part, rules))) return content;
  const parts = content.flatMap((part, index) => mapPart(part, `messages[${at}].content[${index}]`, rules, left));
  return parts.length > 0 ? parts : '';
}

function isPlain(part: unknown, { cacheMarks, media }: MessageRules): boolean {
  if (!isObject(part)) return true;
  const { type } = part;
  if (isMedia(type) && !media.includes(type)) return false;
  if (type === 'file' || type === 'opaque' || (!cacheMarks && 'cache_control' in part)) return false;
  return !FOREIGN.some((field) => field in part);
}

function mapPart(part: ContentPart, at: string, rules: MessageRules, left: Set<string>): readonly ContentPart[] {
  if (isPlain(part, rules)) return [part];
  if (part.type === 'opaque') return mapOpaque(part, left);
  if (isMedia(part.type) && !rules.media.includes(part.type))
    throw invalid(
      `${at}.type`,
      `must not be ${part.type}; this provider does not support ${part.type.replace(/^input_|_url$/g, '')}`,
    );
  const { cache_control: mark, ...rest } = part;
  const marked = rules.cacheMarks && isObject(mark) ? { cache_control: mark } : {};
  if (part.type === 'file') {
    if (readObject(part['citations'])['enabled'] === true) left.add('citations');
    const parts = mapFile(part, at, rules.files);
    return parts.map((item, index) => (index === parts.length - 1 ? { ...item, ...marked } : item));
  }
  const kept = Object.entries(rest).filter(([field]) => !FOREIGN.includes(field));
  return [{ ...(Object.fromEntries(kept) as ContentPart), ...marked }];
}

/** Converts a block of another format to its text, if any. */
function mapOpaque(part: ContentPart, left: Set<string>): readonly ContentPart[] {
  const text = readString(part['text']);
  if (text !== undefined) return [{ type: 'text', text }];
  left.add(readString(readObject(part['value'])['type']) ?? 'opaque');
  return [];
}

const TEXTUAL = /^text\/|^application\/(?:json|xml|yaml|x-yaml|javascript|x-ndjson|toml|sql)$|[+](?:json|xml)$/;
const NAMES: Readonly<Record<string, string>> = Object.freeze({ 'application/pdf': 'document.pdf' });

/**
 * Converts a document to parts that the vendor accepts, after the caller's description of it. Throws
 * `invalid_request` naming the part if the vendor does not support such documents.
 */
function mapFile(part: ContentPart, at: string, rules: FileRules): readonly ContentPart[] {
  const file = readObject(part['file']);
  const filename = readString(file['filename']);
  const context = readString(part['context']);
  const about: readonly ContentPart[] =
    context === undefined ? [] : [{ type: 'text', text: `About the document${named(filename)}: ${context}` }];
  return [...about, mapDocument(file, filename, at, rules)];
}

function mapDocument(
  file: Readonly<Record<string, unknown>>,
  filename: string | undefined,
  at: string,
  rules: FileRules,
): ContentPart {
  const { data, urls = false, ids = false } = rules;
  const url = readString(file['file_url']) ?? readString(file['file_data']);
  if (url === undefined) {
    if (ids && readString(file['file_id'])) return { type: 'file', file };
    throw invalid(`${at}.file`, 'must contain `file_data`, a data URL, for this provider');
  }
  if (/^https:\/\//i.test(url)) {
    if (urls) return write(rules, filename ?? lastOf(url), url);
    throw invalid(`${at}.file`, 'must be a data URL; this provider does not accept other URLs of documents');
  }
  const [, type] = /^data:([^;,]*)/i.exec(url) ?? [];
  if (type === undefined) throw invalid(`${at}.file`, 'must contain a data URL or an https: URL');
  const mediaType = type.trim().toLowerCase() || 'text/plain';
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (!data.includes(mediaType) && TEXTUAL.test(mediaType)) {
    return { type: 'text', text: `Document${named(filename)}:\n${readText(url, at)}` };
  }
  if (data.includes('*') || data.includes(mediaType))
    return write(rules, filename ?? NAMES[mediaType] ?? 'document', url);
  throw invalid(`${at}.file`, `is a document of type ${mediaType.slice(0, 80)}, which this provider does not support`);
}

function write({ part }: FileRules, filename: string, url: string): ContentPart {
  return part ? part(filename, url) : { type: 'file', file: { filename, file_data: url } };
}

function named(filename: string | undefined): string {
  return filename === undefined ? '' : ` "${filename}"`;
}

function lastOf(url: string): string {
  return (URL.canParse(url) && new URL(url).pathname.split('/').at(-1)) || 'document';
}

/** Text of a data URL, in base64 or percent-encoded. */
function readText(url: string, at: string): string {
  const inline = readDataUrl(url);
  if (inline) return Buffer.from(inline.data, 'base64').toString('utf8');
  const comma = url.indexOf(',');
  try {
    return decodeURIComponent(url.slice(comma + 1));
  } catch {
    throw invalid(`${at}.file.file_data`, 'must be a data URL');
  }
}

/** Adds empty thinking where the caller dropped it, for vendors that reject an assistant turn without thinking. */
export function withThinking(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const lacks = (message: ChatMessage) => message.role === 'assistant' && typeof message.reasoning_content !== 'string';
  if (!messages.some(lacks)) return messages;
  return messages.map((message) => (lacks(message) ? { ...message, reasoning_content: '' } : message));
}
