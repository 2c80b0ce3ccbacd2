import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import { send, textOf } from './mcp-rig.ts';

const AT = '/mcp-admin';

/** Secrets of the configuration, which no answer has. */
const SECRET = 'sk-vendor-0123456789abcdef';

interface Change {
  readonly id: string;
  readonly state: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly differences: readonly object[];
  readonly problem: string | null;
  readonly decided_by: object | null;
}

describe('the gateway as an MCP server', () => {
  let gateway: TestGateway;
  let admin: string;
  let agent: string;
  let viewer: string;

  const makeKey = async (...words: readonly string[]): Promise<string> =>
    (await gateway.command<{ api_key: string }>('keys', 'create', ...words)).api_key;

  before(async () => {
    gateway = await startGateway({
      billing: 'track',
      providers: { echo: {}, openai: { apiKey: SECRET, baseUrl: 'http://127.0.0.1:9/v1' } },
      plans: { free: { rpm: 20 } },
      mcp: { admin: true },
      policies: { admin: {} },
    });
    admin = await makeKey('--user', 'root', '--admin');
    viewer = await makeKey('--user', 'vic', '--role', 'viewer');
    agent = await makeKey('--user', 'agent', '--role', 'viewer', '--scope', 'changes:propose');
  });
  after(() => gateway?.stop());

  const tools = async (key: string): Promise<readonly string[]> =>
    ((await send(gateway, 'tools/list', {}, { key, at: AT })).result?.tools ?? []).map(({ name }) => name);
  const run = (key: string, name: string, args: object = {}) =>
    send(gateway, 'tools/call', { name, arguments: args }, { key, at: AT });
  const admins = async (method: string, path: string, key = admin, body?: object) => {
    const response = await fetch(`${gateway.url}/api/core/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const propose = async (args: object, key = agent): Promise<Change> => {
    const reply = await run(key, 'propose_change', args);
    expect(reply.result?.isError, textOf(reply)).to.equal(undefined);
    return JSON.parse(textOf(reply)) as Change;
  };

  for (const mode of ['auto', 'legacy'] as const)
    it(`answers a client of the SDK that negotiates by "${mode}"`, async () => {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
      const headers = { authorization: `Bearer ${viewer}` };
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${gateway.url}${AT}`), { requestInit: { headers } }),
      );
      const { tools: listed } = await client.listTools();
      expect(listed.every(({ annotations }) => annotations?.readOnlyHint === true)).to.equal(true);
      expect(listed.map(({ name }) => name)).to.include.members([
        'get_usage',
        'get_calls',
        'get_calls_by_id',
        'get_keys',
        'get_accounts_by_id',
        'get_budgets',
        'get_catalog',
        'get_targets',
        'get_health',
      ]);
      const { content } = await client.callTool({ name: 'get_keys', arguments: { limit: 1 } });
      const [first] = content;
      expect(JSON.parse(first?.type === 'text' ? first.text : '')).to.include({ object: 'list', has_more: true });
      await client.close();
    });

  it('lists and runs the tools that the scopes of its caller allow, and no others', async () => {
    expect(await tools(viewer)).to.not.include.members(['get_audit']);
    expect(await tools(admin)).to.include.members(['get_audit', 'get_plugins', 'get_configuration', 'propose_change']);
    expect(await tools(await makeKey('--user', 'u', '--scope', 'usage:read'))).to.deep.equal([
      'get_health',
      'get_mirrors',
      'get_usage',
      'get_changes',
      'get_changes_by_id',
    ]);
    for (const name of ['get_audit', 'propose_change', 'get_operations', 'post_reload', 'constructor', '__proto__'])
      expect((await run(viewer, name)).error?.message, name).to.match(/^Unknown tool/);
  });

  it('is for operators alone', async () => {
    const user = await makeKey('--user', 'u');
    expect((await send(gateway, 'tools/list', {}, { key: user, at: AT })).status).to.equal(403);
    expect((await send(gateway, 'tools/list', {}, { key: 'none', at: AT })).status).to.equal(401);
  });

  it('says why a call failed and who spent what, with short lists by default', async () => {
    const chat = { model: 'openai/gpt-5.6-luna', messages: [{ role: 'user', content: 'Hi' }] };
    const failed = await gateway.post('/v1/chat/completions', chat);
    expect(failed.status).to.equal(503);
    const { data } = JSON.parse(textOf(await run(viewer, 'get_calls', { outcome: 'error', limit: 1 }))) as {
      data: readonly { id: string; error_code: string }[];
    };
    expect(data).to.have.length(1);
    expect(data[0]?.error_code).to.equal('provider_unavailable');
    expect(textOf(await run(viewer, 'get_usage', { by: 'user' }))).to.include('local');
    expect(JSON.parse(textOf(await run(viewer, 'get_health')))).to.include({ status: 'ready' });
    expect(textOf(await run(viewer, 'get_catalog'))).to.include('echo/echo');
  });

  it('returns problems of arguments and of the route as results', async () => {
    for (const [name, args, words] of [
      ['get_usage', { by: 'no one' }, 'invalid_request'],
      ['get_usage', { no: 1 }, 'invalid_request'],
      ['get_keys_by_id', {}, 'id'],
      ['get_keys_by_id', { id: '../budgets' }, 'not_found'],
      ['get_keys_by_id', { id: 'none' }, 'not_found'],
      ['get_keys', { after: { a: 1 } }, 'invalid_request'],
    ] as const) {
      const reply = await run(viewer, name, args);
      expect(reply.result?.isError, `${name}: ${textOf(reply)}`).to.equal(true);
      expect(textOf(reply)).to.include(words);
    }
  });

  it('bounds a result', async () => {
    const long = 'x'.repeat(100);
    for (let at = 0; at < 110; at += 1) await makeKey('--user', `bounded-${at}`, '--name', long);
    const reply = await run(viewer, 'get_keys', { limit: 1000 });
    expect(textOf(reply)).to.match(/^request_too_large: The result is larger than 64 KiB/);
    expect(JSON.parse(textOf(await run(viewer, 'get_keys'))).data).to.have.length(25);
  });

  it('shows no secret', async () => {
    for (const name of await tools(admin)) {
      const text = textOf(await run(admin, name));
      expect(text, name).to.not.include(SECRET);
      for (const key of [admin, viewer, agent, gateway.key]) expect(text, name).to.not.include(key.slice(16));
    }
  });

  it('describes the operations that can be proposed', async () => {
    const { operations } = JSON.parse(textOf(await run(agent, 'get_operations'))) as {
      operations: readonly { operation: string }[];
    };
    const names = operations.map(({ operation }) => operation);
    expect(names).to.include.members(['post_keys', 'patch_keys_by_id', 'put_budgets_by_name', 'delete_users_by_id']);
    expect(names.filter((name) => /console|confirm|reject|^get_|speech/.test(name))).to.deep.equal([]);
    const one = JSON.parse(textOf(await run(agent, 'get_operations', { operation: 'put_budgets_by_name' })));
    expect(one).to.include({ scope: 'budgets:write' });
    expect(one.body.required).to.include('amount_usd');
  });

  it('changes nothing until somebody with the right confirms', async () => {
    const key = (await makeKey('--user', 'zoe', '--rpm', '10')).slice(3, 15);
    const change = await propose({
      operation: 'patch_keys_by_id',
      parameters: { id: key },
      body: { rpm: 60 },
      reason: 'zoe asked for more',
    });
    expect(change).to.include({ state: 'open' });
    expect(change.differences).to.deep.equal([{ field: 'rpm', before: 10, after: 60 }]);
    expect((await admins('GET', `/keys/${key}`)).body['rpm']).to.equal(10);
    expect((await admins('POST', `/changes/${change.id}/confirm`, agent)).status).to.equal(403);
    expect((await admins('POST', `/changes/${change.id}/confirm`, viewer)).status).to.equal(404);
    const done = await admins('POST', `/changes/${change.id}/confirm`);
    expect(done.status, JSON.stringify(done.body)).to.equal(200);
    expect((await admins('GET', `/keys/${key}`)).body['rpm']).to.equal(60);
    const seen = JSON.parse(textOf(await run(agent, 'get_changes_by_id', { id: change.id }))) as Change;
    expect(seen).to.include({ state: 'confirmed' });
    const { body } = await admins('GET', '/audit?limit=4');
    const entries = body['data'] as readonly {
      action: string;
      actor: { user_id: string };
      after: { proposed_by?: object };
    }[];
    expect(entries.map(({ action }) => action)).to.deep.equal([
      'change.confirm',
      'key.update',
      'admin.refused',
      'change.propose',
    ]);
    expect(entries.map(({ actor }) => actor.user_id)).to.deep.equal(['root', 'root', 'agent', 'agent']);
    expect(entries[0]?.after.proposed_by).to.include({ user_id: 'agent' });
  });

  it('makes a change once: a repeated and a rejected one are refused', async () => {
    const credit = await propose({
      operation: 'post_accounts_by_id_credit',
      parameters: { id: 'zoe' },
      body: { amount_usd: '5' },
    });
    const statuses = await Promise.all(
      [1, 2, 3, 4].map(() => admins('POST', `/changes/${credit.id}/confirm`).then(({ status }) => status)),
    );
    expect(statuses.toSorted()).to.deep.equal([200, 409, 409, 409]);
    expect((await admins('POST', `/changes/${credit.id}/confirm`)).status).to.equal(409);
    expect((await admins('GET', '/accounts/zoe')).body['balance_usd']).to.equal('5.00');
    const other = await propose({ operation: 'post_users_by_id_block', parameters: { id: 'zoe' } });
    expect((await admins('POST', `/changes/${other.id}/reject`)).body['state']).to.equal('rejected');
    expect((await admins('POST', `/changes/${other.id}/confirm`)).status).to.equal(409);
  });

  it('refuses a change whose object has changed since, and a forged one', async () => {
    const key = (await makeKey('--user', 'zoe', '--rpm', '10')).slice(3, 15);
    const stale = await propose({ operation: 'patch_keys_by_id', parameters: { id: key }, body: { rpm: 60 } });
    await admins('PATCH', `/keys/${key}`, admin, { rpm: 5 });
    const refused = await admins('POST', `/changes/${stale.id}/confirm`);
    expect(refused.status).to.equal(412);
    expect((await admins('GET', `/keys/${key}`)).body['rpm']).to.equal(5);
    expect((await admins('GET', `/changes/${stale.id}`)).body['state']).to.equal('failed');
    const created = await propose({
      operation: 'put_plans_by_name',
      parameters: { name: 'gold' },
      body: { rpm: 9 },
    });
    expect(created.before).to.equal(null);
    await admins('PUT', '/plans/gold', admin, { rpm: 1 });
    expect((await admins('POST', `/changes/${created.id}/confirm`)).status).to.equal(412);
    for (const id of ['AAAAAAAAAAAAAAAA', '..%2Fkeys', 'constructor', stale.id.toLowerCase()])
      expect((await admins('POST', `/changes/${id}/confirm`)).status, id).to.equal(404);
  });

  it('refuses a change that has expired', async () => {
    const change = await propose({ operation: 'post_users_by_id_block', parameters: { id: 'zoe' } });
    const { now } = Date;
    Date.now = () => now() + 3_600_001;
    try {
      expect((await admins('POST', `/changes/${change.id}/confirm`)).status).to.equal(404);
      expect(textOf(await run(agent, 'get_changes'))).to.not.include(change.id);
    } finally {
      Date.now = now;
    }
  });

  it('refuses proposals that its route would refuse, before they are stored', async () => {
    for (const [args, words] of [
      [
        { operation: 'put_budgets_by_name', parameters: { name: 'day' }, body: { amount_usd: '1', every: 'year' } },
        'every',
      ],
      [{ operation: 'put_budgets_by_name', parameters: {}, body: { amount_usd: '1', every: 'day' } }, 'name'],
      [{ operation: 'patch_keys_by_id', parameters: { id: 'none' }, body: { rpm: 1 } }, 'not_found'],
      [{ operation: 'post_changes_by_id_confirm', parameters: { id: 'x' } }, 'not_found'],
      [{ operation: 'get_keys' }, 'not_found'],
      [{ operation: 'post_users_by_id_block', parameters: { id: 'a' }, path: '/livez' }, 'invalid_request'],
      [{ operation: 'post_users_by_id_block', parameters: { id: 'a' }, reason: 'two\nlines' }, 'reason'],
    ] as const) {
      const reply = await run(agent, 'propose_change', args);
      expect(reply.result?.isError, `${JSON.stringify(args)} ${textOf(reply)}`).to.equal(true);
      expect(textOf(reply), textOf(reply)).to.include(words);
    }
  });

  it('shows a key that a change creates to its confirmer alone', async () => {
    const change = await propose({ operation: 'post_keys', body: { user_id: 'new' } });
    const done = await admins('POST', `/changes/${change.id}/confirm`);
    const key = (done.body['result'] as { api_key: string }).api_key;
    expect(key).to.match(/^tg_/);
    for (const name of ['get_changes', 'get_keys', 'get_audit'])
      expect(textOf(await run(admin, name)), name).to.not.include(key.slice(16));
    expect(JSON.stringify((await admins('GET', `/changes/${change.id}`)).body)).to.not.include(key.slice(16));
    expect(gateway.logText()).to.not.include(key.slice(16));
  });

  it('bounds the undecided changes of a proposer', async () => {
    const flood = await makeKey('--user', 'flood', '--role', 'viewer', '--scope', 'changes:propose');
    const block = { operation: 'post_users_by_id_block', parameters: { id: 'zoe' } };
    for (let at = 0; at < 20; at += 1) await propose(block, flood);
    expect(textOf(await run(flood, 'propose_change', block))).to.match(/^rate_limited/);
    const { body } = await admins('GET', '/changes', flood);
    const [first] = body['data'] as readonly Change[];
    expect((await admins('POST', `/changes/${first?.id}/reject`, flood)).status, 'an own one is withdrawn').to.equal(
      200,
    );
    await propose(block, flood);
  });
});
