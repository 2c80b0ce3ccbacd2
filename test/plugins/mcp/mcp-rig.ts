import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../support/gateways/gateway.ts';

const SCRIPT = fileURLToPath(new URL('scripted-server.mjs', import.meta.url));

/** Definition of a tool of the scripted server. */
export function tool(name: string, description = `Runs ${name}.`): object {
  return { name, description, inputSchema: { type: 'object' } };
}

/** Scripted server, and the file with its tools. */
export interface ScriptedServer {
  /** Its options in the configuration. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Replaces its tools; it lists them at the next question. */
  setTools(tools: readonly object[]): Promise<void>;
}

/** Creates servers in a folder that is removed by `remove`. */
export async function createServers(): Promise<{
  make(tools: readonly (string | object)[], words?: readonly string[], options?: object): Promise<ScriptedServer>;
  remove(): Promise<void>;
}> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-mcp-'));
  let made = 0;
  return {
    async make(tools, words = [], options = {}) {
      made += 1;
      const file = path.join(folder, `tools-${made}.json`);
      const setTools = (next: readonly object[]): Promise<void> => writeFile(file, JSON.stringify(next));
      await setTools(tools.map((each) => (typeof each === 'string' ? tool(each) : each)));
      return { options: { command: process.execPath, args: [SCRIPT, file, ...words], ...options }, setTools };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
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
