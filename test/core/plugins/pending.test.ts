import { expect } from 'chai';
import { Pending } from '../../../core/plugins/pending.ts';

describe('work that goes on beside its request', () => {
  it('is waited for until the last of it has settled, however it did', async () => {
    const pending = new Pending();
    const settled: string[] = [];
    let finish: () => void = () => undefined;
    let fail: () => void = () => undefined;
    pending.track(new Promise<void>((resolve) => (finish = resolve)).then(() => settled.push('one')));
    pending.track(new Promise<void>((_resolve, reject) => (fail = () => reject(new Error('no')))));
    const idle = pending.idle().then(() => settled.push('idle'));
    fail();
    finish();
    await idle;
    expect(settled).to.deep.equal(['one', 'idle']);
  });

  it('is over at once when there is none', async () => {
    await new Pending().idle();
  });
});
