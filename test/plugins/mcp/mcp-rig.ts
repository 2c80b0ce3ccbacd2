import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../support/gateways/gateway.ts';

const SCRIPT = fileURLToPath(new URL('scripted-server.mjs', import.meta.url));

/** Definition of a tool of the scripted server. */
export function tool(name: string, description = `Runs ${name}.`): object {
  return { name, description, inputSchema: { type: 'object' } };
}

const toolOf = (given: string | object): object => (typeof given === 'string' ? tool(given) : given);

/** Request or notification of JSON-RPC. */
interface Message {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly arguments?: object };
}

const text = (value: string): object => ({ content: [{ type: 'text', text: value }] });

/** Tools of servers in this process: those of the scripted program that tests of callers use. */
const LOCAL_TOOLS: Readonly<Record<string, (args: object, calls: number) => object | undefined>> = {
  echo: (args) => text(JSON.stringify(args)),
  calls: (_args, calls) => text(String(calls)),
  fail: () => ({ ...text('it failed'), isError: true }),
  data: (args) => ({ ...text('see the data'), structuredContent: args }),
  status: () => ({ ...text('a failed one'), structuredContent: { status: 'it failed' } }),
  hang: () => undefined,
};

/** Starts an MCP server in this process, with HTTP and the former protocol. */
async function startLocal(tools: readonly object[]): Promise<{ readonly url: string; close(): void }> {
  let calls = 0;
  /** Returns the result or error of a request; undefined for none. */
  const handle = ({ method, params = {} }: Message): object | undefined => {
    if (method === 'initialize') {
      const serverInfo = { name: 'local', version: '1' };
      return { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } };
    }
    if (method === 'tools/list') return { result: { tools } };
    if (method === 'ping') return { result: {} };
    if (method !== 'tools/call') return { error: { code: -32_601, message: 'Method not found' } };
    calls += 1;
    const run = LOCAL_TOOLS[params.name ?? ''];
    if (!run) return { error: { code: -32_602, message: `no tool ${params.name}` } };
    const result = run(params.arguments ?? {}, calls);
    return result && { result };
  };
  const respond = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const message = (await json(req)) as Message;
    if (message.id === undefined) return void res.writeHead(202).end();
    const response = handle(message);
    if (!response) return;
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...response }));
  };
  const server = createServer((req, res) => void respond(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Options of a server that does not exist. */
export const DOWN = Object.freeze({ url: 'http://127.0.0.1:1/mcp' });

/** Scripted server, and the file with its tools. */
export interface ScriptedServer {
  /** Its options in the configuration. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Replaces its tools; it lists them at the next question. */
  setTools(tools: readonly object[]): Promise<void>;
}

/**
 * Creates servers: `serve` in this process with HTTP, `make` as programs. `remove` closes the former, and removes the folder
 * of the latter.
 */
export async function createServers(): Promise<{
  serve(tools: readonly (string | object)[], options?: object): Promise<Pick<ScriptedServer, 'options'>>;
  make(tools: readonly (string | object)[], words?: readonly string[], options?: object): Promise<ScriptedServer>;
  remove(): Promise<void>;
}> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-mcp-'));
  let made = 0;
  const local: { close(): void }[] = [];
  return {
    async serve(tools, options = {}) {
      const server = await startLocal(tools.map(toolOf));
      local.push(server);
      return { options: { url: server.url, ...options } };
    },
    async make(tools, words = [], options = {}) {
      made += 1;
      const file = path.join(folder, `tools-${made}.json`);
      const setTools = (next: readonly object[]): Promise<void> => writeFile(file, JSON.stringify(next));
      await setTools(tools.map(toolOf));
      return { options: { command: process.execPath, args: [SCRIPT, file, ...words], ...options }, setTools };
    },
    remove() {
      for (const server of local) server.close();
      return rm(folder, { recursive: true, force: true });
    },
  };
}

/** Gateway whose callers may use all tools, unless the configuration has plans. */
export function startMcp(
  servers: Readonly<Record<string, object>>,
  { mcp = {}, ...config }: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  return startGateway(
    {
      billing: 'track',
      plans: { all: { serverTools: ['mcp:*'] } },
      defaultPlan: 'all',
      mcp: { servers, ...(mcp as object) },
      ...config,
    },
    options,
  );
}

/** JSON-RPC response, and its HTTP status. */
export interface Reply {
  readonly status: number;
  readonly result?: {
    readonly tools?: readonly { readonly name: string; readonly description?: string }[];
    readonly content?: readonly { readonly type: string; readonly text?: string }[];
    readonly isError?: boolean;
    readonly structuredContent?: unknown;
  } & Readonly<Record<string, unknown>>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

const VERSION = '2026-07-28';

/** Sends a request of protocol 2026-07-28. `headers` replaces those that its rules demand. */
export async function send(
  gateway: TestGateway,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  {
    headers = {},
    key = gateway.key,
    at = '/mcp',
  }: { headers?: Record<string, string>; key?: string; at?: string } = {},
): Promise<Reply> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const name = params['name'];
  const response = await gateway.post(
    at,
    { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } },
    {
      authorization: `Bearer ${key}`,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
    },
  );
  const text = await response.text();
  return { status: response.status, ...(text === '' ? {} : (JSON.parse(text) as object)) };
}

/** Calls a tool of the scripted server `s`. */
export function call(gateway: TestGateway, name: string, args: object = {}, key?: string): Promise<Reply> {
  return send(gateway, 'tools/call', { name: `s__${name}`, arguments: args }, { ...(key !== undefined && { key }) });
}

/** Names of the tools that a caller may call. */
export async function namesFor(gateway: TestGateway, key?: string, at?: string): Promise<readonly string[]> {
  const { result } = await send(
    gateway,
    'tools/list',
    {},
    { ...(key !== undefined && { key }), ...(at !== undefined && { at }) },
  );
  return (result?.tools ?? []).map(({ name }) => name);
}

/** First text of a result. */
export function textOf({ result }: Reply): string {
  return result?.content?.[0]?.text ?? '';
}

/** Client of the SDK at the gateway. */
export async function connectClient(gateway: TestGateway, mode: 'auto' | 'legacy', at = '/mcp'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${gateway.key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}${at}`), { requestInit: { headers } }));
  return client;
}
