import { type ChatMessage, isObject, readArray, readString } from '../../../core/index.ts';
import { type Conversation, invalid, parseArguments, type ToolResult, textOf, toolCallId } from '../kit/index.ts';
import { anthropicBlocks, cacheControlOf, textBlocks } from './blocks.ts';
import type { AnthropicMessage, Block, TextBlock, ThinkingBlock, ToolResultBlock } from './types.ts';

/** Said by the user where the vendor wants a user's turn and the caller has none. */
const OPENING = '(The assistant speaks first.)';
const CLOSING = 'Continue.';
/** What the vendor takes as a call's id. */
const MAX_ID = 64;

interface Translated {
  readonly system?: readonly TextBlock[];
  readonly messages: readonly AnthropicMessage[];
}

/** Messages and system texts; `instruction` is one more system text, ours. `prefill` lets a last assistant turn stand. */
export function anthropicMessages(
  conversation: Conversation,
  instruction: string | undefined,
  prefill: boolean,
): Translated {
  const messages: GrowingMessage[] = [];
  for (const turn of conversation.turns) {
    if (turn.kind === 'user') append(messages, 'user', cached(turn.parts.flatMap(anthropicBlocks), turn.message));
    else if (turn.kind === 'assistant') append(messages, 'assistant', assistantBlocks(turn));
    else append(messages, 'user', turn.results.map(resultBlock));
  }
  const system = [
    ...conversation.system.flatMap(({ value }) => textBlocks(value.text, value)),
    ...textBlocks(instruction ?? ''),
  ];
  // A request without any turn is none: then the system texts are the user's.
  if (messages.length === 0 && system.length > 0) return { messages: [{ role: 'user', content: system }] };
  if (messages.length === 0) throw invalid('messages', 'holds no text, image or other content');
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: [...textBlocks(OPENING)] });
  if (messages.at(-1)?.role === 'assistant') {
    if (prefill) trimPrefill(messages);
    else messages.push({ role: 'user', content: [...textBlocks(CLOSING)] });
  }
  return { ...(system.length > 0 && { system }), messages };
}

/** The thinking that a message of ours carried, for the vendor to check by its signature. */
export function thinkingBlocksOf(message: ChatMessage): readonly ThinkingBlock[] {
  return readArray(message['thinking_blocks']).flatMap((block): readonly ThinkingBlock[] => {
    if (!isObject(block)) return [];
    const { type, thinking } = block;
    const signature = readString(block['signature']);
    const data = readString(block['data']);
    if (type === 'thinking' && typeof thinking === 'string' && signature) return [{ type, thinking, signature }];
    return type === 'redacted_thinking' && data ? [{ type, data }] : [];
  });
}

/** A message that may still grow: copying it for every turn would take long for many short ones. */
interface GrowingMessage extends AnthropicMessage {
  readonly content: Block[];
}

/** Adjacent turns of one role become one, so results of tools and the user's words after them are one message. */
function append(messages: GrowingMessage[], role: AnthropicMessage['role'], content: readonly Block[]): void {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role !== role) messages.push({ role, content: [...content] });
  else for (const block of content) last.content.push(block);
}

function assistantBlocks(turn: Extract<Conversation['turns'][number], { kind: 'assistant' }>): readonly Block[] {
  const texts = turn.parts.flatMap(({ value, at }) => {
    const text = textOf(value);
    if (text === undefined) throw invalid(`${at}.type`, 'must be text or refusal in an assistant message');
    return textBlocks(text, value);
  });
  const calls = turn.calls.map((call): Block => {
    const id = toolCallId(call.id, MAX_ID);
    return {
      type: 'tool_use',
      id,
      name: call.name,
      input: parseArguments(call.arguments),
      ...cacheControlOf(call.source),
    };
  });
  const blocks = [...texts, ...calls];
  // Thinking alone is no turn.
  return blocks.length === 0 ? [] : [...thinkingBlocksOf(turn.message), ...cached(blocks, turn.message)];
}

function resultBlock({ call, parts, message }: ToolResult): ToolResultBlock {
  const blocks = parts.flatMap(anthropicBlocks);
  const marked = [message, ...blocks].find((source) => 'cache_control' in source);
  const content = blocks.map(({ cache_control: _mark, ...block }) => block);
  return {
    type: 'tool_result',
    tool_use_id: toolCallId(call.id, MAX_ID),
    ...(content.length > 0 && { content }),
    ...cacheControlOf(marked),
  };
}

/** A `cache_control` on a whole message belongs to its last block. */
function cached<B extends Block>(blocks: readonly B[], message: ChatMessage): readonly B[] {
  const control = cacheControlOf(message);
  const last = blocks.at(-1);
  return last && control.cache_control ? [...blocks.slice(0, -1), { ...last, ...control }] : blocks;
}

/** The vendor refuses white space at the end of what the model shall continue. */
function trimPrefill(messages: readonly GrowingMessage[]): void {
  const last = messages.at(-1);
  const block = last?.content.pop();
  if (last && block) last.content.push(block.type === 'text' ? { ...block, text: block.text.trimEnd() } : block);
}
