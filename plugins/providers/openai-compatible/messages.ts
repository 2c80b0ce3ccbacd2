import { createHash } from 'node:crypto';
import {
  type ChatMessage,
  type ContentPart,
  isObject,
  readArray,
  readObject,
  readString,
  type ToolCall,
} from '../../../core/index.ts';
import { textOfDetails, writeRelayDetails } from '../kit/index.ts';
import { type FileRules, isFile, mapFile, NO_FILES } from './files.ts';
import type { Differences, RoleRules, Variant } from './spec.ts';

type ToolIds = NonNullable<Differences['toolIds']>;

/** What a vendor takes in messages. */
type MessageRules = Pick<Differences, 'replay' | 'toolIds' | 'cacheMarks' | 'files' | 'detailFormats'> & {
  readonly roles: RoleRules;
  /** On `responses`, results of tools may hold images, and earlier reasoning goes back: the writer of that API picks what it takes. */
  readonly wire?: Variant['wire'];
};

/** What one request's messages are mapped with. */
interface Mapping {
  readonly model: string;
  readonly rules: MessageRules;
  readonly parts: PartRules;
  /** What was left out. */
  readonly told: Set<string>;
}

/** Fields of a message that vendors of this wire know; others (a native vendor's signatures, say) stay behind. */
const MESSAGE_FIELDS = new Set(
  'role content name tool_calls tool_call_id refusal function_call audio prefix'.split(' '),
);

/** What the writer of the Responses API reads, too. */
const RESPONSES_FIELDS = new Set(['reasoning_details', 'order', 'dialect_fields']);

/** For vendors that name no limit: others' ids have characters that some refuse, or a signature of thousands of characters. */
export const TOOL_IDS = Object.freeze({ valid: /^[A-Za-z0-9_-]{1,64}$/, length: 40 });

/** What stands in a tool's result all of which is images and files. */
const ELSEWHERE = 'The result follows in the next user message.';

/**
 * Messages as the vendor takes them: roles, earlier thinking, tool call ids, documents. Images and files in tools' results follow in
 * one user message after the results of their turn. Adds what is left out to `told`.
 */
export function mapMessages(
  messages: readonly ChatMessage[],
  model: string,
  rules: MessageRules,
  told: Set<string>,
): readonly ChatMessage[] {
  const { files = NO_FILES, cacheMarks = false } = rules;
  const mapping: Mapping = { model, rules, told, parts: { files, cacheMarks, told } };
  const mapped: ChatMessage[] = [];
  let media: ContentPart[] = [];
  messages.forEach((message, index) => {
    if (media.length > 0 && message.role !== 'tool') {
      mapped.push({ role: 'user', content: media });
      media = [];
    }
    const result = mapMessage(message, index, mapping);
    mapped.push(result.role === 'tool' && rules.wire !== 'responses' ? withoutMedia(result, media) : result);
  });
  if (media.length > 0) mapped.push({ role: 'user', content: media });
  return mapped;
}

/** A tool's result with its text alone; what else it holds is added to `media`, with a head that names the call. */
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

function mapMessage(message: ChatMessage, index: number, mapping: Mapping): ChatMessage {
  const { rules, parts } = mapping;
  const { roles, toolIds = TOOL_IDS } = rules;
  const changes: Record<string, unknown> = {};
  if (message.role === 'system' && roles.system === 'developer') changes['role'] = 'developer';
  if (message.role === 'developer' && roles.developer === 'system') changes['role'] = 'system';
  for (const field in message) {
    const isKept = MESSAGE_FIELDS.has(field) || (rules.wire === 'responses' && RESPONSES_FIELDS.has(field));
    if (!isKept && field !== rules.replay) changes[field] = undefined;
  }
  const content = mapContent(message.content, index, parts);
  if (content !== message.content) changes['content'] = content === '' && message.tool_calls ? null : content;
  if (rules.wire !== 'responses') mapReasoning(message, mapping, changes);
  if (message.tool_calls?.some((call) => !isPlainCall(call, toolIds))) {
    changes['tool_calls'] = message.tool_calls.map((call) => plainCall(call, toolIds));
  }
  if (message.tool_call_id !== undefined && !toolIds.valid.test(message.tool_call_id)) {
    changes['tool_call_id'] = shortId(message.tool_call_id, toolIds.length);
  }
  return Object.keys(changes).length === 0 ? message : withChanges(message, changes);
}

/** Earlier thinking: as text where the vendor wants it, in details where it can read them; what is lost is told. */
function mapReasoning(
  message: ChatMessage,
  { model, rules: { replay = 'drop', detailFormats }, told }: Mapping,
  changes: Record<string, unknown>,
): void {
  const details: unknown = message.reasoning_details;
  if (!details && !message.reasoning_content) return;
  const text = message.reasoning_content ?? textOfDetails(details);
  if (replay !== 'drop' && text && (message[replay] === undefined || message[replay] === null)) changes[replay] = text;
  const count = readArray(details).length;
  if (count === 0) return;
  const sent = detailFormats ? writeRelayDetails(details, detailFormats(model)) : [];
  if (sent.length > 0) changes['reasoning_details'] = sent;
  if (sent.length < count && (replay === 'drop' || readArray(details).some(isBeyondText))) told.add('reasoning');
}

/** Whether a detail holds more than the text of a thought. */
function isBeyondText(detail: unknown): boolean {
  return isObject(detail) && (typeof detail['data'] === 'string' || typeof detail['signature'] === 'string');
}

/** The items without marks for a cache that the vendor does not have, and without what is for other formats. */
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

/** A tool call without what other vendors hang on it (thought signatures, indices). */
function plainCall(call: ToolCall, toolIds: ToolIds): ToolCall {
  const id = !toolIds.valid.test(call.id) ? shortId(call.id, toolIds.length) : call.id;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers may send other kinds
  if (call.type !== 'function') return { ...(call as ToolCall), id };
  const { name, arguments: text } = call.function;
  // Clients of streams that told no arguments send back none, which is no JSON.
  return { id, type: 'function', function: { name, arguments: text === '' ? '{}' : text } };
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** An id of `length` letters and digits that is always the same for the same text; at most 64. */
export function shortId(text: string, length: number): string {
  const bytes = createHash('sha512').update(text).digest();
  return Array.from(bytes.subarray(0, length), (byte) => BASE62[byte % 62]).join('');
}

/** Fields of a part that no vendor of this wire gets: they are for other formats. */
const FOREIGN: readonly string[] = Object.freeze(['annotations', 'citations', 'context', 'dialect_fields']);

interface PartRules {
  readonly files: FileRules;
  /** Whether `cache_control` stays. */
  readonly cacheMarks: boolean;
  /** Gets what is left out. */
  readonly told: Set<string>;
}

/** The content of the message with this index as the vendor takes it; the same value where nothing has to change. */
function mapContent(content: ChatMessage['content'], at: number, rules: PartRules): ChatMessage['content'] {
  if (!Array.isArray(content) || content.every((part) => isPlain(part, rules))) return content;
  const parts = content.flatMap((part: ContentPart, index) =>
    mapPart(part, `messages[${at}].content[${index}]`, rules),
  );
  return parts.length > 0 ? parts : '';
}

function isPlain(part: unknown, { cacheMarks }: PartRules): boolean {
  if (!isObject(part)) return true;
  const { type } = part;
  if (type === 'file' || type === 'opaque' || (!cacheMarks && 'cache_control' in part)) return false;
  return !FOREIGN.some((field) => field in part);
}

function mapPart(part: ContentPart, at: string, rules: PartRules): readonly ContentPart[] {
  const { told } = rules;
  if (isPlain(part, rules)) return [part];
  if (part.type === 'opaque') return mapOpaque(part, told);
  const { cache_control: mark, ...rest } = part;
  const marked = rules.cacheMarks && isObject(mark) ? { cache_control: mark } : {};
  if (isFile(part)) {
    if (readObject(part['citations'])['enabled'] === true) told.add('citations');
    const parts = mapFile(part, at, rules.files);
    return parts.map((item, index) => (index === parts.length - 1 ? { ...item, ...marked } : item));
  }
  const kept = Object.entries(rest).filter(([field]) => !FOREIGN.includes(field));
  return [{ ...(Object.fromEntries(kept) as ContentPart), ...marked }];
}

/** A block of another format: what can be told of it in words, or nothing. */
function mapOpaque(part: ContentPart, told: Set<string>): readonly ContentPart[] {
  const text = readString(part['text']);
  if (text !== undefined) return [{ type: 'text', text }];
  const type = readString(readObject(part['value'])['type']);
  told.add(type ?? 'opaque');
  return [];
}
