import {
  type ChatMessage,
  type ContentPart,
  isObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../core/index.ts';
import {
  type CalledTool,
  type Conversation,
  invalid,
  parseArguments,
  type ToolResult,
  textOf,
  toolCallId,
} from '../kit/index.ts';
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
  const { reasoning_details: details, thinking_blocks: blocks } = message;
  if (details) return details.flatMap((detail) => thinkingBlock(detail) ?? []);
  // As clients of other gateways keep it.
  return readArray(blocks).flatMap((block): readonly ThinkingBlock[] => {
    if (!isObject(block)) return [];
    const { type, thinking } = block;
    const signature = readString(block['signature']);
    const data = readString(block['data']);
    if (type === 'thinking' && typeof thinking === 'string' && signature) return [{ type, thinking, signature }];
    return type === 'redacted_thinking' && data ? [{ type, data }] : [];
  });
}

/** A piece of the vendor's own reasoning, byte for byte; undefined for any other vendor's, which it would refuse. */
function thinkingBlock({ kind, format, text, signature, data }: ReasoningDetail): ThinkingBlock | undefined {
  if (format !== 'anthropic') return undefined;
  if (kind === 'encrypted') return data ? { type: 'redacted_thinking', data } : undefined;
  return signature ? { type: 'thinking', thinking: text ?? '', signature } : undefined;
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
  const placed = new Map<string, readonly Block[]>();
  for (const [index, block] of placedThinking(turn.message).entries()) placed.set(`reasoning:${index}`, block);
  for (const { value, at } of turn.parts) {
    const index = /\.content\[(\d+)\]$/.exec(at)?.[1] ?? '0';
    placed.set(`content:${index}`, assistantPart(value, at));
  }
  for (const [index, call] of turn.calls.entries()) placed.set(`tool:${index}`, [callBlock(call)]);
  const order = (turn.message.order ?? []).filter((entry) => placed.has(entry));
  const blocks = [...new Set([...order, ...placed.keys()])].flatMap((entry) => placed.get(entry) ?? []);
  // Thinking alone is no turn.
  const isTurn = blocks.some(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  return isTurn ? cached(blocks, turn.message) : [];
}

/** The thinking of a message, each piece at the index by which `order` names it. */
function placedThinking(message: ChatMessage): readonly (readonly Block[])[] {
  const { reasoning_details: details } = message;
  if (!details) return thinkingBlocksOf(message).map((block) => [block]);
  return details.map((detail) => thinkingBlock(detail) ?? []).map((block) => [block].flat());
}

function assistantPart(value: ContentPart, at: string): readonly Block[] {
  const text = textOf(value);
  if (text !== undefined) return textBlocks(text, value);
  if (value.type === 'opaque') return anthropicBlocks({ value, at });
  throw invalid(`${at}.type`, 'must be text or refusal in an assistant message');
}

function callBlock({ id, name, arguments: text, source }: CalledTool): Block {
  return {
    ...readObject(readObject(source['dialect_fields'])['messages']),
    type: 'tool_use',
    id: toolCallId(id, MAX_ID),
    name,
    input: parseArguments(text),
    ...cacheControlOf(source),
  };
}

function resultBlock({ call, parts, message }: ToolResult): ToolResultBlock {
  const blocks = parts.flatMap(anthropicBlocks);
  const marked = [message, ...blocks].find((source) => 'cache_control' in source);
  const content = blocks.map(({ cache_control: _mark, ...block }) => block);
  return {
    type: 'tool_result',
    tool_use_id: toolCallId(call.id, MAX_ID),
    ...(content.length > 0 && { content }),
    ...(message.is_error === true && { is_error: true }),
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
