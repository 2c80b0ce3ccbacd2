import { expect } from 'chai';
import { fine, hung, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';

const TOO_LONG = {
  error: { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' },
};

describe('an alias with rules', () => {
  let rig: RoutingRig;
  before(async () => {
    rig = await startRoutingRig(
      {
        shared: {
          strategy: 'weighted',
          targets: [
            { to: 'a/m', weight: 3 },
            { to: 'b/m', weight: 1 },
            { to: 'c/m', order: 2 },
          ],
        },
        even: { strategy: 'weighted', targets: ['a/even', 'b/even'] },
        fast: { strategy: 'least-latency', targets: ['a/fast', 'b/fast'] },
        long: { targets: ['a/long'], onOverflow: 'd/long' },
        thrifty: { targets: [{ to: 'd/m', onlyWhenCheaper: true }, 'a/thrifty'] },
        impatient: { targets: ['a/impatient'], timeouts: { firstByte: '200ms' } },
      },
      // Highest price.
      { d: { prices: { '*': { input: 10, output: 20 } } } },
    );
  });
  after(() => rig?.stop());
  beforeEach(() => {
    for (const vendor of Object.values(rig.vendors)) vendor.script(fine);
  });

  it('distributes calls by weight, and keeps a session on its target @slow', async () => {
    const firsts = await Promise.all(Array.from({ length: 200 }, async () => (await rig.send('shared')).by));
    expect(firsts.filter((by) => by === 'a').length).to.be.within(120, 180);
    expect(firsts).not.to.include('c');
    for (const name of ['x-session-id', 'x-claude-code-session-id']) {
      const headers = { [name]: `session of ${name}` };
      const by = new Set<string | null>();
      for (let n = 0; n < 10; n++) by.add((await rig.send('shared', {}, headers)).by);
      expect(by.size, name).to.equal(1);
    }
  });

  it('falls back to its second group of targets when the first has failed', async () => {
    rig.vendors['a']?.script(refusal(500));
    rig.vendors['b']?.script(refusal(500));
    expect(await rig.send('shared')).to.include({ status: 200, by: 'c', attempts: '3' });
  });

  it('prefers the faster target once it is known', async () => {
    rig.vendors['a']?.script(async (wire) => {
      await wire.pause(500);
      await wire.send(fine);
    });
    for (let n = 0; n < 4; n++) await rig.send('fast');
    const by = [];
    for (let n = 0; n < 6; n++) by.push((await rig.send('fast')).by);
    expect(by).to.deep.equal(Array(6).fill('b'));
  });

  it('has a median within twice that of the fast target while another one is 20 times slower @slow', async () => {
    rig.vendors['a']?.script(async (wire) => {
      await wire.pause(1_000);
      await wire.send(fine);
    });
    const by: (string | null)[] = [];
    for (let n = 0; n < 40; n++) by.push((await rig.send('even')).by);
    // The median of forty latencies is one of the other thirty.
    expect(by.filter((name) => name === 'a').length, 'how often it is measured').to.be.below(10);
  });

  it('sends an overlong prompt to another target, at that target’s price', async () => {
    expect(await rig.send('long')).to.include({ by: 'a' });
    rig.vendors['a']?.script(
      `HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ncontent-length: ${JSON.stringify(TOO_LONG).length}\r\n\r\n${JSON.stringify(TOO_LONG)}`,
    );
    const response = await rig.gateway.post('/v1/chat/completions', {
      model: 'long',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'hi' }],
    });
    expect(response.headers.get('x-tollgate-provider')).to.equal('d');
    expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.0007');
  });

  it('uses its target for long prompts only for those', async () => {
    rig.vendors['a']?.script(refusal(500));
    expect(await rig.send('long')).to.include({ status: 503, by: null });
  });

  it('skips a target that is only for cheaper calls, if the call is not cheaper there', async () => {
    rig.vendors['a']?.script(refusal(500));
    expect(await rig.send('thrifty')).to.include({ status: 503 });
  });

  it('has its own timeouts', async () => {
    rig.vendors['a']?.script(hung);
    const response = await rig.send('impatient');
    expect(response.status).to.equal(503);
    expect(response.text).to.include('provider_timeout');
  });
});
