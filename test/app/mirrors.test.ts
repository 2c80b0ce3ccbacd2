import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type Script,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, wholeBody } from '../support/vendors/vendor-wires.ts';
import { eventually } from '../support/wait.ts';

/** Cost of 20 tokens in and 5 out: 0.0003 USD at the requested model, a tenth of that at the other. */
const PRICES = { original: { input: 10, output: 20 }, other: { input: 1, output: 2 } };
const CALLS: ScriptedOutput = { pieces: [{ call: 'get_weather', id: 'call_1', arguments: '{"city":"Rome"}' }] };
const SAYS: ScriptedOutput = { pieces: [{ text: 'Sunny.' }] };

const saying =
  (said: ScriptedOutput): Script =>
  async (wire) => {
    const { stream } = wire.request.json() as { readonly stream?: boolean };
    if (stream !== true) return wire.send(respondWith(200, wholeBody('openai', said)));
    await wire.send(SSE_HEAD);
    await wire.send(chunk(streamText('openai', said)));
    await wire.send(LAST_CHUNK);
  };

interface Side {
  readonly cost_usd: string;
  readonly tool_calls: number;
  readonly completion_tokens: number;
  readonly duration_p50_ms: number | null;
}

interface Row {
  readonly pairs: number;
  readonly same_tools: number;
  readonly original: Side;
  readonly copy: Side;
  readonly difference: Omit<Side, 'duration_p50_ms'>;
  readonly skipped: number;
  readonly failed: Readonly<Record<string, number>>;
}

describe('a mirror of an alias', () => {
  const vendors: Record<string, Awaited<ReturnType<typeof startScriptedUpstream>>> = {};
  let gateway: TestGateway | undefined;
  before(async () => {
    for (const name of ['original', 'other']) vendors[name] = await startScriptedUpstream(saying(SAYS));
  });
  after(async () => {
    for (const vendor of Object.values(vendors)) await vendor.close();
  });
  beforeEach(() => {
    vendors['original']?.script(saying(CALLS));
    vendors['other']?.script(saying(SAYS));
  });
  afterEach(() => gateway?.stop());

  const start = async (mirror: object = {}): Promise<TestGateway> => {
    const providers = Object.fromEntries(
      Object.entries(PRICES).map(([name, price]) => [
        name,
        {
          plugin: 'openai-compatible',
          baseUrl: vendors[name]?.url,
          apiKey: 'k',
          models: ['m'],
          prices: { '*': price },
        },
      ]),
    );
    gateway = await startGateway({
      providers,
      models: { smart: 'original/m' },
      policies: { mirror: { models: { smart: { to: 'other/m', share: '100%' } }, ...mirror } },
    });
    return gateway;
  };
  const chat = async ({ post }: TestGateway, rest: object = {}, headers = {}): Promise<Response> => {
    const messages = [{ role: 'user', content: 'What is the weather?' }];
    const response = await post('/v1/chat/completions', { model: 'smart', messages, ...rest }, headers);
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-tollgate-provider')).to.equal('original');
    expect(await response.text()).to.include('get_weather');
    return response;
  };
  const rows = async ({ command }: TestGateway): Promise<readonly Row[]> =>
    (await command<{ data: readonly Row[] }>('mirrors', 'list')).data;
  const rowWith = (target: TestGateway, holds: (row: Row) => boolean): Promise<Row> =>
    eventually(async () => {
      const [row] = await rows(target);
      if (!row || !holds(row)) throw new Error(`the report is ${JSON.stringify(row)}`);
      return row;
    });

  it('reports cost and tool calls of calls and their copies, with and without a stream', async () => {
    const target = await start();
    await chat(target);
    await rowWith(target, ({ pairs }) => pairs === 1);
    await chat(target, { stream: true });
    const row = await rowWith(target, ({ pairs }) => pairs === 2);
    expect(row).to.deep.include({ same_tools: 0, skipped: 0, failed: {} });
    expect(row.original).to.include({ cost_usd: '0.0006', tool_calls: 2, completion_tokens: 10 });
    expect(row.copy).to.include({ cost_usd: '0.00006', tool_calls: 0, completion_tokens: 10 });
    expect(row.difference).to.include({ cost_usd: '-0.00054', tool_calls: -2, completion_tokens: 0 });
    expect(row.copy.duration_p50_ms).to.be.a('number');
    const admin = await target.get('/api/core/admin/mirrors');
    expect(admin.status, 'a key of callers reads no report').to.equal(403);
  });

  it('charges a copy to the mirrors’ user, with a tag and the caller’s request id; the caller pays only for the own call', async () => {
    const target = await start({ user: 'trials' });
    const response = await chat(target);
    await rowWith(target, ({ pairs }) => pairs === 1);
    const { data } = await target.command<{ data: readonly Record<string, unknown>[] }>('calls', '--user', 'trials');
    expect(data).to.have.length(1);
    expect(data[0]).to.deep.include({
      ...{ provider: 'other', tags: ['mirror=smart'], cost_usd: '0.00003' },
      request_id: response.headers.get('x-request-id'),
    });
    expect(await target.command('accounts', 'show', 'local')).to.deep.include({ spent_usd: '0.0003' });
  });

  it('neither delays nor fails a call whose copy hangs or fails, and limits its copies @slow', async () => {
    const target = await start({ atOnce: 1 });
    vendors['other']?.script(respondWith(500, { error: { message: 'broken' } }));
    await chat(target);
    const { failed } = await rowWith(target, (row) => Object.keys(row.failed).length > 0);
    expect(Object.values(failed)).to.deep.equal([1]);
    vendors['other']?.script((wire) => wire.hang());
    const seen = vendors['other']?.requests.length ?? 0;
    await chat(target);
    await vendors['other']?.request(seen);
    await chat(target);
    const row = await rowWith(target, ({ skipped }) => skipped === 1);
    expect(row.pairs).to.equal(0);
  });

  it('sends nothing to a provider that the caller’s key may not use, nor for a share of zero', async () => {
    const seen = vendors['other']?.requests.length;
    const target = await start();
    const { api_key: key } = await target.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'ann',
      '--models',
      'original/m',
    );
    await chat(target, {}, { authorization: `Bearer ${key}` });
    await gateway?.stop();
    const quiet = await start({ models: { smart: { to: 'other/m', share: '0%' } } });
    await chat(quiet);
    await gateway?.stop();
    gateway = undefined;
    expect(vendors['other']?.requests.length).to.equal(seen);
  });
});
