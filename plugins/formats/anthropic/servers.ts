import {
  isObject,
  type JsonObject,
  type KnownServers,
  type NamedServer,
  readArray,
  readObject,
  readString,
  type ServerToolCall,
  type WithoutServers,
} from '../../../contract/index.ts';
import { parseArguments } from '../kit/index.ts';
import { namedServer, readServerTool, splitTools, withoutServers } from '../kit/servers.ts';
import type { Block, MessagesMessage, MessagesRequest } from './types.ts';

/**
 * Takes servers of the gateway out of a request: entries of `mcp_servers` and tools `mcp_toolset` whose name is configured. Source:
 * https://platform.claude.com/docs/en/agents-and-tools/mcp-connector
 */
export function takeMessagesServers(
  body: MessagesRequest,
  known: KnownServers,
): WithoutServers<MessagesRequest> | undefined {
  const split = splitTools(body.tools, (tool, param) => readToolset(tool, param, known));
  const entries = readArray(body['mcp_servers']);
  const isOwn = (entry: unknown): entry is JsonObject => isObject(entry) && known.has(String(entry['name']));
  const named = entries.flatMap((entry, index): readonly NamedServer[] => {
    if (!isOwn(entry)) return [];
    const { enabled, allowed_tools: allowed } = readObject(entry['tool_configuration']);
    const name = String(entry['name']);
    // A toolset says which tools of its server are wanted.
    const isDescribed = split.servers.some(({ server }) => server === name);
    return enabled === false || isDescribed ? [] : [namedServer(name, `mcp_servers[${index}]`, allowed)];
  });
  const servers = [...split.servers, ...named];
  const isUsed = servers.length > 0 || entries.some(isOwn);
  const hasCalls = body.messages.some(({ content }) => hasOwnCalls(content, known));
  if (!isUsed && !hasCalls) return undefined;
  const { tools: _tools, mcp_servers: _servers, tool_choice: choice, ...rest } = body;
  const others = entries.filter((entry) => !isOwn(entry));
  return withoutServers({
    body: {
      ...rest,
      ...(hasCalls && { messages: body.messages.flatMap((message) => spread(message, known)) }),
      ...(others.length > 0 && { mcp_servers: others }),
    },
    servers,
    tools: split.others,
    // Without the caller's tools there is nothing to choose from but servers' tools.
    choice: split.others.length > 0 ? choice : undefined,
    requiresAny: choice?.['type'] === 'any',
  });
}

function readToolset(tool: JsonObject, param: string, known: KnownServers): NamedServer | undefined {
  if (tool['type'] !== 'mcp_toolset') return readServerTool(tool, param, known);
  const name = readString(tool['mcp_server_name']);
  if (name === undefined || !known.has(name)) return undefined;
  const isOff = readObject(tool['default_config'])['enabled'] === false;
  const wanted = Object.entries(readObject(tool['configs'])).filter(([, config]) => {
    return readObject(config)['enabled'] !== false;
  });
  return namedServer(name, param, isOff ? wanted.map(([each]) => each) : undefined);
}

function hasOwnCalls(content: MessagesMessage['content'], known: KnownServers): boolean {
  return typeof content !== 'string' && content.some((block) => isOwnCall(block, known));
}

function isOwnCall({ type, server_name: server }: Block, known: KnownServers): boolean {
  return type === 'mcp_tool_use' && known.has(String(server));
}

/** Writes calls of servers' tools as calls of functions, each followed by its result in a turn of the user. */
function spread(message: MessagesMessage, known: KnownServers): readonly MessagesMessage[] {
  const { role, content } = message;
  if (typeof content === 'string' || role !== 'assistant' || !hasOwnCalls(content, known)) return [message];
  const turns: MessagesMessage[] = [];
  const called = new Set<unknown>();
  let said: Block[] = [];
  let results: Block[] = [];
  const end = (): void => {
    if (said.length > 0) turns.push({ role, content: said });
    if (results.length > 0) turns.push({ role: 'user', content: results });
    said = [];
    results = [];
  };
  for (const block of content) {
    const { id, name, server_name: server, input, tool_use_id: caller, is_error: isError } = block;
    if (isOwnCall(block, known)) {
      if (results.length > 0) end();
      called.add(id);
      said.push({
        type: 'tool_use',
        id: String(id),
        name: known.toolName(String(server), String(name)),
        input: readObject(input),
      });
    } else if (block.type === 'mcp_tool_result' && called.has(caller))
      results.push({
        type: 'tool_result',
        tool_use_id: String(caller),
        content: block['content'],
        ...(isError === true && { is_error: true }),
      });
    else {
      if (results.length > 0) end();
      said.push(block);
    }
  }
  end();
  return turns;
}

/** Blocks of the calls of servers' tools in a message or delta. */
export function serverToolBlocks({
  mcp_calls: calls = [],
}: {
  readonly mcp_calls?: readonly ServerToolCall[];
}): Block[] {
  return calls.flatMap(({ id, server, name, arguments: args, output, is_error: isError = false }): Block[] => [
    { type: 'mcp_tool_use', id, name, server_name: server, input: parseArguments(args) },
    { type: 'mcp_tool_result', tool_use_id: id, is_error: isError, content: [{ type: 'text', text: output }] },
  ]);
}
