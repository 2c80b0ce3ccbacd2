import { isIP } from 'node:net';
import type { Server } from '@modelcontextprotocol/server';
import {
  GatewayError,
  isGatewayError,
  isLoopback,
  type Route,
  type RouteContext,
  readObject,
  toGatewayError,
} from '../../contract/index.ts';
import type { Sdk } from './sdk.ts';

/** Requests of MCP over HTTP, for one server of the SDK each. */

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

/** Options of a path that speaks MCP. */
interface MessageRoute extends Pick<Route, 'path' | 'summary' | 'description'> {
  readonly sdk: () => Promise<Sdk>;
  /** Configured host names of the gateway. */
  readonly hosts: readonly string[] | undefined;
  /** Returns the function that makes the server of a request, or throws. Default credential: a key. */
  open(ctx: RouteContext, sdk: Sdk): (() => Server) | Promise<() => Server>;
}

/** Route of a path that speaks MCP: each message gets a server of its own, so there are no sessions. */
export function messageRoute(
  { path, summary, description = '', sdk, hosts, open }: MessageRoute,
  access: Partial<Route> = {},
): Route {
  return {
    auth: ['key'],
    ...access,
    method: 'POST',
    path,
    summary,
    description:
      `MCP by streamable HTTP, protocol 2026-07-28 and the former ones: \`tools/list\`, \`tools/call\`, \`server/discover\`, \`initialize\`, \`ping\`. Without sessions. ${description}`.trim(),
    body: MESSAGE,
    responses: {
      200: { description: 'JSON-RPC response.', schema: { type: 'object' } },
      202: 'The notification was accepted.',
    },
    async handler(context) {
      const ctx = context as RouteContext;
      assertOrigin(ctx, hosts);
      const message = readObject(ctx.state.body);
      const loaded = await sdk();
      const make = await open(ctx, loaded);
      const headers = new Headers();
      for (const name of HEADERS) {
        const value = ctx.get(name);
        if (value !== '') headers.set(name, value);
      }
      const request = new Request('http://gateway.invalid/mcp', { method: 'POST', headers, signal: ctx.state.signal });
      const response =
        message['method'] === 'subscriptions/listen'
          ? Response.json(methodNotFound(message), { status: 404 })
          : await respond(loaded, make, request, message);
      ctx.status = response.status;
      const type = response.headers.get('content-type');
      const text = await response.text();
      if (text === '') return;
      if (type !== null) ctx.set('content-type', type);
      ctx.body = text;
    },
  };
}

/** Runs the handler of a method. Errors become those of JSON-RPC, with the code of the gateway. */
export async function explained<T>(
  { server: { ProtocolError } }: Pick<Sdk, 'server'>,
  ctx: RouteContext,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const { code, message, status } = isGatewayError(error) ? error : toGatewayError(error);
    throw new ProtocolError(status, message, { code, request_id: ctx.state.requestId });
  }
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
