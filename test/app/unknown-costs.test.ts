import { expect } from 'chai';
import { readBalance, settledBooks } from '../support/clients/books.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, type Json, MESSAGES, type Wire } from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';
import { anthropic, openai } from './vendor-bills.ts';

/** Responses with a billed item that the price table lacks, from a model whose own price is known. */
const UNKNOWN: readonly (readonly [what: string, wire: Wire, model: string, said: Json])[] = [
  ['tier', CHAT, 'openai/gpt-5.5', { service_tier: 'turbo', usage: openai(10, 10) }],
  ['region', MESSAGES, 'anthropic/claude-opus-5', { usage: anthropic(10, 10, { inference_geo: 'mars' }) }],
  ['unit', CHAT, 'priced/m', { usage: openai(10, 10, { server_tool_use: { web_search_requests: 1 } }) }],
];

describe('a call whose cost is not known', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway | undefined;
  before(async () => {
    upstream = await startScriptedUpstream();
  });
  after(() => upstream.close());
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  const start = async (billing: 'track' | 'enforce'): Promise<TestGateway> => {
    const at = { baseUrl: upstream.url, apiKey: 'k' };
    const priced = { ...at, plugin: 'openai-compatible', models: ['*'], prices: { m: { input: 1, output: 1 } } };
    const relay = { ...at, plugin: 'openai-compatible', models: ['*'] };
    gateway = await startGateway({ billing, providers: { openai: at, anthropic: at, bedrock: at, priced, relay } });
    return gateway;
  };

  const newKey = async (to: TestGateway, ...options: readonly string[]): Promise<string> =>
    (await to.command<{ api_key: string }>('keys', 'create', '--user', 'ann', ...options)).api_key;

  const send = (to: TestGateway, wire: Wire, model: string, token: string, more: Json = {}): Promise<Response> =>
    to.post(wire.path, { ...wire.request, max_tokens: 100, model, ...more }, { authorization: `Bearer ${token}` });

  const recordOf = (to: TestGateway, token: string, response: Response): Promise<Json> =>
    eventually(async () => {
      const id = response.headers.get('x-request-id');
      const list = await to.get(`/api/core/calls?request=${id}`, { authorization: `Bearer ${token}` });
      const { data } = (await list.json()) as { readonly data: readonly Json[] };
      expect(data).to.have.length(1);
      return data[0] as Json;
    });

  for (const [what, wire, model, said] of UNKNOWN)
    for (const stream of [false, true])
      it(`is charged its reservation if the balance must cover it: a ${what} without a price${stream ? ', streamed' : ''} (E4)`, async () => {
        const to = await start('enforce');
        const token = await newKey(to);
        // An account without money learns what the call may cost, which equals the reservation.
        const refused = (await (await send(to, wire, model, token)).text()).match(/may cost ([\d.]+) USD/);
        const held = refused?.[1] ?? 'nothing';
        await to.command('accounts', 'credit', 'ann', '1');
        upstream.script(
          stream
            ? respondWith(
                200,
                wire
                  .events(said)
                  .map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
                  .join(''),
                { 'content-type': 'text/event-stream' },
              )
            : respondWith(200, wire.whole(said)),
        );
        const response = await send(to, wire, model, token, { stream });
        await response.text();
        expect(response.status).to.equal(200);
        if (!stream) expect(response.headers.get('x-tollgate-cost-usd')).to.equal('unknown');
        expect(await recordOf(to, token, response)).to.include({ priced: false, cost_usd: held });
        expect(Number(held)).to.be.above(0);
        await settledBooks(to.url, token);
        expect(await readBalance(to.url, token)).to.include({ spent: held });
        const { entries } = await to.command<{ entries: readonly Json[] }>('accounts', 'show', 'ann');
        expect(entries[0]).to.include({ reason: `chat ${model} (its cost is not known)` });
      });

  for (const [tier, cost] of [
    ['default', '0.000176'],
    ['priority', 'unknown'],
    ['flex', 'unknown'],
    // Prepaid capacity is charged at the list price.
    ['reserved', '0.000176'],
  ])
    it(`includes Bedrock’s tier ${tier}: ${cost}, since AWS publishes no price of its other tiers (E3)`, async () => {
      const to = await start('track');
      const message = { role: 'assistant', content: [{ text: 'Hi' }] };
      const usage = { inputTokens: 100, outputTokens: 30, totalTokens: 130 };
      const said = { output: { message }, stopReason: 'end_turn', usage, serviceTier: { type: tier } };
      upstream.script(respondWith(200, said));
      const response = await send(to, CHAT, 'bedrock/amazon.nova-pro-v1:0', await newKey(to));
      expect(response.status, await response.clone().text()).to.equal(200);
      expect(response.headers.get('x-tollgate-cost-usd')).to.equal(cost);
    });

  it('is charged its known part if that exceeds the reservation (E4)', async () => {
    const to = await start('enforce');
    const token = await newKey(to);
    await to.command('accounts', 'credit', 'ann', '5');
    const usage = openai(2_000_000, 10, { server_tool_use: { web_search_requests: 1 } });
    upstream.script(respondWith(200, CHAT.whole({ usage })));
    const response = await send(to, CHAT, 'priced/m', token);
    expect(await recordOf(to, token, response)).to.include({ priced: false, cost_usd: '2.00001' });
  });

  it('is charged its reservation if a budget of the key must cover it (E4)', async () => {
    const to = await start('track');
    const [, wire, model, said] = UNKNOWN[2] ?? expect.fail();
    upstream.script(respondWith(200, wire.whole(said)));
    const token = await newKey(to, '--budget', '1');
    const response = await send(to, wire, model, token);
    const { cost_usd: cost, priced } = await recordOf(to, token, response);
    expect([priced, Number(cost) > 0]).to.deep.equal([false, true]);
    const { spent } = await settledBooks(to.url, token);
    expect(spent).to.equal(Math.round(Number(cost) * 1_000_000));
  });

  it('is not charged without a limit in money, and is unknown in its record, reports and metrics, never zero (E4)', async () => {
    const to = await start('track');
    const token = await newKey(to);
    const [, wire, model, said] = UNKNOWN[0] ?? expect.fail();
    upstream.script(respondWith(200, wire.whole(said)));
    const response = await send(to, wire, model, token);
    expect(await recordOf(to, token, response)).to.include({ priced: false, cost_usd: null, service_tier: 'turbo' });
    expect(await settledBooks(to.url, token)).to.include({ spent: 0, balance: 0 });
    const { totals } = (await (await to.get('/api/core/usage', { authorization: `Bearer ${token}` })).json()) as {
      readonly totals: Json;
    };
    expect(totals).to.include({ requests: 1, unpriced_requests: 1 });
    expect(await (await to.get('/metrics')).text()).to.match(
      /^tollgate_unpriced_calls_total\{[^}]*model="gpt-5.5"[^}]*\} 1$/m,
    );
  });

  it('counts as a call without a cost also when it was interrupted (E4)', async () => {
    const to = await start('track');
    const token = await newKey(to);
    const [first] = CHAT.events({});
    upstream.script(async (to) => {
      await to.send('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n');
      await to.send(`data: ${JSON.stringify(first)}\n\n`);
      to.end();
    });
    const response = await send(to, CHAT, 'relay/m', token, { stream: true });
    await response.text().catch(() => '');
    expect(await recordOf(to, token, response)).to.include({ priced: false, cost_usd: null, outcome: 'error' });
    expect(await (await to.get('/metrics')).text()).to.match(
      /^tollgate_unpriced_calls_total\{[^}]*provider="relay"[^}]*\} 1$/m,
    );
  });
});
