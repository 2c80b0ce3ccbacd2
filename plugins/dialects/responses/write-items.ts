import {
  type ChatMessage,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Tool,
} from '../../../core/index.ts';
import type { Item } from './types.ts';

/** A canonical message as items of input, such as one that a hook added. */
export function itemsOf(message: ChatMessage): readonly Item[] {
  const { role, content, tool_calls: calls = [], tool_call_id: id } = message;
  if (role === 'tool' || role === 'function')
    return [
      {
        type: 'function_call_output',
        call_id: id ?? '',
        output: typeof content === 'string' ? content : partsOf(content),
      },
    ];
  const isAssistant = role === 'assistant';
  const parts = partsOf(content, isAssistant ? 'output_text' : 'input_text');
  return [
    ...(parts.length > 0 ? [{ type: 'message', role, content: parts }] : []),
    ...calls.map((call) => ({
      type: 'function_call',
      call_id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
    })),
  ];
}

function partsOf(content: ChatMessage['content'], textType = 'input_text'): readonly Item[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: textType, text: content }];
  return readArray(content).flatMap((part) => (isObject(part) ? [partOf(part, textType)] : []));
}

function partOf(part: JsonObject, textType: string): Item {
  const { type } = part;
  if (type === 'text') return { type: textType, text: readString(part['text']) ?? '' };
  if (type === 'image_url') {
    const { url, detail } = readObject(part['image_url']);
    return { type: 'input_image', image_url: url, detail: readString(detail) ?? 'auto' };
  }
  if (type === 'file') return { type: 'input_file', ...readObject(part['file']) };
  return type === 'opaque' ? readObject(part['value']) : part;
}

/** A canonical tool as one of this format. */
export function toolOf(tool: Tool): Item {
  const { name, description, parameters, strict } = tool.function;
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    strict: strict ?? false,
  };
}
