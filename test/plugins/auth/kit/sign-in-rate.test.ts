import { expect } from 'chai';
import { createSignInRate } from '../../../../plugins/auth/kit/sign-in-rate.ts';

describe('the limit of sign-in requests', () => {
  const start = Date.now();
  /** Sends requests from an address until one is refused. */
  const exhaust = async (count: ReturnType<typeof createSignInRate>, address: string, now = start): Promise<number> => {
    for (let sent = 0; ; sent += 1) {
      const refused = await count(address, now).catch((error: { code: string }) => error.code);
      if (refused !== undefined) {
        expect(refused).to.equal('rate_limited');
        return sent;
      }
    }
  };

  it('is one of each network in a minute', async () => {
    const count = createSignInRate(30);
    expect(await exhaust(count, '2001:db8:1:2::1')).to.equal(30);
    expect(await exhaust(count, '2001:db8:1:2::9')).to.equal(0);
    expect(await exhaust(count, '2001:db8:1:3::1')).to.equal(30);
    expect(await exhaust(count, '2001:db8:1:2::1', start + 60_000)).to.equal(30);
  });

  it('leaves a share to networks that were not seen this minute, however many requests strangers sent (G63)', async () => {
    const count = createSignInRate(30);
    for (let stranger = 0; stranger < 100; stranger += 1) await exhaust(count, `198.51.100.${stranger}`);
    expect(await exhaust(count, '203.0.113.1')).to.equal(6);
  });

  it('bounds the requests of all networks together', async () => {
    const count = createSignInRate(5);
    let sent = 0;
    for (let network = 0; network < 2000; network += 1)
      sent += await exhaust(count, `198.51.${network >> 8}.${network & 255}`);
    expect(sent).to.equal(5 * 20 * 11);
  });
});
