import type { ChatMessage, ContentPart, ReasoningDetail, ToolCall } from '../../../core/index.ts';
import { isObject } from '../../../core/index.ts';
import { cacheControlOf, readOpaque, readPart } from './read-blocks.ts';
import type { Reading } from './reading.ts';
import { readThinking } from './reasoning.ts';
import type { Block, MessagesMessage, MessagesRequest } from './types.ts';

/** The header of Claude Code's attribution: it changes with every call, so that no cache of a prompt would ever be hit. */
const ATTRIBUTION = /^x-anthropic-billing-header:[^\n]*\n*/;

/** System texts and messages as canonical messages: one turn with results of tools becomes several. */
export function readMessages({ system, messages }: MessagesRequest, reading: Reading): readonly ChatMessage[] {
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

/** The system texts without the attribution, and which of the caller's blocks they are; undefined when nothing is left. */
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

/** Results of tools come first, each as a message; whatever else the user says is one more. */
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

/** What a model said, its blocks by kind; `order` tells how they stood where that is not the usual order. */
function readAssistant(blocks: readonly Block[], at: string, add: Add, reading: Reading): void {
  const parts: ContentPart[] = [];
  const details: ReasoningDetail[] = [];
  const calls: ToolCall[] = [];
  const order: string[] = [];
  const from = new Map<string, string>();
  blocks.forEach((block, index) => {
    const place = `${at}.content[${index}]`;
    if (block.type === 'thinking' || block.type === 'redacted_thinking') {
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
    ...(!isUsual(order) && { order }),
  };
  const place = add(message, at);
  for (const [part, callers] of from) reading.places.set(`${place}.${part}`, callers);
}

function readCall(block: Block): ToolCall {
  const { type: _type, id, name, input, cache_control: _control, ...rest } = block;
  return {
    id: String(id),
    type: 'function',
    function: { name: String(name), arguments: JSON.stringify(input ?? {}) },
    ...cacheControlOf(block),
    ...(Object.keys(rest).length > 0 && { dialect_fields: { messages: rest } }),
  };
}

const RANK: Readonly<Record<string, number>> = Object.freeze({ reasoning: 0, content: 1, tool: 2 });

/** Whether blocks stand as everybody expects: reasoning, content, calls. */
function isUsual(order: readonly string[]): boolean {
  const ranks = order.map((entry) => RANK[entry.split(':')[0] ?? ''] ?? 0);
  return ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] ?? 0));
}
