import {
  type ChatMessage,
  type ChatRequest,
  isObject,
  type JsonObject,
  type KnownServers,
  readArray,
  readString,
  type WithoutServers,
} from '../../../contract/index.ts';
import { readServerTool, splitTools, withoutServers } from '../kit/servers.ts';

/** Takes servers of the gateway out of a chat request. */
export function takeChatServers(body: ChatRequest, known: KnownServers): WithoutServers<ChatRequest> | undefined {
  const { servers, others } = splitTools(body.tools, (tool, param) => readServerTool(tool, param, known));
  const hasCalls = body.messages.some(({ mcp_calls: calls }) => Array.isArray(calls) && calls.length > 0);
  if (servers.length === 0 && !hasCalls) return undefined;
  const { tools: _tools, tool_choice: choice, ...rest } = body;
  return withoutServers({
    body: { ...rest, ...(hasCalls && { messages: body.messages.flatMap((message) => spread(message, known)) }) },
    servers,
    tools: others,
    choice,
    requiresAny: choice === 'required',
  });
}

/** Writes calls of servers' tools before a message as calls of functions and their results. */
function spread(message: ChatMessage, known: KnownServers): readonly ChatMessage[] {
  const { mcp_calls: given, ...rest } = message;
  const calls = readArray(given).filter(isObject).filter(isCall);
  if (message.role !== 'assistant' || calls.length === 0) return [message];
  return [
    {
      role: 'assistant',
      content: null,
      tool_calls: calls.map(({ id, server, name, arguments: args }) => ({
        id: String(id),
        type: 'function',
        function: { name: known.toolName(String(server), String(name)), arguments: readString(args) ?? '{}' },
      })),
    },
    ...calls.map(
      ({ id, output, is_error: isError }): ChatMessage => ({
        role: 'tool',
        tool_call_id: String(id),
        content: readString(output) ?? '',
        ...(isError === true && { is_error: true }),
      }),
    ),
    rest,
  ];
}

function isCall({ id, server, name }: JsonObject): boolean {
  return [id, server, name].every((field) => typeof field === 'string' && field !== '' && field.length <= 4096);
}
