import { createHash } from 'node:crypto';
import { type ChatMessage, isObject, type ToolCall } from '../../../core/index.ts';
import type { Differences, RoleRules } from './spec.ts';

type ToolIds = NonNullable<Differences['toolIds']>;

/** Fields of a message that vendors of this wire know; others (a native vendor's signatures, say) stay behind. */
const MESSAGE_FIELDS = new Set(
  'role content name tool_calls tool_call_id refusal function_call audio prefix reasoning_details'.split(' '),
);

/** For vendors that name no limit: their own ids are short, but another's may hold a signature of thousands of characters. */
export const TOOL_IDS = Object.freeze({ valid: /^.{1,64}$/s, length: 40 });

/** Messages as the vendor takes them: roles, earlier thinking, tool call ids. */
export function mapMessages(
  messages: readonly ChatMessage[],
  roles: RoleRules,
  { replay = 'drop', toolIds = TOOL_IDS, cacheMarks = false }: Pick<Differences, 'replay' | 'toolIds' | 'cacheMarks'>,
): readonly ChatMessage[] {
  return messages.map((message) => mapMessage(cacheMarks ? message : withoutMarks(message), roles, replay, toolIds));
}

function mapMessage(
  message: ChatMessage,
  roles: RoleRules,
  replay: NonNullable<Differences['replay']>,
  toolIds: ToolIds,
): ChatMessage {
  const changes: Record<string, unknown> = {};
  if (message.role === 'system' && roles.system === 'developer') changes['role'] = 'developer';
  if (message.role === 'developer' && roles.developer === 'system') changes['role'] = 'system';
  for (const field in message) {
    if (!MESSAGE_FIELDS.has(field) && field !== replay) changes[field] = undefined;
  }
  const thinking = message.reasoning_content;
  if (replay === 'reasoning' && thinking && message['reasoning'] === undefined) changes['reasoning'] = thinking;
  if (message.tool_calls?.some((call) => !isPlainCall(call, toolIds))) {
    changes['tool_calls'] = message.tool_calls.map((call) => plainCall(call, toolIds));
  }
  if (message.tool_call_id !== undefined && !toolIds.valid.test(message.tool_call_id)) {
    changes['tool_call_id'] = shortId(message.tool_call_id, toolIds.length);
  }
  return Object.keys(changes).length === 0 ? message : withChanges(message, changes);
}

function withoutMarks(message: ChatMessage): ChatMessage {
  if (!Array.isArray(message.content)) return message;
  const content = withoutCacheMarks(message.content);
  return content === message.content ? message : { ...message, content };
}

/** The items without their `cache_control`; the same list when none has one. */
export function withoutCacheMarks<T>(items: readonly T[]): readonly T[] {
  if (!items.some((item) => isObject(item) && 'cache_control' in item)) return items;
  return items.map((item) => {
    if (!isObject(item)) return item;
    const { cache_control: _mark, ...rest } = item;
    return rest as T;
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
  return Object.keys(call).length === 3 && Object.keys(call.function).length === 2;
}

/** A tool call without what other vendors hang on it (thought signatures, indices). */
function plainCall(call: ToolCall, toolIds: ToolIds): ToolCall {
  const id = !toolIds.valid.test(call.id) ? shortId(call.id, toolIds.length) : call.id;
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers may send other kinds
  if (call.type !== 'function') return { ...(call as ToolCall), id };
  return { id, type: 'function', function: { name: call.function.name, arguments: call.function.arguments } };
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** An id of `length` letters and digits that is always the same for the same text; at most 64. */
export function shortId(text: string, length: number): string {
  const bytes = createHash('sha512').update(text).digest();
  return Array.from(bytes.subarray(0, length), (byte) => BASE62[byte % 62]).join('');
}
