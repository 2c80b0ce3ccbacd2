import { expect } from 'chai';
import { Pending } from '../../../core/plugins/foundation.ts';

describe('work that goes on beside its request', () => {
  it('is waited for until the last of it has settled, however it did', async () => {
    const pending = new Pending();
    const settled: string[] = [];
    let finish: () => void = () => undefined;
    let fail: () => void = () => undefined;
    pending.track(
      new Promise<void>((resolve) => (finish = resolve)).then(() => settled.push('one')),
      'one',
    );
    pending.track(new Promise<void>((_resolve, reject) => (fail = () => reject(new Error('no')))), 'two');
    const idle = pending.idle(5000).then(() => settled.push('idle'));
    fail();
    finish();
    await idle;
    expect(settled).to.deep.equal(['one', 'idle']);
  });

  it('is over at once when there is none', async () => {
    expect(await new Pending().idle(0)).to.deep.equal([]);
  });

  it('is named when it does not end in time', async () => {
    const pending = new Pending();
    const never = new Promise<void>(() => {});
    pending.track(never, 'plugin "slow", hook "finish"');
    pending.track(never, 'plugin "slow", hook "finish"');
    pending.track(Promise.resolve(), 'a call');
    expect(await pending.idle(10)).to.deep.equal(['plugin "slow", hook "finish"']);
  });
});
