import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { call, createServers, send, startMcp, textOf } from './mcp-rig.ts';

interface CallRow {
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  readonly outcome: string;
  readonly cost_usd: string | null;
  readonly units: Readonly<Record<string, number>> | null;
  readonly error_code: string | null;
}

describe('a call of a tool', () => {
  let gateway: TestGateway;
  let servers: Awaited<ReturnType<typeof createServers>>;
  before(async () => {
    servers = await createServers();
    const options = { prices: { echo: 0.25, '*': 0.01 } };
    const s = await servers.serve(['echo', 'fail', 'data', 'none', 'calls', 'hang', 'status'], {
      ...options,
      timeout: '300ms',
    });
    gateway = await startMcp(
      { s: s.options },
      {
        plans: { all: { serverTools: ['mcp:*'] }, slow: { rpm: 2, serverTools: ['mcp:*'] } },
        policies: { words: { words: ['secret', 'failed'], action: 'mask' } },
      },
    );
  });
  after(async () => {
    await gateway?.stop();
    await servers?.remove();
  });

  const create = async (...options: readonly string[]): Promise<string> =>
    (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key;

  const lastCall = async (): Promise<CallRow | undefined> =>
    (await gateway.command<{ data: readonly CallRow[] }>('calls', '--limit', '1')).data[0];

  it('is charged and in the list of calls under its server and tool', async () => {
    expect(textOf(await call(gateway, 'echo', { a: 1 }))).to.equal('{"a":1}');
    expect(await lastCall()).to.deep.include({
      operation: 'mcp',
      provider: 'mcp',
      model: 's/echo',
      outcome: 'ok',
      cost_usd: '0.25',
      units: { tool_calls: 1 },
    });
  });

  it('counts a tool that ran and failed, at its price', async () => {
    const { result } = await call(gateway, 'fail');
    expect(result?.isError).to.equal(true);
    expect(await lastCall()).to.deep.include({
      outcome: 'ok',
      cost_usd: '0.01',
      units: { tool_calls: 1, tool_errors: 1 },
    });
  });

  it('costs nothing if the server rejected it, and the price if it may have run', async () => {
    const rejected = await call(gateway, 'none');
    expect(rejected.error?.message).to.include('no tool none');
    expect(await lastCall()).to.deep.include({ outcome: 'error', error_code: 'invalid_request', cost_usd: '0.00' });
    const late = await call(gateway, 'hang');
    expect(late.error?.data).to.include({ code: 'provider_timeout' });
    expect(await lastCall()).to.deep.include({ outcome: 'error', error_code: 'provider_timeout', cost_usd: '0.01' });
  });

  it('is refused with the reason when the budget of its key is too small, before the server sees it', async () => {
    const key = await create('--plan', 'all', '--budget', '0.30');
    const before = textOf(await call(gateway, 'calls'));
    expect((await call(gateway, 'echo', {}, key)).error).to.equal(undefined);
    const { status, error } = await call(gateway, 'echo', {}, key);
    expect(status, 'in the message of the protocol').to.equal(200);
    expect(error?.code).to.equal(402);
    expect(error?.data).to.include({ code: 'insufficient_balance' });
    expect(Number(textOf(await call(gateway, 'calls'))) - Number(before), 'the refused one is not among them').to.equal(
      2,
    );
  });

  it('counts against the requests per minute of a plan', async () => {
    const key = await create('--plan', 'slow');
    expect((await call(gateway, 'echo', {}, key)).error).to.equal(undefined);
    expect((await call(gateway, 'echo', {}, key)).error).to.equal(undefined);
    expect((await call(gateway, 'echo', {}, key)).error).to.deep.include({ code: 429 });
  });

  it('passes guardrails with its arguments and its result, structured content included', async () => {
    expect(textOf(await call(gateway, 'echo', { id: 'a secret' })), 'names of fields exempt nothing').to.not.include(
      'secret',
    );
    const { result } = await call(gateway, 'status');
    expect(JSON.stringify(result)).to.include('structuredContent').and.not.include('failed');
  });

  it('is in the metrics', async () => {
    const text = await (await gateway.get('/metrics')).text();
    expect(text).to.match(/tollgate_calls_total\{[^}]*operation="mcp"[^}]*\} [1-9]/);
  });

  it('does not run twice for one call that failed', async () => {
    const before = Number(textOf(await call(gateway, 'calls')));
    await call(gateway, 'hang');
    await call(gateway, 'none');
    expect(Number(textOf(await call(gateway, 'calls'))) - before).to.equal(3);
  });

  it('is listed under unknown methods of other servers never', async () => {
    expect((await send(gateway, 'tools/call', { name: 's__echo', arguments: [] })).error?.code).to.equal(-32_602);
  });
});
