import {
  type ChatRequest,
  type DialectInput,
  type DialectRequest,
  type JsonObject,
  readObject,
  readString,
  type Tool,
} from '../../../core/index.ts';
import { cacheControlOf } from './read-blocks.ts';
import { lostFields, readFields, readReferences } from './read-fields.ts';
import { readMessages } from './read-messages.ts';
import { callersPlace, type Reading } from './reading.ts';
import type { MessagesRequest, MessagesTool } from './types.ts';

/** A request of this format as a canonical one. */
export function readRequest({ body: sent, headers, route }: DialectInput<MessagesRequest>): DialectRequest {
  const body = route.action === 'count' ? { ...sent, stream: false } : sent;
  const reading: Reading = { needs: [], places: new Map() };
  const messages = readMessages(body, reading);
  const tools = readTools(body, reading);
  readReferences(body, reading);
  const dropped = lostFields(body);
  return {
    request: { model: body.model, messages, ...readFields(body, headers), ...tools },
    ...(dropped.length > 0 && { dropped }),
    ...(reading.needs.length > 0 && { needs: reading.needs }),
    place: (param) => callersPlace(reading.places, param),
  };
}

/** Tools that the caller runs itself, though only a provider of this format knows them. */
const CLIENT_TOOL = /^(?:bash|text_editor|memory)_\d+$/;

/** Tools and what the model may do with them. */
function readTools(
  { tools, tool_choice: choice }: MessagesRequest,
  reading: Reading,
): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'> {
  const read = (tools ?? []).map((tool, index) => readTool(tool, `tools[${index}]`, reading));
  return {
    ...(read.length > 0 && { tools: read }),
    ...readChoice(choice),
    ...(choice?.['disable_parallel_tool_use'] === true && { parallel_tool_calls: false }),
  };
}

function readTool(tool: MessagesTool, at: string, reading: Reading): Tool {
  const { type, name, description, input_schema: parameters, strict, cache_control: _control, ...rest } = tool;
  reading.places.set(at, at);
  const model = readString(tool['model']);
  if (model !== undefined) reading.needs.push({ kind: 'model', name: model, param: `${at}.model` });
  if (typeof type === 'string' && type !== 'custom') {
    reading.needs.push({ kind: CLIENT_TOOL.test(type) ? 'native' : 'server tool', name: type, param: `${at}.type` });
    return opaqueTool(tool);
  }
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(typeof description === 'string' && { description }),
      ...(parameters && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
    ...cacheControlOf(tool),
    ...(Object.keys(rest).length > 0 && { dialect_fields: { messages: rest } }),
  };
}

/** A tool that only codecs of this format write. */
function opaqueTool(value: MessagesTool): Tool {
  const tool: JsonObject = { type: 'opaque', dialect: 'messages', value };
  return tool as Tool;
}

function readChoice(choice: MessagesRequest['tool_choice']): Pick<ChatRequest, 'tool_choice'> {
  const { type, name } = readObject(choice);
  if (type === 'tool') return { tool_choice: { type: 'function', function: { name: String(name) } } };
  if (type === 'any') return { tool_choice: 'required' };
  return type === 'auto' || type === 'none' ? { tool_choice: type } : {};
}
