import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

const SECRET = randomBytes(48).toString('base64');

/** Vendor with the format mini, which makes its own tools usable. */
const VENDOR = pluginFile({
  name: 'vendor',
  kind: 'provider',
  setup: `
    const none = () => { throw new Error('not translated'); };
    const codec = {
      request: none,
      response: (body, call) => ({ id: call.id, object: 'chat.completion', created: call.created, model: call.model,
        choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
      stream: none,
    };
    api.provider({
      specVersion: 1, vendor: 'vendor', baseUrl: 'http://127.0.0.1:1', anyModel: true, chat: codec,
      native: () => ({ mini: { path: '/native' } }),
      error: () => ({ class: 'upstream_error', message: 'no' }),
      transport: async () => ({ status: 200, headers: { 'content-type': 'application/json' },
        body: (async function* () { yield Buffer.from('{"vendor":true}'); })() }),
    });`,
});

describe('tools that a vendor runs with the operator’s account', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs' } },
        providers: { echo: {}, vendor: { plugin: './vendor.mjs' } },
        plans: { searching: { serverTools: ['web_search'] }, plain: { rpm: 1000 } },
        billing: 'track',
        auth: {
          'api-key': { bootstrap: true },
          jwt: {
            issuer: 'https://id.example',
            audience: 'tollgate',
            secret: SECRET,
            claims: { server_tools: 'tools' },
          },
        },
      },
      { files: { ...MINI_FILES, 'vendor.mjs': VENDOR } },
    );
  });
  after(() => gateway?.stop());

  const create = async (...options: readonly string[]) =>
    (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key;

  const use = async (key: string, ...tools: readonly string[]) => {
    const body = { m: 'vendor/x', say: 'hi', tools };
    const response = await gateway.post('/mini/chat', body, { authorization: `Bearer ${key}` });
    const { mini = 'ok', message = '' } = (await response.json()) as { mini?: string; message?: string };
    return { outcome: `${response.status} ${mini}`, message };
  };

  it('are refused by default with the tool’s name, before the call is counted', async () => {
    const key = await create('--rpm', '1');
    const { outcome, message } = await use(key, 'web_search_20250305');
    expect(outcome).to.equal('403 permission_denied');
    expect(message).to.include('"web_search_20250305"').and.include('serverTools');
    expect((await use(key)).outcome, 'the refused one used up no request').to.equal('200 ok');
  });

  it('are allowed by the key’s own list, with every dated version and no other name', async () => {
    const key = await create('--server-tools', 'web_search,web_search_preview');
    for (const tool of ['web_search', 'web_search_20250305', 'web_search_20260101', 'web_search_preview_2025_03_11'])
      expect((await use(key, tool)).outcome, tool).to.equal('200 ok');
    for (const tool of ['web_searcher', 'web_fetch_20250910', 'web', 'web_search_20250305_x', 'constructor'])
      expect((await use(key, tool)).outcome, tool).to.equal('403 permission_denied');
    expect((await use(key, 'web_search', 'mcp')).message).to.include('"mcp"');
  });

  it('are allowed by the plan of the key, or of its account', async () => {
    expect((await use(await create('--plan', 'searching'), 'web_search_20250305')).outcome).to.equal('200 ok');
    expect((await use(await create('--plan', 'plain'), 'web_search_20250305')).outcome).to.match(/^403/);
    expect((await use(await create('--plan', 'plain', '--server-tools', 'mcp'), 'mcp')).outcome).to.equal('200 ok');
    await gateway.command('accounts', 'plan', 'rich', 'searching');
    const rich = await create('--account', 'rich');
    expect((await use(rich, 'web_search_20250305')).outcome, 'the account’s plan').to.equal('200 ok');
    const both = await create('--plan', 'searching', '--server-tools', 'mcp');
    expect((await use(both, 'mcp', 'web_search')).outcome, 'one by the key, one by the plan').to.equal('200 ok');
  });

  it('do not fail a call that can run without them', async () => {
    const headers = { authorization: `Bearer ${await create()}` };
    const response = await gateway.post('/mini/chat', { m: 'vendor/x', say: 'hi', wishes: ['web_search'] }, headers);
    expect(response.status).to.equal(200);
  });

  it('still need a target that has them, even if they are allowed', async () => {
    const key = await create('--server-tools', 'web_search');
    const response = await gateway.post(
      '/mini/chat',
      { m: 'echo/echo', say: 'hi', tools: ['web_search'] },
      { authorization: `Bearer ${key}` },
    );
    expect(response.status).to.equal(400);
  });

  it('are granted over HTTP only by a token that has them', async () => {
    const token = (claims: object) =>
      new SignJWT({ permission: 'keys:write', ...claims })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer('https://id.example')
        .setAudience('tollgate')
        .setSubject('u_1')
        .setExpirationTime('5m')
        .sign(new TextEncoder().encode(SECRET));
    const make = async (claims: object, body: object) => {
      const authorization = `Bearer ${await token(claims)}`;
      const response = await gateway.post('/api/core/api_keys/create', body, { authorization });
      return { status: response.status, body: (await response.json()) as Record<string, Record<string, unknown>> };
    };
    const denied = await make({}, { server_tools: ['web_search'] });
    expect(denied.status).to.equal(403);
    expect(denied.body['error']).to.include({ code: 'permission_denied', param: 'server_tools[0]' });
    const given = await make({ tools: ['web_search', 'mcp'] }, { server_tools: ['web_search'] });
    expect(given.body['api_key_info']).to.deep.include({ server_tools: ['web_search'] });
    expect((await use(String(given.body['api_key']), 'web_search_20250305')).outcome).to.equal('200 ok');
    const rotated = await gateway.post(
      '/api/core/api_keys/rotate',
      { id: given.body['api_key_info']?.['id'] },
      { authorization: `Bearer ${await token({})}` },
    );
    expect(await rotated.json()).to.have.deep.nested.property('api_key_info.server_tools', ['web_search']);
    expect((await make({}, {})).body['api_key_info']).to.include({ server_tools: null });
  });
});
