import { expect } from 'chai';
import { toFile } from 'openai';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import { type BatchVendor, line, startBatchVendor } from '../operations/batches/batch-vendor.ts';
import { createServers, DOWN } from './mcp-rig.ts';

interface CallRow {
  readonly request_id: string;
  readonly operation: string;
  readonly model: string;
  readonly outcome: string;
  readonly status: number;
  readonly error_code: string | null;
  readonly refused_by: string | null;
}

describe('a chat with tools of MCP servers that is refused before its first turn', () => {
  let gateway: TestGateway;
  let vendor: BatchVendor;
  let servers: Awaited<ReturnType<typeof createServers>>;
  let keys: Record<string, string>;

  before(async () => {
    vendor = await startBatchVendor();
    servers = await createServers();
    const s = await servers.serve(['echo']);
    gateway = await startGateway({
      providers: { echo: {}, openai: { apiKey: 'sk-operator', baseUrl: `${vendor.url}/v1` } },
      dialects: { ollama: {}, interactions: {}, portkey: {} },
      plans: { all: { serverTools: ['mcp:*'] }, none: {} },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options, down: DOWN } },
    });
    const create = async (plan: string, ...more: readonly string[]): Promise<string> =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', '--plan', plan, ...more)).api_key;
    keys = { all: await create('all'), none: await create('none'), admin: await create('all', '--admin') };
  });
  after(async () => {
    await gateway?.stop();
    await servers?.remove();
    await vendor?.close();
  });

  const MESSAGES = [{ role: 'user', content: 'Where?' }];
  const CHAT = { model: 'echo/echo', messages: MESSAGES };
  const ways: Readonly<Record<string, (tool: object) => object>> = {
    '/v1/chat/completions': (tool) => ({ ...CHAT, tools: [tool] }),
    '/v1/responses': (tool) => ({ model: 'echo/echo', input: 'Where?', tools: [tool] }),
    '/v1/messages': (tool) => ({ ...CHAT, max_tokens: 10, tools: [tool] }),
  };
  /** APIs without tools of servers. */
  const others: Readonly<Record<string, object>> = {
    '/api/chat': CHAT,
    '/api/generate': { model: 'echo/echo', prompt: 'Where?' },
    '/v1/completions': { model: 'echo/echo', prompt: 'Where?' },
    '/v1beta/interactions': { model: 'echo/echo', input: 'Where?' },
    '/api/core/admin/console/chat': CHAT,
  };
  const S = { type: 'mcp', server: 's' };
  const OFF = { type: 'mcp', server: 'down' };

  const send = async (path: string, body: object, key: string | undefined) => {
    const response = await gateway.post(path, body, { authorization: `Bearer ${key}` });
    const requestId = response.headers.get('x-request-id') ?? '';
    const text = await response.text();
    const { data } = await gateway.command<{ data: readonly CallRow[] }>('calls', '--request', requestId);
    return {
      status: response.status,
      text,
      rows: data.map((row) => `${row.operation} ${row.model} ${row.outcome} ${row.error_code}`),
    };
  };

  for (const [path, body] of Object.entries(ways))
    it(`is among the calls (${path})`, async () => {
      const cases = [
        [{ type: 'mcp', server: 'none' }, keys['all'], 400, 'refused invalid_request'],
        [{ ...S, require_approval: 'always' }, keys['all'], 400, 'refused invalid_request'],
        [S, keys['none'], 403, 'refused permission_denied'],
        [{ ...S, allowed_tools: ['none'] }, keys['all'], 403, 'refused permission_denied'],
        [OFF, keys['all'], 503, 'refused provider_unavailable'],
      ] as const;
      for (const [tool, key, status, end] of cases)
        for (const stream of [false, true]) {
          const got = await send(path, { ...body(tool), ...(stream && { stream }) }, key);
          expect(got.status, got.text).to.equal(status);
          expect(got.rows, got.text).to.deep.equal([`chat echo/echo ${end}`]);
        }
    });

  it('is among the calls (Gemini)', async () => {
    for (const [name, key, status] of [
      ['s', keys['none'], 403],
      ['down', keys['all'], 503],
    ] as const)
      for (const action of ['generateContent', 'streamGenerateContent']) {
        const body = { contents: [{ parts: [{ text: 'Where?' }] }], tools: [{ mcpServers: [{ name }] }] };
        const got = await send(`/v1beta/models/echo/echo:${action}`, body, key);
        expect(got.status, got.text).to.equal(status);
        expect(got.rows.join()).to.match(/^chat echo\/echo refused [a-z_]+$/);
      }
  });

  it('is refused for each forged name of a server or tool', async () => {
    for (const server of ['__proto__', 'constructor', 'S', ' s', 's/echo', 'mcp:s', '*', '', 'x'.repeat(5000)]) {
      const got = await send('/v1/chat/completions', { ...CHAT, tools: [{ type: 'mcp', server }] }, keys['all']);
      expect([got.status, got.rows], got.text).to.deep.equal([400, ['chat echo/echo refused invalid_request']]);
    }
    for (const name of ['__proto__', 'constructor', 'Echo', 's__echo', '../echo', 's/echo', '*', '']) {
      const tools = [{ ...S, allowed_tools: [name] }];
      const got = await send('/v1/chat/completions', { ...CHAT, tools }, keys['all']);
      expect([got.status, got.rows], got.text).to.deep.equal([403, ['chat echo/echo refused permission_denied']]);
    }
  });

  it('is among the calls also for what its other fields say', async () => {
    const own = { type: 'function', function: { name: 's__echo' } };
    for (const fields of [{ n: 2, tools: [S] }, { tools: [own, S] }]) {
      const got = await send('/v1/chat/completions', { ...CHAT, ...fields }, keys['all']);
      expect(got.status).to.equal(400);
      expect(got.rows).to.deep.equal(['chat echo/echo refused invalid_request']);
    }
  });

  for (const [path, body] of Object.entries(others))
    it(`says that ${path} does not offer MCP servers, and sends nothing`, async () => {
      for (const tool of [S, { type: 'mcp', server_label: 'other', server_url: 'https://mcp.example' }])
        for (const stream of [false, true]) {
          const got = await send(path, { ...body, tools: [tool], stream }, keys['admin']);
          expect(got.status, got.text).to.equal(400);
          const { error, message = error?.message ?? error } = JSON.parse(got.text);
          expect(message).to.match(
            /tools\[0\]` names an MCP server, and this API does not|MCP servers are not offered/,
          );
          expect(got.rows).to.deep.equal([]);
        }
    });

  it('offers them to clients of Portkey too', async () => {
    const got = await send('/portkey/v1/chat/completions', { ...CHAT, tools: [S] }, keys['none']);
    expect(got.status, got.text).to.equal(403);
    expect(got.rows).to.deep.equal(['chat echo/echo refused permission_denied']);
  });

  it('is named with its line in a batch', async () => {
    const client = gateway.openai(keys['all']);
    const tools = [S];
    const lines = [line('a', { model: 'openai/gpt-5.5' }), line('b', { model: 'openai/gpt-5.5', tools })];
    const file = await toFile(Buffer.from(lines.map((each) => JSON.stringify(each)).join('\n')), 'requests.jsonl');
    const error = await client.files.create({ purpose: 'batch', file }).catch((thrown: Error) => thrown);
    expect(String(error)).to.include('400').and.include('Line 2: Batches do not support MCP servers');
  });
});
