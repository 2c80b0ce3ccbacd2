import { isObject, type KnownServers, readString, type WithoutServers } from '../../../contract/index.ts';
import { readServerTool, splitTools, textOfOutput, withoutServers } from '../kit/servers.ts';
import type { Item, ResponsesBody } from './types.ts';

/** Takes servers of the gateway out of a request: tools of type `mcp` whose label is configured. */
export function takeResponsesServers(
  body: ResponsesBody,
  known: KnownServers,
): WithoutServers<ResponsesBody> | undefined {
  const { servers, others } = splitTools(body.tools, (tool, param) => readServerTool(tool, param, known));
  const items: readonly Item[] = Array.isArray(body.input) ? (body.input as readonly Item[]) : [];
  const isOwn = (item: Item): boolean =>
    isObject(item) && /^mcp_(?:call|list_tools)$/.test(String(item['type'])) && known.has(String(item['server_label']));
  const hasItems = items.some(isOwn);
  if (servers.length === 0 && !hasItems) return undefined;
  const { tools: _tools, tool_choice: choice, ...rest } = body;
  return withoutServers({
    body: {
      ...rest,
      ...(hasItems && { input: items.flatMap((item) => (isOwn(item) ? spread(item, known) : [item])) }),
    },
    servers,
    tools: others,
    choice,
    requiresAny: choice === 'required',
  });
}

/** Writes a call of a server's tool as a call of a function and its result. */
function spread(item: Item, known: KnownServers): readonly Item[] {
  const { type, id, name, server_label: server, arguments: args, output, error } = item;
  if (type === 'mcp_list_tools') return [];
  const call = { call_id: String(id) };
  return [
    {
      type: 'function_call',
      ...call,
      name: known.toolName(String(server), String(name)),
      arguments: readString(args) ?? '{}',
    },
    { type: 'function_call_output', ...call, output: textOfOutput(output ?? error) },
  ];
}
