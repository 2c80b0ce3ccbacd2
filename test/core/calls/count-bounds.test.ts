import { expect } from 'chai';
import { createCountBounds, fingerprintOf } from '../../../core/calls/count.ts';

describe('the limits of token counting', () => {
  let now = 0;
  const bounds = () => createCountBounds(() => now);
  beforeEach(() => {
    now = 1000;
  });

  it('ask a vendor 60 times a minute for one key, and again in the next minute', async () => {
    const { send } = bounds();
    const sendAll = async (key: string, times: number) => {
      const responses = [];
      for (let at = 0; at < times; at += 1) responses.push(await send(key, async () => 1));
      return responses.filter((reported) => reported === 1).length;
    };
    expect(await sendAll('a', 70)).to.equal(60);
    expect(await sendAll('b', 1)).to.equal(1);
    now += 60_000;
    expect(await sendAll('a', 1)).to.equal(1);
  });

  it('reject more than 1,200 counts of a key per minute', () => {
    const { admit } = bounds();
    const admitted = Array.from({ length: 1201 }, () => admit('a'));
    expect(admitted.filter(Boolean)).to.have.length(1200);
    expect(admitted.at(-1)).to.equal(false);
    expect(admit('b')).to.equal(true);
    now += 60_000;
    expect(admit('a')).to.equal(true);
  });

  it('allow 16 concurrent requests to vendors, for all keys together', async () => {
    const { send } = bounds();
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const running = Array.from({ length: 16 }, (_, at) => send(`k${at}`, () => finished.then(() => 1)));
    expect(await send('more', async () => 1)).to.equal(undefined);
    finish();
    expect(await Promise.all(running)).to.deep.equal(Array(16).fill(1));
    expect(await send('more', async () => 1)).to.equal(1);
  });

  it('release the slot of a failed request', async () => {
    const { send } = bounds();
    const fail = () => send('a', () => Promise.reject(new Error('no')));
    for (let at = 0; at < 20; at += 1) expect(await fail().catch(({ message }: Error) => message)).to.equal('no');
    expect(await send('a', async () => 1)).to.equal(1);
  });

  it('cache a count for a minute', () => {
    const { find, remember } = bounds();
    remember('x', { inputTokens: 5, estimated: false });
    now += 59_999;
    expect(find('x')).to.deep.equal({ inputTokens: 5, estimated: false });
    now += 1;
    expect(find('x')).to.equal(undefined);
  });

  it('distinguish parts that are equal when joined', () => {
    expect(fingerprintOf('a', 'bc')).not.to.equal(fingerprintOf('ab', 'c'));
    expect(fingerprintOf({ a: 1 })).to.equal(fingerprintOf({ a: 1 }));
  });
});
