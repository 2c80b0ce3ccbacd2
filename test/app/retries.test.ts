import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { fine, type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import type { Script } from '../support/vendors/scripted-upstream.ts';

/** A new idempotency key per request: a used key replays its response. */
const withKey = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });

describe('a retry', () => {
  let rig: RoutingRig;
  before(async () => {
    rig = await startRoutingRig(
      {
        pair: ['a/pair', 'b/pair'],
        three: ['a/three', 'b/three', 'd/three'],
        keyless: ['a/keyless', 'c/gpt-4o-mini'],
      },
      { c: { plugin: 'openai', apiKey: undefined, models: undefined } },
    );
  });
  after(() => rig?.stop());

  for (const [title, first, headers, status, attempts] of [
    ['is made after a 429', refusal(429), {}, 200, '2'],
    ['is made after a 429, not before its retry-after', refusal(429, { 'retry-after-ms': '300' }), {}, 200, '2'],
    ['is made after a 503', refusal(503), {}, 200, '2'],
    ['is made after a 529', refusal(529), {}, 200, '2'],
    ['is made once', [refusal(503), refusal(503), fine], {}, 503, '2'],
    ['is not made after a 429 with a long wait', refusal(429, { 'retry-after': '6' }), {}, 429, '1'],
    ['is not made after a 502, which may have been worked on', refusal(502), {}, 503, '1'],
    ['is made after a 502 with an idempotency key', refusal(502), withKey(), 200, '2'],
    ['is not made after a 400', refusal(400), withKey(), 400, '1'],
    ['is not made after a 500', refusal(500), withKey(), 503, '1'],
  ] as const)
    it(`${title}`, async () => {
      rig.vendors['d']?.script(...[first].flat(), fine);
      const before = rig.countOf('d');
      const response = await rig.send(`d/${title}`, {}, headers);
      expect(response.status, response.text).to.equal(status);
      expect(String(rig.countOf('d') - before)).to.equal(attempts);
      if (status === 200) expect(response.attempts).to.equal(attempts);
      else expect(response.shouldRetry, 'the caller’s SDK may try').to.equal(null);
      if (title.includes('sooner')) expect(response.ms).to.be.at.least(300);
    });

  for (const [title, headers, status] of [
    ['is not made when a new connection breaks', {}, 503],
    ['is made when a new connection breaks, with an idempotency key', withKey(), 200],
  ] as const)
    it(title, async () => {
      let broken = 0;
      // A keep-alive connection may close under any request, so the first reset is retried in any case.
      const script: Script = (wire) => {
        if (wire.request.nth === 0) broken += 1;
        return wire.request.nth === 0 && broken > 1 ? wire.send(fine) : wire.reset();
      };
      rig.vendors['d']?.script(script);
      expect((await rig.send(`d/${title}`, {}, headers)).status).to.equal(status);
    });

  it('is made of a stream before its first byte', async () => {
    rig.vendors['d']?.script(refusal(503), fine);
    const response = await rig.send('d/stream', { stream: true });
    expect(response.text).to.include('fine').and.include('[DONE]');
    expect(response.attempts).to.equal('2');
  });

  it('goes to another target if there is one', async () => {
    rig.vendors['a']?.script(refusal(503), fine);
    const before = rig.countOf('a');
    expect(await rig.send('pair')).to.include({ status: 200, by: 'b', attempts: '2' });
    expect(rig.countOf('a') - before).to.equal(1);
  });

  it('without success is reported by a vendor’s error, not by the key that the next one lacks', async () => {
    rig.vendors['a']?.script(refusal(500));
    const { text } = await rig.send('keyless');
    expect(text).to.include('provider_unavailable').and.not.include('provider_not_configured');
  });

  it('without success is reported to the caller’s SDK after as many attempts as it would make itself', async () => {
    for (const name of ['a', 'b', 'd']) rig.vendors[name]?.script(refusal(500));
    expect(await rig.send('three')).to.include({ status: 503, shouldRetry: 'false' });
    rig.vendors['d']?.script(refusal(500));
    expect(await rig.send('d/alone')).to.include({ status: 503, shouldRetry: null });
  });

  it('is made for at most three concurrent calls, when few are live', async () => {
    let release = () => {};
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    let first = 0;
    // All fail together; the repeated requests are counted.
    rig.vendors['d']?.script(async (wire) => {
      first += 1;
      if (first === 8) release();
      await all;
      await wire.send(first > 8 ? fine : refusal(503));
    });
    const before = rig.countOf('d');
    const requests = await Promise.all(Array.from({ length: 8 }, () => rig.send('d/crowd')));
    expect(rig.countOf('d') - before, 'eight calls and three retries').to.equal(11);
    expect(requests.filter(({ status }) => status === 503).length).to.be.at.least(5);
  });

  it('is charged once', async () => {
    const spent = async (): Promise<number> =>
      Number(((await (await rig.gateway.get('/api/core/balance')).json()) as { spent: string }).spent);
    const before = await spent();
    rig.vendors['d']?.script(refusal(503), fine);
    expect((await rig.send('d/money')).attempts).to.equal('2');
    const { eventually } = await import('../support/wait.ts');
    await eventually(async () => expect((await spent()) - before).to.be.closeTo(0.00007, 1e-9));
  });
});
