import { type ChatMessage, isObject, readArray, readObject, readString, type Tool } from '../../../core/index.ts';

/** The tools that a conversation called, for vendors that refuse calls in the history of a request that declares none. */
export function toolsOfHistory(messages: readonly ChatMessage[]): readonly Tool[] {
  const names = messages
    .flatMap((message) => readArray(message.tool_calls))
    .flatMap((call) => (isObject(call) ? (readString(readObject(call['function'])['name']) ?? []) : []));
  return [...new Set(names)].map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: {} } },
  }));
}
