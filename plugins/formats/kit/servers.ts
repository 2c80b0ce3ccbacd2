import {
  isObject,
  type JsonObject,
  type KnownServers,
  type NamedServer,
  readArray,
  readObject,
  readString,
  type WithoutServers,
} from '../../../contract/index.ts';
import { invalid } from './content.ts';

/**
 * Server of the gateway that a tool names: `{ type: 'mcp', server: 'github' }`, or OpenAI's `server_label`. A configured name wins over
 * the address in the tool. Undefined for other tools, which the vendor runs.
 */
export function readServerTool(tool: unknown, param: string, known: KnownServers): NamedServer | undefined {
  if (!isObject(tool) || tool['type'] !== 'mcp') return undefined;
  const { server, server_label: label, allowed_tools: allowed, require_approval: approval = null } = tool;
  const name = readString(server) ?? readString(label);
  if (name === undefined || !known.has(name)) {
    if (server === undefined) return undefined;
    throw invalid(`${param}.server`, 'must name an MCP server of this gateway');
  }
  if (approval !== null && approval !== 'never')
    throw invalid(`${param}.require_approval`, 'must be "never", since the gateway cannot ask for approval');
  return namedServer(name, param, isObject(allowed) ? allowed['tool_names'] : allowed);
}

/** Server with the names of its wanted tools, if a list of names is given. */
export function namedServer(server: string, param: string, tools: unknown): NamedServer {
  return { server, param, ...(Array.isArray(tools) && { tools: readArray(tools).map(String) }) };
}

/** Splits tools into those that name a server of the gateway, and the others. */
export function splitTools(
  tools: unknown,
  read: (tool: JsonObject, param: string) => NamedServer | undefined,
): { readonly servers: readonly NamedServer[]; readonly others: readonly unknown[] } {
  const servers: NamedServer[] = [];
  const others: unknown[] = [];
  for (const [index, tool] of readArray(tools).entries()) {
    const server = isObject(tool) ? read(tool, `tools[${index}]`) : undefined;
    if (server) servers.push(server);
    else others.push(tool);
  }
  return { servers, others };
}

/** Rejects tools that name an MCP server, for an API that does not offer them. */
export function assertNoServers(tools: unknown): void {
  const index = readArray(tools).findIndex((tool) => readObject(tool)['type'] === 'mcp');
  if (index >= 0)
    throw invalid(
      `tools[${index}]`,
      'names an MCP server, and this API does not offer those; use chat completions, Responses, Messages or `generateContent`',
    );
}

/** Parts of a request whose servers were taken out. */
interface Rest {
  /** Body without `tools` and `tool_choice`. */
  readonly body: object;
  readonly servers: readonly NamedServer[];
  /** Tools of the caller. */
  readonly tools: readonly unknown[];
  readonly choice: unknown;
  /** True if the choice requires a call of any tool. */
  readonly requiresAny: boolean;
}

/** Returns a request without its servers. Core requires a call of one of their tools if the caller has no other tools. */
export function withoutServers<Body>({ body, servers, tools, choice, requiresAny }: Rest): WithoutServers<Body> {
  const requiresTool = requiresAny && servers.length > 0 && tools.length === 0;
  return {
    body: {
      ...body,
      ...(tools.length > 0 && { tools }),
      ...(choice !== undefined && !requiresTool && { tool_choice: choice }),
    } as Body,
    servers,
    ...(requiresTool && { requiresTool }),
  };
}

/** Text of a result in a history. */
export function textOfOutput(output: unknown): string {
  if (typeof output === 'string') return output;
  return readArray(output)
    .map((part) => readString(readObject(part)['text']) ?? '')
    .join('\n');
}
