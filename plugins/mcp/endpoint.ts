import type { CallToolResult, Server } from '@modelcontextprotocol/server';
import { callContext, GatewayError, type PluginApi, parseJson, type RouteContext } from '../../contract/index.ts';
import { callOpenTool } from './call-tool.ts';
import type { OpenTool, ToolCatalog } from './catalog.ts';
import { explained, messageRoute } from './message-route.ts';
import type { ServersByName } from './operation.ts';
import type { Sdk } from './sdk.ts';

/** Tools of one page of a list. */
const PAGE = 200;

/** Time for which clients may use a list again. */
const LIST_TTL_MS = 30_000;

interface EndpointDeps {
  readonly api: PluginApi;
  readonly sdk: () => Promise<Sdk>;
  readonly servers: ServersByName;
  readonly catalog: ToolCatalog;
  /** Configured host names of the gateway. */
  readonly hosts: readonly string[] | undefined;
}

/** `POST /mcp` for the permitted tools of all servers, and `POST /mcp/{server}` for those of one. */
export function registerEndpoint(deps: EndpointDeps): void {
  const { api, servers, sdk, hosts } = deps;
  api.route(
    messageRoute({
      path: '/mcp',
      summary: 'Use the tools of all MCP servers',
      sdk,
      hosts,
      open: (ctx, loaded) => () => createServer(deps, loaded, ctx, undefined),
    }),
  );
  api.route(
    messageRoute({
      path: '/mcp/:server',
      summary: 'Use the tools of one MCP server',
      sdk,
      hosts,
      open(ctx, loaded) {
        const server = servers.get(ctx.params['server'] ?? '');
        if (!server) throw new GatewayError('not_found', 'No MCP server has this name. POST /mcp offers all of them.');
        return () => createServer(deps, loaded, ctx, server);
      },
    }),
  );
}

/** MCP server for one request of one caller. */
function createServer(
  { api, catalog }: EndpointDeps,
  sdk: Sdk,
  ctx: RouteContext,
  only: OpenTool['server'] | undefined,
): Server {
  const { ProtocolError, Server: McpServer } = sdk.server;
  const cacheHint = { ttlMs: LIST_TTL_MS, cacheScope: 'private' } as const;
  const server = new McpServer(
    { name: only ? `tollgate/${only.options.name}` : 'tollgate', version: api.settings.version },
    { capabilities: { tools: {} }, cacheHints: { 'tools/list': cacheHint, 'server/discover': cacheHint } },
  );
  const attempt = <T>(work: () => Promise<T>): Promise<T> => explained(sdk, ctx, work);
  server.setRequestHandler('tools/list', (message) =>
    attempt(async () => {
      const open = await catalog.list(ctx.state.principal, only);
      const { cursor } = message.params ?? {};
      const start = cursor === undefined ? 0 : Number(cursor);
      if (!Number.isSafeInteger(start) || start < 0 || (cursor !== undefined && !/^\d{1,6}$/.test(cursor)))
        throw new ProtocolError(-32_602, 'The cursor is not valid. Begin without one.');
      const end = start + PAGE;
      return {
        tools: open.slice(start, end).map(({ name, tool }) => ({ ...tool.definition, name })),
        ...(end < open.length && { nextCursor: String(end) }),
      };
    }),
  );
  server.setRequestHandler('tools/call', (message) =>
    attempt(async () => {
      const { name, arguments: args = {} } = message.params;
      const open = await catalog.find(ctx.state.principal, name, only);
      // The same for a tool that does not exist, that waits for approval, and that the caller may not use.
      if (!open)
        throw new ProtocolError(
          -32_602,
          `Unknown tool: ${name.slice(0, 128)}. tools/list has those that you may call.`,
        );
      return callTool(api, ctx, open, args);
    }),
  );
  return server;
}

async function callTool(api: PluginApi, ctx: RouteContext, open: OpenTool, args: Readonly<Record<string, unknown>>) {
  const { response, headers } = await callOpenTool(api, open, JSON.stringify(args), callContext(ctx.state));
  ctx.set(headers);
  const { structured_json: structured, ...result } = response;
  return { ...result, ...(structured !== undefined && { structuredContent: parseJson(structured) }) } as CallToolResult;
}
