import { spawn } from 'node:child_process';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { createServers, startMcp, tool } from './mcp-rig.ts';

const KIT = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/package.json')).replace(
  'package.json',
  'dist/index.js',
);
const CLIENT = fileURLToPath(new URL('conformance-client.ts', import.meta.url));

/** The kit needs Node 22. On Node 20, `NODE_22` names another one. */
const NODE = Number(process.versions.node.split('.')[0]) >= 22 ? process.execPath : process.env['NODE_22'];

/** Scenarios of what the gateway passes on: tools. The kit knows protocols up to 2025-11-25. */
const OF_SERVERS = [
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'json-schema-2020-12',
  'dns-rebinding-protection',
] as const;
/** Scenarios for the gateway as a server for operators, whose tools are its own. */
const OF_ADMIN = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'] as const;
const OF_CLIENTS = ['initialize', 'tools_call'] as const;

const TOOLS = [
  'test_simple_text',
  'test_image_content',
  'test_audio_content',
  'test_embedded_resource',
  'test_multiple_content_types',
  'test_error_handling',
];

const NEW_SCHEMA = {
  name: 'json_schema_2020_12_tool',
  description: 'Tool with JSON Schema 2020-12 features',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  },
};

describe('the published conformance kit of MCP', () => {
  let servers: Awaited<ReturnType<typeof createServers>>;
  let gateway: TestGateway;
  const proxies: Server[] = [];
  let url = '';
  let adminUrl = '';

  /** The kit sends no key. */
  const startProxy = async (path: string, key: string): Promise<string> => {
    const proxy = createServer((req, res) => {
      const headers = { ...req.headers, authorization: `Bearer ${key}` };
      const sent = request(`${gateway.url}${path}`, { method: req.method, headers }, (response) => {
        res.writeHead(response.statusCode ?? 500, response.headers);
        response.pipe(res);
      });
      sent.on('error', () => res.destroy());
      req.pipe(sent);
    });
    proxies.push(proxy);
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    return `http://localhost:${(proxy.address() as AddressInfo).port}/mcp`;
  };

  before(async function () {
    if (NODE === undefined) this.skip();
    this.timeout(60_000);
    servers = await createServers();
    const s = await servers.make([...TOOLS.map((name) => tool(name)), NEW_SCHEMA]);
    gateway = await startMcp({ s: s.options }, { mcp: { admin: true } });
    url = await startProxy('/mcp/s', gateway.key);
    const { api_key: admin } = await gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'root',
      '--admin',
    );
    adminUrl = await startProxy('/mcp-admin', admin);
  });
  after(async () => {
    for (const proxy of proxies) {
      proxy.closeAllConnections();
      proxy.close();
    }
    await gateway?.stop();
    await servers?.remove();
  });

  for (const scenario of OF_SERVERS)
    it(`passes for the gateway as a server: ${scenario}`, async function () {
      this.timeout(60_000);
      await run(['server', '--url', url, '--scenario', scenario]);
    });

  for (const scenario of OF_ADMIN)
    it(`passes for the gateway as a server for operators: ${scenario}`, async function () {
      this.timeout(60_000);
      await run(['server', '--url', adminUrl, '--scenario', scenario]);
    });

  for (const scenario of OF_CLIENTS)
    it(`passes for the gateway as a client: ${scenario}`, async function () {
      this.timeout(120_000);
      const command = `${process.execPath} --import ${import.meta.resolve('tsx/esm')} ${CLIENT}`;
      await run(['client', '--command', command, '--scenario', scenario, '--timeout', '60000']);
    });
});

/** Runs the kit; fails with its output unless it passes. */
async function run(args: readonly string[]): Promise<void> {
  const child = spawn(NODE ?? process.execPath, [KIT, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code, text.slice(-3000)).to.equal(0);
}
