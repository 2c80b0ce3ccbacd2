import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { VERSION } from '../config/package-root.ts';
import type { CommandContext } from './io.ts';
import { CliError, EXIT } from './io.ts';
import { findRunning, type RunningGateway } from './running-gateway.ts';

const CLIENT = '@modelcontextprotocol/client';
const SERVER = '@modelcontextprotocol/server';

type ClientSdk = typeof import('@modelcontextprotocol/client');
type ServerSdk = typeof import('@modelcontextprotocol/server');
type StdioSdk = typeof import('@modelcontextprotocol/server/stdio');
type AdminClient = InstanceType<ClientSdk['Client']>;

/** `tollgate config mcp`: the tools of `/mcp-admin` of a gateway, for a client that starts a program. Ends with its stdin. */
export async function runMcp(context: CommandContext): Promise<void> {
  const folder =
    context.globals.config === undefined ? process.cwd() : path.dirname(path.resolve(context.globals.config));
  const gateway = await findRunning(context);
  const client = await connect(await importFrom<ClientSdk>(CLIENT, folder), gateway);
  const { Server } = await importFrom<ServerSdk>(SERVER, folder);
  const { serveStdio, StdioServerTransport } = await importFrom<StdioSdk>(`${SERVER}/stdio`, folder);
  const instructions = client.getInstructions();
  const makeServer = () => {
    const server = new Server(
      { name: 'tollgate-admin', version: VERSION },
      { capabilities: { tools: {} }, ...(instructions !== undefined && { instructions }) },
    );
    server.setRequestHandler('tools/list', ({ params }) => client.listTools(params));
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }) =>
      client.callTool({ name, ...(args && { arguments: args }) }),
    );
    return server;
  };
  const transport = new StdioServerTransport();
  const handle = serveStdio(makeServer, { transport });
  await new Promise<void>((resolve) => {
    process.stdin.once('close', resolve);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await handle.close();
  await client.close();
}

async function connect(
  { Client, StreamableHTTPClientTransport }: ClientSdk,
  { url, fetch, authorization }: RunningGateway,
): Promise<AdminClient> {
  const client = new Client({ name: 'tollgate', version: VERSION });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp-admin`), {
    async fetch(to, init) {
      const headers = new Headers(init?.headers);
      headers.set('authorization', await authorization());
      // The client of undici knows no `Headers` of Node.
      return fetch(String(to), { ...init, headers: Object.fromEntries(headers), redirect: 'manual' });
    },
  });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\p{Cc}/gu, ' ').slice(0, 300) : 'unknown';
    throw new CliError(
      `no MCP connection to ${url}/mcp-admin (${reason})`,
      EXIT.unavailable,
      'The gateway needs "mcp: { admin: true }" in its configuration, and the key a role or scopes.',
    );
  }
}

/** Imports a package of the MCP SDK from the folder of the configuration, or from that of Tollgate. */
async function importFrom<Module>(name: string, folder: string): Promise<Module> {
  for (const from of [path.join(folder, 'tollgate.js'), import.meta.url]) {
    let file: string;
    try {
      file = createRequire(from).resolve(name);
    } catch {
      continue;
    }
    return (await import(pathToFileURL(file).href)) as Module;
  }
  throw new CliError('the MCP SDK is not installed', EXIT.unavailable, `Run here: npm install ${CLIENT} ${SERVER}`);
}
