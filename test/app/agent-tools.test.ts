import { expect } from 'chai';
import { createServers, DOWN } from '../plugins/mcp/mcp-rig.ts';
import { readFrames } from '../support/agents/agent-gateway.ts';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { type Rule, schemaNameOf } from '../support/agents/scripted-model.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { eventually } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: responses of every shape
type Loose = any;

const S = { type: 'mcp', server: 's' };
const REPORT = { summary: 'It is Rome.', confidence: 1 };
const route = (...agents: string[]) => ({ agents: agents.map((agent) => ({ agent, instruction: `do ${agent}` })) });
const ROUTE: Rule = { schema: 'assignments', reply: route('scout') };
const LOOK: Rule = { schema: 'report', reply: 'I look.', call: { name: 's__echo', arguments: { city: 'Rome' } } };
const FOUND: Rule = { schema: 'report', reply: REPORT };
const WRITTEN: Rule = { schema: 'result', reply: { city: 'Rome' } };

describe('a team of agents with tools of MCP servers', () => {
  let gateway: TestGateway | undefined;
  let vendor: ModelServer;
  let servers: Awaited<ReturnType<typeof createServers>>;

  before(async () => {
    servers = await createServers();
  });
  after(() => servers.remove());
  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
    gateway = undefined;
  });

  const open = async (
    rules: readonly Rule[],
    tools: readonly object[] = [S],
    { limits = {}, ...more }: Record<string, unknown> = {},
  ): Promise<TestGateway> => {
    vendor = await startModelServer(rules);
    const prices = { '*': { input: 1, output: 2 } };
    const s = await servers.serve(['echo', 'fail'], { prices: { echo: 0.01 } });
    const scout = { when: 'places', instructions: 'You find places.', tools };
    const planning = { tools: [] };
    gateway = await startGateway({
      billing: 'track',
      providers: {
        scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'sk-x', models: ['*'], prices },
      },
      plans: { all: { serverTools: ['mcp:s', 'mcp:down'] }, none: {}, once: { serverTools: ['mcp:s'], rpm: 1 } },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options, down: DOWN } },
      agents: { team: { model: 'scripted/m', agents: { scout, planning }, memory: { enabled: false }, limits } },
      ...more,
    });
    return gateway;
  };

  const create = async (...options: readonly string[]): Promise<string> =>
    (await (gateway as TestGateway).command<Loose>('keys', 'create', '--user', 'u', ...options)).api_key;

  /** Result of a request, whole or streamed, its error and its calls in the records, oldest first. */
  const request = async (body: object = {}, key = gateway?.key): Promise<Loose> => {
    const { post, command } = gateway as TestGateway;
    const headers = { authorization: `Bearer ${key}` };
    const response = await post(
      '/api/core/agent',
      { message: 'Where?', response_model: { city: 'string' }, ...body },
      headers,
    );
    const text = await response.text();
    const frames = text.startsWith('event:') ? readFrames(text) : [];
    const last = frames.at(-1)?.data;
    const result = last ?? JSON.parse(text);
    const requestId = response.headers.get('x-request-id') ?? '';
    const rows = async (): Promise<Loose[]> =>
      (await command<Loose>('calls', '--request', requestId)).data.toReversed();
    return {
      status: response.status,
      result,
      error: result.error,
      cost: last?.cost_usd ?? response.headers.get('x-tollgate-cost-usd'),
      events: frames.map(({ event, data }) => `${event} ${data.agent ?? ''}`.trim()),
      rows,
      /** Waits until the records have that many calls. */
      calls: async (count: number): Promise<readonly string[]> => {
        await eventually(async () => expect(await rows()).to.have.length(count));
        return (await rows()).map(({ operation, outcome }) => `${operation} ${outcome}`);
      },
    };
  };

  const toolsSent = (schema: string): readonly unknown[] =>
    vendor.model.calls
      .filter(({ request }) => schemaNameOf(request) === schema)
      .map(({ request }) => request.tools?.map((tool: Loose) => tool.function.name));

  for (const stream of [false, true]) {
    const way = stream ? 'streamed' : 'whole';

    it(`calls those of an agent, each turn and tool a call of its own, and sums up their usage (${way})`, async () => {
      await open([ROUTE, { ...LOOK, times: 1 }, FOUND, WRITTEN]);
      const got = await request({ stream });
      expect(got.status, JSON.stringify(got.error)).to.equal(200);
      expect(got.result.content).to.deep.equal({ city: 'Rome' });
      expect(await got.calls(5)).to.deep.equal(['chat ok', 'chat ok', 'mcp ok', 'chat ok', 'chat ok']);
      const rows = await got.rows();
      const tokens = rows.map(({ units }: Loose) => (units.prompt_tokens ?? 0) + (units.completion_tokens ?? 0));
      expect(got.result.usage.total_tokens).to.equal(tokens.reduce((sum: number, each: number) => sum + each, 0));
      const costs = rows.map(({ cost_usd: cost }: Loose) => Number(cost));
      expect(Number(got.cost)).to.be.closeTo(
        costs.reduce((sum: number, each: number) => sum + each, 0),
        1e-9,
      );
      expect(rows.find(({ operation }: Loose) => operation === 'mcp')).to.include({
        model: 's/echo',
        cost_usd: '0.01',
      });
      expect(toolsSent('report')[0]).to.deep.equal(['s__echo', 's__fail']);
      expect(toolsSent('result')).to.deep.equal([undefined]);
      const trace = got.result.trace.map(({ agent, status, round }: Loose) => `${agent} ${status} ${round ?? '-'}`);
      expect(trace).to.deep.equal(['router ok -', 'mcp/s/echo ok 1', 'scout ok 1', 'writer ok -']);
      if (stream) expect(got.events).to.include('agent.finished mcp/s/echo');
      const last = vendor.model.calls.find(({ request }) => request.messages.at(-1)?.role === 'tool');
      expect(JSON.stringify(last?.request.messages.at(-1))).to.include('Rome');
    });

    it(`ends with 402 when the budget ends midway, and every call stays in the books (${way})`, async () => {
      await open([ROUTE, LOOK, WRITTEN]);
      const got = await request({ stream }, await create('--budget', '0.016', '--plan', 'all'));
      expect(got.error?.code).to.equal('insufficient_balance');
      expect(got.status).to.equal(stream ? 200 : 402);
      await eventually(async () => {
        const done = (await got.rows()).map(({ operation, outcome }: Loose) => `${operation} ${outcome}`);
        expect(done).to.include.members(['chat ok', 'mcp ok', 'mcp refused']);
      });
    });
  }

  it('calls those that a request names, of the writer if no specialist works', async () => {
    const call = LOOK.call as object;
    await open([{ ...ROUTE, reply: route() }, { schema: 'result', times: 1, reply: '', call } as Rule, WRITTEN], []);
    const got = await request({ tools: [{ ...S, allowed_tools: ['echo'] }] });
    expect(got.status, JSON.stringify(got.error)).to.equal(200);
    expect(await got.calls(4)).to.deep.equal(['chat ok', 'chat ok', 'mcp ok', 'chat ok']);
    expect(toolsSent('result')).to.deep.equal([['s__echo'], ['s__echo']]);
    expect(toolsSent('assignments')).to.deep.equal([undefined]);
  });

  it('refuses a named server that is unknown, not permitted or down, and the records have it', async () => {
    await open([ROUTE, FOUND, WRITTEN], []);
    for (const [tool, plan, status, code] of [
      [{ type: 'mcp', server: 'none' }, 'all', 400, 'invalid_request'],
      [S, 'none', 403, 'permission_denied'],
      [{ type: 'mcp', server: 'down' }, 'all', 503, 'provider_unavailable'],
    ] as const) {
      const got = await request({ tools: [tool] }, await create('--plan', plan));
      expect([got.status, got.error?.code], JSON.stringify(got.error)).to.deep.equal([status, code]);
      expect(await got.calls(2)).to.deep.equal(['chat ok', 'chat refused']);
    }
    const { status, error } = await request({ tools: [{ type: 'function', function: { name: 'x' } }] });
    expect([status, error.code]).to.deep.equal([400, 'invalid_request']);
  });

  it('leaves out those of its configuration that the caller may not use, or that are down', async () => {
    await open([ROUTE, FOUND, WRITTEN], [S, { type: 'mcp', server: 'down' }]);
    const got = await request({}, await create('--plan', 'none'));
    expect(got.status, JSON.stringify(got.error)).to.equal(200);
    expect((await request()).status).to.equal(200);
    expect(toolsSent('report')).to.deep.equal([undefined, ['s__echo', 's__fail']]);
  });

  it('counts each turn among the calls of the request, which ends within them and counts once in `rpm`', async () => {
    const both = { ...ROUTE, reply: route('scout', 'planning') };
    const planned = { ...FOUND, system: 'ordered plan' };
    await open([both, planned, LOOK, WRITTEN], [S], { limits: { maxCalls: 7 } });
    const got = await request({}, await create('--plan', 'once'));
    expect(got.result.content, JSON.stringify(got.error)).to.deep.equal({ city: 'Rome' });
    expect(got.result.trace.find(({ agent }: Loose) => agent === 'scout').status).to.equal('failed');
    // Of seven calls, one is kept for a correction of the writer.
    expect((await got.calls(8)).toSorted()).to.deep.equal([...Array(6).fill('chat ok'), 'mcp ok', 'mcp ok']);
  });

  it('is corrected with the results of its tools, which are not called again', async () => {
    await open([ROUTE, { ...LOOK, times: 1 }, { schema: 'report', times: 1, reply: { wrong: 1 } }, FOUND, WRITTEN]);
    const got = await request();
    expect(got.status, JSON.stringify(got.error)).to.equal(200);
    expect((await got.calls(6)).filter((each: string) => each.startsWith('mcp'))).to.have.length(1);
    expect(toolsSent('report').at(-1)).to.equal(undefined);
    const [corrected] = vendor.model.calls.filter(({ request }) => schemaNameOf(request) === 'report').slice(-1);
    expect(JSON.stringify(corrected?.request.messages.at(-1)))
      .to.include('Results of your tools')
      .and.include('Rome');
  });

  it('shows a failed tool in the trace', async () => {
    await open([ROUTE, { ...LOOK, times: 1, call: { name: 's__fail', arguments: {} } }, FOUND, WRITTEN]);
    const { result } = await request();
    expect(result.trace.find(({ agent }: Loose) => agent === 'mcp/s/fail')).to.include({ status: 'failed' });
  });

  it('is refused at the start with the name of a server that is not configured', async () => {
    const error = await open([], [{ type: 'mcp', server: 'none' }]).catch((thrown: Error) => thrown);
    expect(String(error)).to.include('refers to "none", which is not under "mcp.servers"');
  });
});
