import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, Server as McpServer } from '@modelcontextprotocol/server';
import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { namesFor, send, startMcp, textOf } from './mcp-rig.ts';

const TOOLS = ['echo', 'large', 'endless', 'hang', 'headers'];

/** Server of protocol 2026-07-28, whose tools misbehave on the wire. */
class ScriptedHttp {
  readonly headers: IncomingHttpHeaders[] = [];
  readonly redirected: string[] = [];
  readonly #server: Server;
  readonly #handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'scripted', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({
      tools: TOOLS.map((name) => ({
        name,
        inputSchema: {
          type: 'object' as const,
          ...(name === 'headers' && { properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }),
        },
      })),
    }));
    server.setRequestHandler('tools/call', ({ params }) => ({
      content: [{ type: 'text', text: JSON.stringify(params.arguments ?? {}) }],
    }));
    return server;
  });

  constructor() {
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    this.headers.push(req.headers);
    if (req.url === '/elsewhere') this.redirected.push(body);
    if (req.url === '/redirect') return void res.writeHead(307, { location: '/elsewhere' }).end();
    if (req.url === '/page') return void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    if (req.url === '/refuses') return void res.writeHead(401, { 'www-authenticate': 'Bearer' }).end('{}');
    const name = (JSON.parse(body) as { params?: { name?: string } }).params?.name;
    if (name === 'hang') return;
    if (name === 'large') {
      res.writeHead(200, { 'content-type': 'application/json' });
      const write = (): void => {
        while (!res.destroyed && res.write(' '.repeat(1024 * 1024)));
        if (!res.destroyed) res.once('drain', write);
      };
      return write();
    }
    if (name === 'endless') {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => res.write(': alive\n\n'), 20);
      return void res.once('close', () => clearInterval(timer));
    }
    const request = new Request(`http://127.0.0.1${req.url}`, {
      method: req.method ?? 'POST',
      headers: req.headers as Record<string, string>,
      body,
    });
    const response = await this.#handler.fetch(request);
    res.writeHead(response.status, Object.fromEntries(response.headers));
    res.end(await response.text());
  }
}

describe('an MCP server over HTTP', () => {
  let http: ScriptedHttp;
  let gateway: TestGateway;
  before(async () => {
    http = new ScriptedHttp();
    const url = await http.listen();
    const limits = { timeout: '500ms', startTimeout: '3s' };
    gateway = await startMcp({
      s: { url: `${url}/mcp`, auth: { value: 'Bearer server-secret' }, ...limits },
      patient: { url: `${url}/mcp`, auth: { value: 'Bearer server-secret' } },
      redirect: { url: `${url}/redirect`, auth: { header: 'X-Key', value: 'other-secret' }, ...limits },
      page: { url: `${url}/page`, ...limits },
      refuses: { url: `${url}/refuses`, auth: { value: 'wrong-secret' }, ...limits },
      down: { url: 'http://127.0.0.1:1/mcp', ...limits },
    });
  });
  after(async () => {
    await gateway?.stop();
    http?.close();
  });

  const call = (name: string, args: object = {}, server = 's') =>
    send(gateway, 'tools/call', { name: `${server}__${name}`, arguments: args });

  it('is used by protocol 2026-07-28, with its own key and never that of the caller', async () => {
    expect(textOf(await call('echo', { a: 1 }))).to.equal('{"a":1}');
    const sent = http.headers.findLast((headers) => headers['mcp-name'] === 'echo');
    expect(sent).to.include({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      authorization: 'Bearer server-secret',
    });
    expect(JSON.stringify(http.headers)).to.not.include(gateway.key);
  });

  it('gets the headers that its parameters ask for, which callers need not send', async () => {
    expect(textOf(await call('headers', { region: 'us-west1' }))).to.equal('{"region":"us-west1"}');
    expect(http.headers.at(-1)).to.include({ 'mcp-param-region': 'us-west1' });
    const { result } = await send(gateway, 'tools/list');
    expect(JSON.stringify(result)).to.not.include('x-mcp-header');
  });

  it('is not offered if it redirects, is a page, refuses the key or is down', async () => {
    const offered = ['s', 'patient'].flatMap((server) => TOOLS.map((name) => `${server}__${name}`));
    expect(await namesFor(gateway)).to.have.members(offered);
    expect(http.redirected, 'a redirect is not followed').to.deep.equal([]);
    const { data } = await gateway.command<{ data: readonly object[] }>('tools', 'list');
    expect(data).to.have.length(6);
  });

  for (const tool of ['hang', 'endless'])
    it(`is bounded in time (${tool})`, async () => {
      expect((await call(tool)).error?.data).to.include({ code: 'provider_timeout' });
      expect(textOf(await call('echo'))).to.equal('{}');
    });

  it('is bounded in bytes', async () => {
    const { error } = await call('large', {}, 'patient');
    expect(error?.data).to.include({ code: 'provider_invalid_response' });
    expect(textOf(await call('echo'))).to.equal('{}');
  });

  it('has its key in no log and no printed configuration', async () => {
    expect(gateway.logText()).to.not.match(/server-secret|other-secret|wrong-secret/);
    const admin = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin')).api_key;
    const text = await (
      await gateway.get('/api/core/admin/configuration', { authorization: `Bearer ${admin}` })
    ).text();
    expect(text)
      .to.include('"mcp"')
      .and.not.match(/server-secret|other-secret|wrong-secret/);
  });
});
