import { expect } from 'chai';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import { createServers } from './mcp-rig.ts';

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
  let servers: Awaited<ReturnType<typeof createServers>>;
  let keys: Record<string, string>;

  before(async () => {
    servers = await createServers();
    const s = await servers.make(['echo']);
    const down = await servers.make(['echo'], ['ends-at-start']);
    gateway = await startGateway({
      providers: { echo: {} },
      plans: { all: { serverTools: ['mcp:*'] }, none: {} },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options, down: down.options } },
    });
    const create = async (plan: string): Promise<string> =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', '--plan', plan)).api_key;
    keys = { all: await create('all'), none: await create('none') };
  });
  after(async () => {
    await gateway?.stop();
    await servers?.remove();
  });

  const MESSAGES = [{ role: 'user', content: 'Where?' }];
  const CHAT = { model: 'echo/echo', messages: MESSAGES };
  const ways: Readonly<Record<string, (tool: object) => object>> = {
    '/v1/chat/completions': (tool) => ({ ...CHAT, tools: [tool] }),
    '/v1/responses': (tool) => ({ model: 'echo/echo', input: 'Where?', tools: [tool] }),
    '/v1/messages': (tool) => ({ ...CHAT, max_tokens: 10, tools: [tool] }),
  };
  const S = { type: 'mcp', server: 's' };
  const DOWN = { type: 'mcp', server: 'down' };

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
        [DOWN, keys['all'], 503, 'refused provider_unavailable'],
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

  it('is among the calls also for what its other fields say', async () => {
    const own = { type: 'function', function: { name: 's__echo' } };
    for (const fields of [{ n: 2, tools: [S] }, { tools: [own, S] }]) {
      const got = await send('/v1/chat/completions', { ...CHAT, ...fields }, keys['all']);
      expect(got.status).to.equal(400);
      expect(got.rows).to.deep.equal(['chat echo/echo refused invalid_request']);
    }
  });
});
