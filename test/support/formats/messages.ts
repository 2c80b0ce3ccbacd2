import type { ChatMessage } from '../../../core/index.ts';

/** A user's message. */
export const user = (content: ChatMessage['content'] = null): ChatMessage => ({ role: 'user', content });

/** An assistant's message that calls `do_<id>` for each id. */
export const called = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: `do_${id}`, arguments: '{"a":1}' } })),
});

/** A tool's message. */
export const result = (id: string, content: ChatMessage['content'] = null): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
