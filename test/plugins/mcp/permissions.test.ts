import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { until } from '../../support/wait.ts';
import { call, createServers, namesFor, send, startMcp, textOf } from './mcp-rig.ts';

const SECRET = randomBytes(48).toString('base64');

describe('permissions for tools of MCP servers', () => {
  let gateway: TestGateway;
  let servers: Awaited<ReturnType<typeof createServers>>;
  before(async () => {
    servers = await createServers();
    const s = await servers.serve(['echo', 'fail', 'getData', 'getdata']);
    const other = await servers.serve(['echo']);
    gateway = await startMcp(
      { s: s.options, other: other.options },
      {
        defaultPlan: undefined,
        plans: {
          some: { serverTools: ['mcp:s/echo'] },
          small: { models: ['echo/echo'], serverTools: ['mcp:s/echo'] },
          vendors: { serverTools: ['mcp', 'search', 's', 'echo', 's__echo'] },
        },
        tags: { team: ['search'] },
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
    );
  });
  after(async () => {
    await gateway?.stop();
    await servers?.remove();
  });

  const create = async (...options: readonly string[]): Promise<string> =>
    (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key;

  const refused = async (key: string, ...names: readonly string[]): Promise<void> => {
    for (const name of names) {
      const { error } = await send(gateway, 'tools/call', { name, arguments: {} }, { key });
      expect(error?.message, name).to.match(/^Unknown tool/);
    }
  };

  it('allow nothing by default, also to an admin key', async () => {
    for (const key of [await create(), gateway.key, await create('--admin')]) {
      expect(await namesFor(gateway, key)).to.deep.equal([]);
      await refused(key, 's__echo', 'other__echo');
    }
  });

  it('name one tool, one server or all servers, and lists show those alone', async () => {
    const one = await create('--server-tools', 'mcp:s/echo');
    expect(await namesFor(gateway, one)).to.deep.equal(['s__echo']);
    expect(textOf(await call(gateway, 'echo', { a: 1 }, one))).to.equal('{"a":1}');
    await refused(one, 's__fail', 'other__echo');
    const server = await create('--server-tools', 'mcp:s');
    expect(await namesFor(gateway, server)).to.deep.equal(['s__echo', 's__fail', 's__getData', 's__getdata']);
    await refused(server, 'other__echo');
    const all = await create('--server-tools', 'mcp:*');
    expect(await namesFor(gateway, all)).to.have.length(5);
  });

  it('distinguish names by case and by server', async () => {
    const key = await create('--server-tools', 'mcp:s/getData,mcp:othe,mcp:other/echoo');
    expect(await namesFor(gateway, key)).to.deep.equal(['s__getData']);
  });

  it('are those of the plan in addition to those of the key', async () => {
    const key = await create('--plan', 'some', '--server-tools', 'mcp:other');
    expect(await namesFor(gateway, key)).to.deep.equal(['s__echo', 'other__echo']);
  });

  it('are not those for tools of vendors', async () => {
    const key = await create('--plan', 'vendors');
    expect(await namesFor(gateway, key)).to.deep.equal([]);
  });

  it('do not depend on lists of models and providers', async () => {
    const key = await create('--models', 'echo/echo', '--providers', 'echo', '--plan', 'small');
    expect(textOf(await call(gateway, 'echo', { a: 1 }, key))).to.equal('{"a":1}');
  });

  it('are limited by the team of a key and by the token that creates it', async () => {
    const token = await new SignJWT({ permission: 'keys:write', tools: ['mcp:s/echo'] })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('https://id.example')
      .setAudience('tollgate')
      .setSubject('u')
      .setExpirationTime('5m')
      .sign(Buffer.from(SECRET));
    const headers = { authorization: `Bearer ${token}` };
    const make = (tools: readonly string[]) =>
      gateway.post('/api/core/api_keys/create', { server_tools: tools }, headers);
    expect((await make(['mcp:s'])).status).to.equal(403);
    expect((await make(['mcp:*'])).status).to.equal(403);
    const { api_key: key } = (await (await make(['mcp:s/echo'])).json()) as { api_key: string };
    expect(await namesFor(gateway, key)).to.deep.equal(['s__echo']);
  });

  it('change with the key @slow', async () => {
    const key = await create('--server-tools', 'mcp:s');
    expect(await namesFor(gateway, key)).to.have.length(4);
    const id = key.slice(0, 'tg_'.length + 12);
    await gateway.command('keys', 'update', id, '--server-tools', 'mcp:other');
    await until('the change is known', async () => (await namesFor(gateway, key)).join() === 'other__echo');
  });
});
