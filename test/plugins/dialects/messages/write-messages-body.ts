import type { ChatMessage, ContentPart, ReasoningDetail } from '../../../../contract/index.ts';
import type { Block, MessagesMessage } from '../../../../plugins/formats/anthropic/types.ts';
import { messagesBody } from './messages-dialect.ts';

/**
 * Converts a canonical conversation to the form that a client of the Messages format sends, with the results of one
 * turn in one message.
 */
export function writeMessagesBody(conversation: readonly ChatMessage[]) {
  const messages: MessagesMessage[] = [];
  let system: string | readonly Block[] | undefined;
  for (const [index, message] of conversation.entries()) {
    const { role, content } = message;
    if (role === 'system') system = typeof content === 'string' ? content : (content ?? []).map(blockOf);
    else if (role === 'tool') addResult(messages, message, conversation[index - 1]?.role === 'tool');
    else if (role === 'assistant') messages.push({ role, content: assistantBlocks(message) });
    else messages.push({ role, content: typeof content === 'string' ? content : (content ?? []).map(blockOf) });
  }
  return messagesBody({ messages, ...(system !== undefined && { system }) });
}

function addResult(messages: MessagesMessage[], { content, tool_call_id: id }: ChatMessage, joins: boolean): void {
  const reported = typeof content === 'string' ? content : (content ?? []).map(blockOf);
  const block = { type: 'tool_result', tool_use_id: id, content: reported };
  const last = messages.at(-1);
  if (joins && last && typeof last.content !== 'string')
    messages.splice(-1, 1, { ...last, content: [...last.content, block] });
  else messages.push({ role: 'user', content: [block] });
}

function assistantBlocks({ content, reasoning_details: details = [], tool_calls: calls = [], order }: ChatMessage) {
  const blocks = new Map<string, Block>([
    ...details.map((detail, index) => [`reasoning:${index}`, thinkingOf(detail)] as const),
    ...(typeof content === 'string'
      ? []
      : (content ?? []).map((part, index) => [`content:${index}`, blockOf(part)] as const)),
    ...calls.map(({ id, function: { name, arguments: text } }, index) => {
      const block: Block = { type: 'tool_use', id, name, input: JSON.parse(text) as unknown };
      return [`tool:${index}`, block] as const;
    }),
  ]);
  return (order ?? [...blocks.keys()]).flatMap((entry) => blocks.get(entry) ?? []);
}

function thinkingOf({ kind, text, signature, data }: ReasoningDetail): Block {
  return kind === 'encrypted' ? { type: 'redacted_thinking', data } : { type: 'thinking', thinking: text, signature };
}

function blockOf(part: ContentPart): Block {
  const { type, text, image_url: image, file, ...rest } = part as Record<string, unknown>;
  if (type === 'text') return { type, text, ...rest };
  const { url } = (image ?? {}) as { url?: string };
  if (url !== undefined) return { type: 'image', source: sourceOf(url), ...rest };
  const { filename, file_data: data, file_url: at } = file as Record<string, string | undefined>;
  return { type: 'document', source: sourceOf(data ?? at ?? ''), ...(filename && { title: filename }), ...rest };
}

function sourceOf(url: string): object {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/.exec(url) ?? [];
  return media_type ? { type: 'base64', media_type, data } : { type: 'url', url };
}
