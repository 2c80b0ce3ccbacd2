import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { commandOf, runCli } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';

describe('a gateway that a program asks, and its operator', function () {
  this.timeout(240_000);
  let gateway: TestGateway;
  let agent: string;
  let admin: string;
  before(async () => {
    gateway = await startGateway({ billing: 'track', mcp: { admin: true } });
    const make = async (...words: readonly string[]) =>
      (await gateway.command<{ api_key: string }>('keys', 'create', ...words)).api_key;
    agent = await make('--user', 'agent', '--role', 'viewer', '--scope', 'changes:propose');
    admin = await make('--user', 'root', '--admin');
  });
  after(() => gateway?.stop());

  const connect = async (mode: 'auto' | 'legacy') => {
    const [command = '', ...args] = commandOf(['mcp', '--url', gateway.url]);
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const env = { PATH: process.env['PATH'] ?? '', HOME: gateway.folder, TOLLGATE_API_KEY: agent };
    await client.connect(new StdioClientTransport({ command, args, env, cwd: gateway.folder, stderr: 'pipe' }));
    return client;
  };
  const cli = (words: readonly string[], key = admin) =>
    runCli([...words, '--url', gateway.url], gateway.folder, { env: { TOLLGATE_API_KEY: key } });

  for (const mode of ['auto', 'legacy'] as const)
    it(`is a server on stdio for a client that negotiates by "${mode}", whose change the operator confirms`, async () => {
      const client = await connect(mode);
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).to.include.members(['get_usage', 'get_health', 'propose_change']);
      const health = await client.callTool({ name: 'get_health', arguments: {} });
      expect(JSON.stringify(health.content)).to.include('ready');
      const failed = await client.callTool({ name: 'get_keys_by_id', arguments: { id: 'none' } });
      expect(failed.isError).to.equal(true);
      const unknown = await client.callTool({ name: 'get_audit', arguments: {} }).catch((error: Error) => error);
      expect(String(unknown)).to.include('Unknown tool');
      const user = `zoe-${mode}`;
      const { content } = await client.callTool({
        name: 'propose_change',
        arguments: {
          operation: 'post_accounts_by_id_credit',
          parameters: { id: user },
          body: { amount_usd: '5' },
          reason: 'more',
        },
      });
      const { id } = JSON.parse(content[0]?.type === 'text' ? content[0].text : '{}') as { id: string };
      expect((await cli(['audit', 'changes'])).stdout)
        .to.include(id)
        .and.to.include('agent');
      const shown = await cli(['audit', 'changes', 'show', id]);
      expect(shown.stdout).to.include(`POST /api/core/admin/accounts/${user}/credit`).and.to.include('agent: more');
      const list = JSON.parse((await cli(['audit', 'changes', '--json'])).stdout);
      expect(list.data.data.map((one: { id: string }) => one.id)).to.include(id);
      const whole = await cli(['audit', 'changes', 'show', id, '--json']);
      expect(JSON.parse(whole.stdout)).to.have.nested.property('data.state', 'open');
      const own = await cli(['audit', 'changes', 'confirm', id], agent);
      expect(own.code).to.equal(77);
      const done = await cli(['audit', 'changes', 'confirm', id]);
      expect(done, done.stderr).to.include({ code: 0 });
      expect(done.stdout).to.include('5.00');
      const again = await cli(['audit', 'changes', 'reject', id, '--json']);
      expect(again.code).to.equal(1);
      expect(JSON.parse(again.stdout).error.message).to.include('decided already');
      await client.close();
    });

  it('says what is missing: a key, a right, a gateway', async () => {
    const user = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u')).api_key;
    const none = await runCli(['mcp', '--url', gateway.url], gateway.folder);
    expect(none.code).to.equal(77);
    expect(none.stderr).to.include('TOLLGATE_API_KEY');
    const refused = await cli(['audit', 'changes'], user);
    expect(refused.code).to.equal(77);
    expect(refused.stderr).to.include('operators').and.not.include(user.slice(16));
    const bridge = await cli(['mcp'], user);
    expect(bridge.code).to.equal(69);
    expect(bridge.stderr).to.include('/mcp-admin').and.not.include(user.slice(16));
    const url = `http://127.0.0.1:${await freePort()}`;
    const gone = await runCli(['audit', 'changes', '--url', url], gateway.folder, { env: { TOLLGATE_API_KEY: admin } });
    expect(gone.code).to.equal(69);
  });
});
