import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

describe('the overview of recent calls', () => {
  let operator: Operator;
  let vendor: ScriptedUpstream;

  before(async () => {
    vendor = await startScriptedUpstream((wire) =>
      wire.send(
        wire.request.body.toString().includes('please fail')
          ? respondWith(400, { error: { message: 'no such tool' } })
          : respondWith(200, completion('fine', { usage: usageOf(200, 50) })),
      ),
    );
    operator = await startOperator({
      providers: { echo: {}, north: openAiVendor(vendor, { models: ['m'], prices: tokenPrices(3, 15) }) },
      models: { smart: ['north/m'] },
      budgets: [{ name: 'everyone', amount_usd: 1, every: 'hour' }],
    });
    const { body } = await operator.call('POST', '/keys', { user_id: 'lena', models: ['smart', 'north/m'] });
    const send = async (model: string, content: string): Promise<void> => {
      const request = { model, messages: [{ role: 'user', content }] };
      const response = await operator.gateway.post('/v1/chat/completions', request, {
        authorization: `Bearer ${body.api_key}`,
      });
      await response.text();
    };
    for (const content of ['Hi', 'Hi', 'please fail', 'please fail', 'please fail']) await send('smart', content);
    await send('north/m', 'please fail');
    for (let number = 0; number < 2; number += 1) await send('echo/echo', 'Hi');
    await eventually(async () =>
      expect((await operator.call('GET', '/calls?count=true&limit=1')).body.count.calls).to.equal(8),
    );
  });
  after(async () => {
    await operator?.gateway.stop();
    await vendor?.close();
  });

  for (const [range, steps] of [
    ['hour', 12],
    ['day', 24],
    ['week', 8],
  ] as const)
    it(`has calls, errors, rejections, cost and latency of the last ${range}`, async () => {
      const { status, body } = await operator.call('GET', `/overview?range=${range}&tz=Europe/Berlin`);
      expect(status).to.equal(200);
      expect(body.totals).to.include({ errors: 4, refused: 2, cost_usd: '0.0027' });
      expect(body.totals.duration_p95_ms).to.be.above(0);
      expect(body.steps).to.have.length.within(steps - 1, steps + 1);
      const sum = (field: string): number =>
        body.steps.reduce((total: number, step: Record<string, number>) => total + (step[field] ?? 0), 0);
      expect([sum('requests'), sum('errors'), sum('refused')]).to.deep.equal([body.totals.requests, 4, 2]);
      expect(body.is_complete).to.equal(true);
    });

  it('has the same calls, errors and cost without details, and no figures of records', async () => {
    const { body: whole } = await operator.call('GET', '/overview?range=day');
    const { status, body } = await operator.call('GET', '/overview?range=day&details=false');
    expect(status).to.equal(200);
    const { requests, errors, cost_usd } = whole.totals;
    expect(body.totals).to.deep.equal({ requests, errors, cost_usd });
    expect(body.steps.at(-1)).to.have.all.keys('at', 'name', 'requests', 'errors', 'cost_usd');
    expect(body.causes).to.deep.equal([]);
  });

  it('has the calls of a user or a model alone', async () => {
    const { body: lena } = await operator.call('GET', '/overview?user=lena&model=m');
    expect(lena.totals).to.include({ requests: 6, errors: 4, refused: 0 });
    expect(lena.causes.every(({ model }: { model: string | null }) => model !== 'echo')).to.equal(true);
    const { body: other } = await operator.call('GET', '/overview?user=other');
    expect(other.totals).to.include({ requests: 0, cost_usd: '0.00' });
    expect(other.causes).to.deep.equal([]);
  });

  it('groups failures by error and model, with their number and the time of the first', async () => {
    const { body } = await operator.call('GET', '/overview');
    const rows = body.causes.map((cause: Record<string, unknown>) => [
      cause['outcome'],
      cause['error_code'],
      cause['alias'] ?? `${cause['provider']}/${cause['model']}`,
      cause['calls'],
      cause['users'],
    ]);
    expect(rows).to.deep.equal([
      ['error', 'invalid_request', 'smart', 3, 1],
      ['refused', 'model_not_allowed', 'echo/echo', 2, 1],
      ['error', 'invalid_request', 'north/m', 1, 1],
    ]);
    const [first] = body.causes;
    expect(first.first_at <= first.last_at).to.equal(true);
    expect((await operator.call('GET', `/calls/${first.last_id}`)).body.error_code).to.equal('invalid_request');
  });

  it('shows messages of vendors only with the scope bodies:read', async () => {
    const messageFor = async (key: string): Promise<unknown> => {
      const response = await operator.gateway.get('/api/core/admin/overview', { authorization: `Bearer ${key}` });
      const { causes } = (await response.json()) as { causes: readonly { alias: unknown; message: unknown }[] };
      return causes.find(({ alias }) => alias === 'smart')?.message;
    };
    const { body } = await operator.call('POST', '/keys', { user_id: 'vic', role: 'viewer' });
    expect(await messageFor(operator.key)).to.include('no such tool');
    expect(await messageFor(body.api_key)).to.equal(null);
  });

  it('rejects an unknown range and zone with the name of the parameter', async () => {
    for (const param of ['range', 'tz']) {
      const { status, body } = await operator.call('GET', `/overview?${param}=x`);
      expect([status, body.error.param]).to.deep.equal([400, param]);
    }
  });

  it('forecasts the spending of a budget at its reset, and when it runs out', async () => {
    const { now } = Date;
    const hour = Math.floor(now() / 3_600_000) * 3_600_000;
    try {
      for (const [minute, forecast] of [
        [0.5, null],
        [30, '0.0054'],
      ] as const) {
        Date.now = () => hour + minute * 60_000;
        const { body } = await operator.call('GET', '/near-budgets');
        const row = body.data.find(({ budget }: { budget: string }) => budget === 'everyone');
        expect([row.starts_at, row.forecast_usd, row.runs_out_at]).to.deep.equal([
          new Date(hour).toISOString(),
          forecast,
          null,
        ]);
      }
    } finally {
      Date.now = now;
    }
  });
});
