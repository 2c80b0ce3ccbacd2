import { expect } from 'chai';
import { isStreamFailure } from '../../../../../contract/index.ts';
import { createRenewed, type Lease, readToken, tokenCredential } from '../../../../../plugins/providers/kit/index.ts';
import { createSilentLog } from '../../../../support/log.ts';

const HOUR_MS = 3_600_000;
const REQUEST = { method: 'POST', url: 'https://vendor.example/', headers: {}, body: null };

/** Issuer of one-hour credentials that counts its requests and responds when the test allows it. */
function scripted() {
  let now = 1_000_000;
  let waiting: { resolve(lease: Lease<string>): void; reject(error: unknown): void }[] = [];
  let requestCount = 0;
  const log = createSilentLog();
  const renewed = createRenewed<string>({
    ...{ what: 'the token', log, now: () => now },
    fetch: () =>
      new Promise((resolve, reject) => {
        requestCount += 1;
        waiting.push({ resolve, reject });
      }),
  });
  const settle = async (work: (each: (typeof waiting)[number]) => void): Promise<void> => {
    for (const each of waiting) work(each);
    waiting = [];
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ...{ renewed, log },
    pass: (ms: number) => {
      now += ms;
    },
    get requestCount() {
      return requestCount;
    },
    give: (value: string) => settle(({ resolve }) => resolve({ value, endsAt: now + HOUR_MS })),
    refuse: (error: Error) => settle(({ reject }) => reject(error)),
  };
}

describe('a credential that ends', () => {
  it('E68: is fetched once however many wait for it, and then is there at once', async () => {
    const place = scripted();
    const waiting = [place.renewed.get(), place.renewed.get(), place.renewed.get()];
    expect(place.requestCount).to.equal(1);
    await place.give('a');
    expect(await Promise.all(waiting.map((each) => Promise.resolve(each)))).to.deep.equal(['a', 'a', 'a']);
    expect(place.renewed.get()).to.equal('a');
    expect(place.requestCount).to.equal(1);
  });

  it('E68: is renewed five minutes ahead of its end, while calls go on with the one that is there', async () => {
    const place = scripted();
    void place.renewed.get();
    await place.give('a');
    place.pass(HOUR_MS - 301_000);
    expect(place.renewed.get()).to.equal('a');
    expect(place.requestCount).to.equal(1);
    place.pass(2000);
    expect([place.renewed.get(), place.renewed.get()]).to.deep.equal(['a', 'a']);
    expect(place.requestCount).to.equal(2);
    await place.give('b');
    expect(place.renewed.get()).to.equal('b');
  });

  it('E68: stays in use when it cannot be renewed, is retried after ten seconds, and is dropped at its expiry', async () => {
    const place = scripted();
    void place.renewed.get();
    await place.give('a');
    place.pass(HOUR_MS - 60_000);
    expect(place.renewed.get()).to.equal('a');
    await place.refuse(new Error('not now'));
    place.pass(9000);
    expect([place.renewed.get(), place.requestCount]).to.deep.equal(['a', 2]);
    place.pass(2000);
    expect([place.renewed.get(), place.requestCount]).to.deep.equal(['a', 3]);
    await place.refuse(new Error('not now either'));
    expect(place.log.lines.map(({ message }) => message)).to.deep.equal([
      'the token cannot be renewed',
      'the token cannot be renewed',
    ]);
    place.pass(60_000);
    const late = place.renewed.get();
    expect(late).to.be.instanceOf(Promise);
    await place.give('b');
    expect(await late).to.equal('b');
  });

  it('E68: that cannot be fetched is not requested by every call', async () => {
    const place = scripted();
    const reasonOf = (value: unknown) => Promise.resolve(value).catch((error: Error) => error.message);
    const first = reasonOf(place.renewed.get());
    await place.refuse(new Error('no'));
    expect(await first).to.equal('no');
    expect(await reasonOf(place.renewed.get())).to.equal('no');
    expect(place.requestCount).to.equal(1);
    place.pass(1001);
    const second = reasonOf(place.renewed.get());
    await place.give('a');
    expect([await second, place.requestCount]).to.deep.equal(['a', 2]);
  });

  it('E68: is renewed once when a vendor refuses it, unless it is so new that another one would be refused too', async () => {
    const place = scripted();
    const credential = tokenCredential(place.renewed);
    const first = credential.headers?.(REQUEST);
    await place.give('a');
    expect(await first).to.deep.equal({ authorization: 'Bearer a' });
    expect(credential.refused?.(401, {})).to.equal(false);
    place.pass(31_000);
    expect(credential.refused?.(403, {})).to.equal(false);
    expect(credential.refused?.(401, {})).to.equal(true);
    const second = credential.headers?.(REQUEST);
    await place.give('b');
    expect(await second).to.deep.equal({ authorization: 'Bearer b' });
  });

  it('E68: expires by the clock of this machine, whatever the other one shows; an empty one is invalid', () => {
    expect(readToken({ access_token: 'a', expires_in: 3599, expires_on: 1 }, 'x', 5000).endsAt).to.equal(3_604_000);
    expect(readToken({ access_token: 'a', expires_in: '60' }, 'x', 0).endsAt).to.equal(60_000);
    expect(readToken({ access_token: 'a' }, 'x', 0).endsAt).to.equal(300_000);
    for (const body of [{}, { access_token: '' }, { access_token: 5 }])
      expect(() => readToken(body, 'x', 0))
        .to.throw('x returned no token')
        .that.satisfies(isStreamFailure);
  });
});
