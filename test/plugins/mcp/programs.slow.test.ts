import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import { type GatewayProcess, type Installation, installGateway } from '../../support/gateways/gateway-process.ts';
import { until } from '../../support/wait.ts';
import { createServers } from './mcp-rig.ts';

describe('the programs of MCP servers', () => {
  let servers: Awaited<ReturnType<typeof createServers>>;
  let installed: Installation;
  let gateway: GatewayProcess;

  beforeEach(async function () {
    this.timeout(120_000);
    servers = await createServers();
    const s = await servers.make(['echo', 'pid', 'family'], ['ignores-end']);
    installed = await installGateway({
      store: 'sqlite:./data',
      providers: { echo: {} },
      server: { port: 0, workers: 2, drainTimeout: '2s' },
      plans: { all: { serverTools: ['mcp:*'] } },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options } },
    });
    gateway = await installed.start();
  });
  afterEach(async () => {
    await installed?.remove();
    await servers?.remove();
  });

  const connect = async (): Promise<Client> => {
    const client = new Client({ name: 'former', version: '1' });
    const headers = { authorization: `Bearer ${installed.key}`, connection: 'close' };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } }),
    );
    return client;
  };
  const numberOf = async (client: Client, tool: string): Promise<number> => {
    const { content } = await client.callTool({ name: `s__${tool}` });
    return Number((content[0] as { text?: string }).text);
  };
  /** Programs of all workers. */
  const pidsOf = async (client: Client): Promise<readonly number[]> => {
    const pids = new Set<number>();
    await until('both workers responded', async () => pids.add(await numberOf(client, 'pid')).size === 2);
    return [...pids];
  };

  it('end with the gateway after kill -9, with the processes that they started', async function () {
    this.timeout(120_000);
    const client = await connect();
    const pids = [...(await pidsOf(client)), await numberOf(client, 'family')];
    expect(pids.every(isAlive)).to.equal(true);
    await gateway.kill();
    await until('all have ended', () => !pids.some(isAlive));
  });

  it('end with their worker, and a client of the former protocol goes on at another one', async function () {
    this.timeout(120_000);
    const client = await connect();
    const [pid = 0] = await pidsOf(client);
    process.kill(parentOf(pid), 'SIGKILL');
    await until('its program has ended', () => !isAlive(pid));
    await until('the client is served', () =>
      numberOf(client, 'pid').then(
        (other) => other !== pid,
        () => false,
      ),
    );
    expect(await pidsOf(client), 'the new worker starts its own').to.have.length(2);
  });

  it('stay over a reload that does not change their options, and clients go on', async function () {
    this.timeout(120_000);
    const client = await connect();
    const before = await pidsOf(client);
    const file = path.join(installed.folder, 'tollgate.config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as { mcp: { servers: Record<string, object> } };
    const other = await servers.make(['echo']);
    writeFileSync(
      file,
      JSON.stringify({ ...config, mcp: { servers: { ...config.mcp.servers, other: other.options } } }),
    );
    process.kill(gateway.pid, 'SIGHUP');
    await until('the other server is offered', async () =>
      (await client.listTools()).tools.some(({ name }) => name === 'other__echo'),
    );
    expect([...(await pidsOf(client))].sort()).to.deep.equal([...before].sort());
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
}
