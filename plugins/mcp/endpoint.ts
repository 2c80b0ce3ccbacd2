import { isIP } from 'node:net';
import type { CallToolResult, Server } from '@modelcontextprotocol/server';
import {
  callContext,
  GatewayError,
  isGatewayError,
  isLoopback,
  type PluginApi,
  parseJson,
  type Route,
  type RouteContext,
  readObject,
  toGatewayError,
} from '../../contract/index.ts';
import { callOpenTool } from './call-tool.ts';
import type { OpenTool, ToolCatalog } from './catalog.ts';
import type { ServersByName } from './operation.ts';
import type { Sdk } from './sdk.ts';

/** Tools of one page of a list. */
const PAGE = 200;

/** Time for which clients may use a list again. */
const LIST_TTL_MS = 30_000;

/** Headers of a request that belong to the protocol. */
const HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

const MESSAGE = {
  type: 'object',
  required: ['jsonrpc', 'method'],
  properties: {
    jsonrpc: { const: '2.0' },
    id: { type: ['string', 'integer'] },
    method: { type: 'string', minLength: 1, maxLength: 256 },
    params: { type: 'object' },
  },
  examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
} as const;

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
  const { api, servers } = deps;
  const route = (path: string, summary: string, handler: Route['handler']): void =>
    api.route({
      method: 'POST',
      path,
      summary,
      description:
        'MCP by streamable HTTP, protocol 2026-07-28 and the former ones: `tools/list`, `tools/call`, `server/discover`, `initialize`, `ping`. Without sessions.',
      auth: ['key'],
      body: MESSAGE,
      responses: {
        200: { description: 'JSON-RPC response.', schema: { type: 'object' } },
        202: 'The notification was accepted.',
      },
      handler,
    });
  route('/mcp', 'Use the tools of all MCP servers', (ctx) => serve(deps, ctx as RouteContext, undefined));
  route('/mcp/:server', 'Use the tools of one MCP server', async (ctx) => {
    const server = servers.get(ctx.params['server'] ?? '');
    if (!server) throw new GatewayError('not_found', 'No MCP server has this name. POST /mcp offers all of them.');
    await serve(deps, ctx as RouteContext, server);
  });
}

async function serve(deps: EndpointDeps, ctx: RouteContext, only: OpenTool['server'] | undefined): Promise<void> {
  assertOrigin(ctx, deps.hosts);
  const message = readObject(ctx.state.body);
  const sdk = await deps.sdk();
  const headers = new Headers();
  for (const name of HEADERS) {
    const value = ctx.get(name);
    if (value !== '') headers.set(name, value);
  }
  const request = new Request('http://gateway.invalid/mcp', { method: 'POST', headers, signal: ctx.state.signal });
  const make = (): Server => createServer(deps, sdk, ctx, only);
  const response =
    message['method'] === 'subscriptions/listen'
      ? Response.json(methodNotFound(message), { status: 404 })
      : await respond(sdk, make, request, message);
  ctx.status = response.status;
  const type = response.headers.get('content-type');
  const text = await response.text();
  if (text === '') return;
  if (type !== null) ctx.set('content-type', type);
  ctx.body = text;
}

/** Changes of lists are not announced: lists have a time to live. */
function methodNotFound({ id }: Readonly<Record<string, unknown>>) {
  return { jsonrpc: '2.0', id: id ?? null, error: { code: -32_601, message: 'Method not found' } };
}

/** Has the SDK answer a message: by the headers and metadata of protocol 2026-07-28, otherwise as the former protocol. */
async function respond(sdk: Sdk, make: () => Server, request: Request, message: object): Promise<Response> {
  const { createMcpHandler, isLegacyRequest, WebStandardStreamableHTTPServerTransport } = sdk.server;
  if (!(await isLegacyRequest(request, message))) {
    const handler = createMcpHandler(make, { legacy: 'reject' });
    return handler.fetch(request, { parsedBody: message });
  }
  const server = make();
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  try {
    await server.connect(transport);
    return await transport.handleRequest(request, { parsedBody: message });
  } finally {
    await server.close();
  }
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
  const explain = (error: unknown): Error => {
    const { code, message, status } = isGatewayError(error) ? error : toGatewayError(error);
    return new ProtocolError(status, message, { code, request_id: ctx.state.requestId });
  };
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw error instanceof ProtocolError ? error : explain(error);
    }
  };
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

/** Names of this machine. */
const LOCAL = /^(?:localhost|.*\.localhost)$/;

/**
 * Rejects hosts that are not this gateway, since a page may have a name that leads to this machine. Rejects pages of origins
 * other than that of the gateway and those of `server.cors.origins`.
 */
function assertOrigin(ctx: RouteContext, hosts: readonly string[] | undefined): void {
  const host = hostnameOf(`http://${ctx.get('host')}`);
  const isLocal = LOCAL.test(host) || (isIP(host) !== 0 && isLoopback(host));
  const isNamed = isLocal || hosts?.includes(host) === true;
  const isConnectedLocally = isLoopback(ctx.req.socket.localAddress ?? '');
  if (!isNamed && (hosts || isConnectedLocally))
    throw new GatewayError(
      'permission_denied',
      'The host of this request is not known here. The operator adds it to `mcp.hosts`.',
    );
  const origin = ctx.get('origin');
  // Set for allowed origins alone, before the handler.
  const isAllowed = ctx.res.hasHeader('access-control-allow-origin') || (isNamed && hostnameOf(origin) === host);
  if (origin !== '' && !isAllowed)
    throw new GatewayError('permission_denied', 'Pages of this origin may not use MCP; see `server.cors.origins`.');
}

/** Returns the host name of a URL, in lower case; empty for an invalid one. */
function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : '';
}
