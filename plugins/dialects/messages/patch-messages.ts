import { type ChatMessage, isObject, type JsonObject, type NativeChange } from '../../../core/index.ts';
import { textOf, toolCallId } from '../../providers/kit/index.ts';
import { isForeignThinking } from './reasoning.ts';
import type { Block, MessagesMessage, MessagesRequest } from './types.ts';

const MAX_ID = 64;

/**
 * The messages as the provider takes them: foreign reasoning left out, ids of calls made valid, and what hooks added at either
 * end. Undefined where an addition cannot be said.
 */
export function patchMessages(
  body: MessagesRequest,
  { before, after }: NativeChange,
  dropped: string[],
): JsonObject | undefined {
  const own = body.messages.flatMap((message) => cleanMessage(message, dropped));
  const messages =
    own.length === body.messages.length && own.every((one, at) => one === body.messages[at]) ? body.messages : own;
  if (before.messages === after.messages || before.messages.length === after.messages.length)
    return messages === body.messages ? {} : { messages };
  const [first] = before.messages;
  const start = first ? after.messages.indexOf(first) : 0;
  const front = writeAdded(after.messages.slice(0, start));
  const behind = writeAdded(after.messages.slice(start + before.messages.length));
  if (!front || !behind) return undefined;
  const system = [...front.system, ...systemBlocks(body), ...behind.system];
  return {
    messages: [...front.messages, ...messages, ...behind.messages],
    ...(front.system.length + behind.system.length > 0 && { system }),
  };
}

function systemBlocks({ system }: MessagesRequest): readonly Block[] {
  if (typeof system === 'string') return system === '' ? [] : [{ type: 'text', text: system }];
  return system ?? [];
}

/** A message without foreign reasoning and with valid ids; none when nothing is left of it. */
function cleanMessage(message: MessagesMessage, dropped: string[]): readonly MessagesMessage[] {
  const { content } = message;
  if (typeof content === 'string') return [message];
  const kept = content.filter((block) => !isForeignThinking(block));
  if (kept.length < content.length && !dropped.includes('reasoning')) dropped.push('reasoning');
  const blocks = kept.map(withValidId);
  if (blocks.length === content.length && blocks.every((block, at) => block === content[at])) return [message];
  return blocks.length === 0 ? [] : [{ ...message, content: blocks }];
}

function withValidId(block: Block): Block {
  const field = block.type === 'tool_use' ? 'id' : block.type === 'tool_result' ? 'tool_use_id' : undefined;
  const id = field === undefined ? undefined : block[field];
  if (field === undefined || typeof id !== 'string') return block;
  const valid = toolCallId(id, MAX_ID);
  return valid === id ? block : { ...block, [field]: valid };
}

interface Added {
  readonly system: readonly Block[];
  readonly messages: readonly MessagesMessage[];
}

/** Messages that a hook added: texts of the system, the user and the assistant. */
function writeAdded(added: readonly ChatMessage[]): Added | undefined {
  const system: Block[] = [];
  const messages: MessagesMessage[] = [];
  for (const { role, content, tool_calls: calls } of added) {
    const blocks = textsOf(content);
    if (!blocks || blocks.length === 0 || calls) return undefined;
    if (role === 'system' || role === 'developer') system.push(...blocks);
    else if (role === 'user' || role === 'assistant') messages.push({ role, content: blocks });
    else return undefined;
  }
  return { system, messages };
}

function textsOf(content: ChatMessage['content']): readonly Block[] | undefined {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  const texts = (content ?? []).map((part) => (isObject(part) ? textOf(part) : undefined));
  return texts.every((text) => text !== undefined) ? texts.map((text) => ({ type: 'text', text })) : undefined;
}
