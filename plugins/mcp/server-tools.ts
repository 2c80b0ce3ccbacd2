import {
  type CallContext,
  GatewayError,
  isGatewayError,
  isObject,
  type NamedServer,
  type PluginApi,
  type Principal,
  parseJson,
  readObject,
  readString,
  type ServerTool,
  type ServerToolResult,
  type ServerTools,
  type ToolBounds,
} from '../../contract/index.ts';
import { callOpenTool } from './call-tool.ts';
import type { OpenTool, ToolCatalog } from './catalog.ts';
import { joinedName } from './names.ts';
import type { ServersByName } from './operation.ts';

interface ServerToolsDeps {
  readonly api: PluginApi;
  readonly servers: ServersByName;
  readonly catalog: ToolCatalog;
  readonly bounds: ToolBounds;
}

/** Tools of the servers for chats, which core runs. */
export function createServerTools({ api, servers, catalog, bounds }: ServerToolsDeps): ServerTools {
  return {
    bounds,
    has: (server) => servers.has(server),
    toolName: joinedName,
    async list(named, caller) {
      const lists = await Promise.all(named.map((each) => listTools({ servers, catalog }, each, caller)));
      const tools = new Map(lists.flat().map((tool) => [`${tool.server}/${tool.tool}`, tool]));
      return [...tools.values()];
    },
    async call({ server: name, tool }, args, context) {
      const server = servers.get(name);
      if (!isJsonObject(args)) return failed('The arguments are not a JSON object.');
      try {
        const open = server && (await catalog.find(context.principal, tool, server));
        if (!open) return failed('The tool is not available. Do not call it again.');
        return await callForModel(api, open, args, context);
      } catch (error) {
        if (!isGatewayError(error) || endsChat(error, context)) throw error;
        return failed(error.message);
      }
    },
  };
}

/** Lists the wanted tools of a server. A server of the plan's defaults that is down or not allowed has none. */
async function listTools(
  { servers, catalog }: Pick<ServerToolsDeps, 'servers' | 'catalog'>,
  { server: name, tools: wanted, param }: NamedServer,
  caller: Principal,
): Promise<readonly ServerTool[]> {
  const server = servers.get(name);
  // A chat does not wait for a server that failed, unless it names it.
  if (!server || (param === undefined && server.state.state === 'failed')) return [];
  let open: readonly OpenTool[];
  try {
    open = await catalog.openOf(server, caller, true);
  } catch (error) {
    if (param === undefined && isGatewayError(error)) return [];
    throw error;
  }
  const tools = wanted ? open.filter((each) => wanted.includes(each.name)) : open;
  if (tools.length === 0 && param !== undefined)
    throw new GatewayError(
      'permission_denied',
      `This key may use no tool of the MCP server "${name}" that \`${param}\` names. Operators allow tools by \`serverTools\` of a plan or key.`,
      { param },
    );
  return tools.map(({ tool: { name: tool, definition } }) => ({
    server: name,
    tool,
    definition: {
      type: 'function',
      function: {
        name: joinedName(name, tool),
        ...(definition.description !== undefined && { description: definition.description }),
        parameters: definition.inputSchema as Readonly<Record<string, unknown>>,
      },
    },
  }));
}

async function callForModel(
  api: PluginApi,
  open: OpenTool,
  args: string,
  context: CallContext,
): Promise<ServerToolResult> {
  const { response } = await callOpenTool(api, open, args, context);
  const { content, structured_json: structured, isError } = response;
  const texts = content.map((block) => textOf(readObject(block)));
  // Servers repeat structured content as text.
  if (texts.length === 0 && structured !== undefined) texts.push(structured);
  return { output: texts.join('\n'), ...(isError === true && { is_error: true }) };
}

/** Text of a block of a result. Models get no images, sounds and files of tools. */
function textOf({ type, text, mimeType, resource, uri, name }: Readonly<Record<string, unknown>>): string {
  if (type === 'text') return readString(text) ?? '';
  if (type === 'resource_link') return `${readString(name) ?? ''} ${readString(uri) ?? ''}`.trim();
  const own = readObject(resource);
  if (type === 'resource' && typeof own['text'] === 'string') return own['text'];
  return `[${String(type)}${typeof mimeType === 'string' ? ` of type ${mimeType}` : ''}, not shown]`;
}

function failed(output: string): ServerToolResult {
  return { output, is_error: true };
}

function isJsonObject(args: string): boolean {
  return isObject(parseJson(args));
}

/** Codes of errors that the model could not act on: they end the chat. */
const ENDING: ReadonlySet<string> = new Set([
  'insufficient_balance',
  'rate_limited',
  'internal_error',
  'store_unavailable',
  'overloaded',
  'shutting_down',
]);

function endsChat({ code }: GatewayError, { signal }: CallContext): boolean {
  return ENDING.has(code) || signal?.aborted === true;
}
