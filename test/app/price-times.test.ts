import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT } from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const HOUR_MS = 3_600_000;
/** Prices of adjacent rows share one instant. */
const NOW = Date.now();
const from = (hours: number): string => new Date(NOW + hours * HOUR_MS).toISOString();
const clock = (hours: number): string => from(hours).slice(11, 16);
const USAGE = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 };

describe('prices with dates and hours, over HTTP', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream(respondWith(200, CHAT.whole({ usage: USAGE })));
    const one = { input: 1, output: 1 };
    const two = { input: 2, output: 2 };
    const dear = { input: 1000, output: 1000 };
    gateway = await startGateway({
      billing: 'enforce',
      providers: {
        local: {
          ...{ plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] },
          prices: {
            changed: [
              { ...one, until: from(-1) },
              { ...two, from: from(-1) },
            ],
            coming: [
              { ...one, until: from(48) },
              { ...two, from: from(48) },
            ],
            hours: [one, { ...two, hours: `daily ${clock(-1)}-${clock(2)}` }],
            rising: [
              { ...one, until: from(0.5) },
              { ...dear, from: from(0.5) },
            ],
            long: { ...one, tiers: [{ ...two, input_tokens_above: 500 }] },
          },
        },
      },
    });
    await gateway.command('accounts', 'credit', 'local', '1');
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  const send = (model: string) =>
    gateway.post(CHAT.path, { ...CHAT.request, model: `local/${model}`, max_tokens: 2000, service_tier: 'default' });

  for (const [model, title, usd] of [
    ['changed', 'a price that has changed', 0.0022],
    ['coming', 'a price that will change', 0.0011],
    ['hours', 'the price of the hour', 0.0022],
    ['long', 'the tier of a long prompt', 0.0022],
  ] as const)
    it(`${title} is charged (E17)`, async () => {
      const response = await send(model);
      expect(response.status, await response.clone().text()).to.equal(200);
      expect(Number(response.headers.get('x-tollgate-cost-usd'))).to.equal(usd);
    });

  it('the reservation uses a higher price that starts while the call may run (E17)', async () => {
    const sent = upstream.requests.length;
    expect((await send('rising')).status).to.equal(402);
    expect(upstream.requests).to.have.length(sent);
  });

  for (const [title, prices, message] of [
    ['a gap', [{ input: 1, output: 1, from: '2026-12-01' }], 'leaves a gap: there is no price before 2026-12-01'],
    ['a row that is malformed', [{ input: 1, output: 1, hours: 'at night' }], 'hours'],
    ['an invalid date', [{ input: 1, output: 1, until: '2026-13-01' }], 'until'],
    ['a row without output', [{ input: 1 }], 'output'],
  ] as const)
    it(`${title} stops a start, with the reason (E17)`, async () => {
      const provider = { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', prices: { m: prices } };
      let error: unknown;
      await startGateway({ providers: { local: provider } }).then(
        (started) => started.stop(),
        (thrown: unknown) => {
          error = thrown;
        },
      );
      expect(String(error)).to.include('providers.local.prices.m').and.include(message);
    });
});
