import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, Server as McpServer } from '@modelcontextprotocol/server';
import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { send, startMcp } from './mcp-rig.ts';

const TOKEN_KEY = 'a key of thirty-two characters or more';

/** MCP server whose tool `whoami` returns the account of a token, and its authorization server. */
export class AccountServer {
  readonly tokens = new Map<string, string>();
  readonly refreshes = new Map<string, string>();
  readonly codes = new Map<string, { readonly account: string; readonly challenge: string }>();
  readonly revoked: string[] = [];
  /** Authorization headers that were sent to the MCP server. */
  readonly sent: (string | undefined)[] = [];
  expiresIn = 3600;
  issuerInResponse: string | undefined;
  registrations = 0;
  /** Called with each token request, and awaited before its response. */
  onToken: (() => Promise<void>) | undefined;
  /** Size of a filling in responses to token requests. */
  filling = 0;
  /** Of the MCP server, and of the authorization server, which has another host. */
  url = '';
  issuer = '';
  readonly #server: Server = createServer((req, res) => void this.#serve(req, res));

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, resolve));
    const { port } = this.#server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}`;
    this.issuer = `http://localhost:${port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Lets an account approve, as its browser would. Returns the redirect to the gateway. */
  approve(location: string, account: string): string {
    const { searchParams } = new URL(location);
    expect(searchParams.get('code_challenge_method')).to.equal('S256');
    expect(searchParams.get('resource')).to.equal(`${this.url}/mcp`);
    const code = randomBytes(16).toString('hex');
    this.codes.set(code, { account, challenge: searchParams.get('code_challenge') ?? '' });
    const back = new URL(searchParams.get('redirect_uri') ?? '');
    back.searchParams.set('code', code);
    back.searchParams.set('state', searchParams.get('state') ?? '');
    back.searchParams.set('iss', this.issuerInResponse ?? this.issuer);
    return back.href;
  }

  #grant(account: string): object {
    const [access, refresh] = [`at-${account}-${randomBytes(8).toString('hex')}`, randomBytes(16).toString('hex')];
    this.tokens.set(access, account);
    this.refreshes.set(refresh, account);
    const filling = 'x'.repeat(this.filling);
    return { access_token: access, token_type: 'Bearer', refresh_token: refresh, expires_in: this.expiresIn, filling };
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const json = (status: number, value: object): undefined =>
      void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const { url, issuer } = this;
    const path = req.url ?? '';
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return json(200, { resource: `${url}/mcp`, authorization_servers: [issuer] });
    if (path.startsWith('/.well-known/'))
      return json(200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        revocation_endpoint: `${issuer}/revoke`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
        authorization_response_iss_parameter_supported: true,
      });
    if (path === '/register') {
      this.registrations += 1;
      return json(201, { ...(JSON.parse(body) as object), client_id: `client-${this.registrations}` });
    }
    if (path === '/token') {
      await this.onToken?.();
      return this.#token(new URLSearchParams(body), json);
    }
    if (path === '/revoke') {
      this.revoked.push(new URLSearchParams(body).get('token') ?? '');
      return json(200, {});
    }
    this.sent.push(req.headers.authorization);
    const account = this.tokens.get((req.headers.authorization ?? '').replace('Bearer ', ''));
    if (account === undefined) return void res.writeHead(401, { 'www-authenticate': 'Bearer' }).end('{}');
    const handler = createMcpHandler(() => {
      const server = new McpServer({ name: 'accounts', version: '1' }, { capabilities: { tools: {} } });
      server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }));
      server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: account }] }));
      return server;
    });
    const request = new Request(`http://127.0.0.1${path}`, {
      method: 'POST',
      headers: req.headers as Record<string, string>,
      body,
    });
    const response = await handler.fetch(request);
    res.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
  }

  #token(form: URLSearchParams, json: (status: number, value: object) => undefined): undefined {
    const refresh = form.get('refresh_token') ?? '';
    if (form.get('grant_type') === 'refresh_token') {
      const account = this.refreshes.get(refresh);
      this.refreshes.delete(refresh);
      return account === undefined ? json(400, { error: 'invalid_grant' }) : json(200, this.#grant(account));
    }
    const code = this.codes.get(form.get('code') ?? '');
    this.codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (code?.challenge !== challenge) return json(400, { error: 'invalid_grant' });
    return json(200, this.#grant(code.account));
  }
}

/** Gateway before such a server, and its users. */
export async function startAccounts(users: readonly string[], config: Readonly<Record<string, unknown>> = {}) {
  const accounts = new AccountServer();
  await accounts.listen();
  const gateway: TestGateway = await startMcp(
    { s: { url: `${accounts.url}/mcp`, auth: { oauth: { issuer: accounts.issuer } } } },
    { ...config, mcp: { publicUrl: 'http://gateway.example', tokenKey: TOKEN_KEY } },
  );
  const keys = new Map<string, string>();
  const addUser = async (user: string): Promise<void> => {
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', user);
    keys.set(user, key);
  };
  for (const user of users) await addUser(user);
  const as = (user: string) => ({ authorization: `Bearer ${keys.get(user)}` });
  const local = (url: string): string => url.replace('http://gateway.example', '');
  const anonymous = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(gateway.url + path, { redirect: 'manual', ...init });
  const comeBack = (url: string, cookie: string): Promise<Response> => anonymous(local(url), { headers: { cookie } });
  /** Opens a link and goes on, as a browser. Returns its cookie and the page of the authorization server. */
  const open = async (user: string): Promise<{ readonly cookie: string; readonly location: string }> => {
    const made = await gateway.post('/mcp/s/connect', undefined, as(user));
    const { url } = (await made.json()) as { url: string };
    const page = await anonymous(local(url));
    expect(await page.text()).to.include(`user <b>${user}</b>`);
    const gone = await anonymous(local(url), { method: 'POST' });
    expect(gone.status).to.equal(303);
    const [cookie = ''] = (gone.headers.get('set-cookie') ?? '').split(';');
    return { cookie, location: gone.headers.get('location') ?? '' };
  };
  return {
    accounts,
    gateway,
    addUser,
    as,
    local,
    anonymous,
    comeBack,
    open,
    async connect(user: string): Promise<void> {
      const { cookie, location } = await open(user);
      const response = await comeBack(accounts.approve(location, user), cookie);
      expect([response.status, await response.text()].join(' '))
        .to.include('200')
        .and.include('is connected');
    },
    async isConnected(user: string): Promise<unknown> {
      return ((await (await gateway.get('/mcp/s/connect', as(user))).json()) as { connected: unknown }).connected;
    },
    list: (user: string) => send(gateway, 'tools/list', {}, { key: keys.get(user) ?? '' }),
    whoami: (user: string) =>
      send(gateway, 'tools/call', { name: 's__whoami', arguments: {} }, { key: keys.get(user) ?? '' }),
    async stop(): Promise<void> {
      await gateway.stop();
      accounts.close();
    },
  };
}
