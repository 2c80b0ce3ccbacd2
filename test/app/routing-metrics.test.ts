import { expect } from 'chai';
import { fine, hung, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { chunk, LAST_CHUNK, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

describe('the metrics of routing, the store and money', () => {
  let rig: RoutingRig;
  before(async () => {
    rig = await startRoutingRig({
      pair: ['a/pair', 'b/pair'],
      quick: { targets: ['c/quick', 'd/quick'], hedge: { after: '10ms', maxExtra: '100%' } },
    });
  });
  after(() => rig?.stop());

  const scrape = async (): Promise<string> => (await fetch(`${rig.gateway.url}/metrics`)).text();
  const numberAt = (text: string, line: string): number => {
    const found = text.split('\n').find((each) => each.startsWith(`${line} `));
    return Number(found?.slice(line.length + 1) ?? Number.NaN);
  };

  it('include the time to the first token, and between tokens, of streams by provider and model', async () => {
    const usage = { prompt_tokens: 5, completion_tokens: 11, total_tokens: 16 };
    rig.vendors['a']?.script(async (wire) => {
      await wire.pause(60);
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      await wire.pause(100);
      await wire.send(chunk(`data: ${delta('two', 'stop', { usage })}\n\ndata: [DONE]\n\n`));
      await wire.send(LAST_CHUNK);
    });
    expect((await rig.send('a/streamed', { stream: true })).status).to.equal(200);
    rig.vendors['a']?.script(fine);
    await rig.send('a/whole');
    await eventually(async () => {
      const text = await scrape();
      const of = 'provider="a",model="streamed"';
      expect(numberAt(text, `tollgate_time_to_first_token_seconds_sum{${of}}`)).to.be.at.least(0.06);
      // A tenth of a second for ten tokens after the first.
      expect(numberAt(text, `tollgate_time_between_tokens_seconds_sum{${of}}`)).to.be.at.least(0.009);
      expect(numberAt(text, `tollgate_time_between_tokens_seconds_count{${of}}`)).to.equal(1);
      expect(text).not.to.match(/tollgate_time_\w+_token\w*\{.*model="whole"/);
    });
  });

  it('include hedged requests by outcome', async () => {
    const of = (result: string) => `tollgate_hedges_total{provider="d",model="quick",result="${result}"}`;
    rig.vendors['c']?.script(hung);
    expect((await rig.send('quick')).by).to.equal('d');
    rig.vendors['d']?.script(refusal(500));
    const request = rig.vendors['d']?.request(rig.vendors['d'].requests.length);
    rig.vendors['c']?.script(async (wire) => {
      await request;
      await eventually(async () => expect(rig.gateway.logText()).to.include('"next":"wait"') && undefined);
      await wire.send(fine);
    });
    expect((await rig.send('quick')).by).to.equal('c');
    const text = await scrape();
    expect([numberAt(text, of('won')), numberAt(text, of('failed'))]).to.deep.equal([1, 1]);
  });

  it('include the number of available targets of an alias', async () => {
    const left = 'tollgate_alias_targets_available{alias="pair"}';
    expect(numberAt(await scrape(), left)).to.equal(2);
    rig.vendors['a']?.script(refusal(429, { 'retry-after': '60' }));
    rig.vendors['b']?.script(refusal(429, { 'retry-after': '60' }));
    await rig.send('pair');
    expect(numberAt(await scrape(), left)).to.equal(0);
  });

  it('include reservations while a call runs, and none afterwards', async () => {
    const seen: number[] = [];
    rig.vendors['a']?.script(async (wire) => {
      seen.push(numberAt(await scrape(), 'tollgate_held_usd'));
      await wire.send(fine);
    });
    expect((await rig.send('a/held')).status).to.equal(200);
    expect(seen[0]).to.be.greaterThan(0).and.lessThan(0.001);
    expect(numberAt(await scrape(), 'tollgate_held_usd')).to.equal(0);
    expect(numberAt(await scrape(), 'tollgate_settlements_waiting')).to.equal(0);
  });

  it('include count and duration of store operations', async () => {
    const before = await scrape();
    rig.vendors['a']?.script(fine);
    for (let n = 0; n < 3; n++) await rig.send('a/counted');
    await eventually(async () => {
      const text = await scrape();
      for (const operation of ['ledger.reserve', 'ledger.settle']) {
        const count = `tollgate_store_duration_seconds_count{operation="${operation}"}`;
        expect(numberAt(text, count) - numberAt(before, count), operation).to.equal(3);
      }
      expect(text).to.match(/tollgate_store_duration_seconds_sum\{operation="ledger\.reserve"\} 0\.\d+/);
      expect(text).not.to.include('tollgate_store_failures_total{');
    });
  });
});
