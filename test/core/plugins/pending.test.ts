import { expect } from 'chai';
import { Pending } from '../../../core/plugins/attribution.ts';

describe('work that goes on beside its request', () => {
  it('is waited for until the last of it has ended', async () => {
    const pending = new Pending();
    const ended: string[] = [];
    const end = (what: string) => {
      ended.push(what);
      pending.end(what);
    };
    pending.begin('one');
    pending.begin('two');
    const idle = pending.idle(5000).then(() => ended.push('idle'));
    end('two');
    setImmediate(() => end('one'));
    await idle;
    expect(ended).to.deep.equal(['two', 'one', 'idle']);
  });

  it('is over at once when there is none', async () => {
    expect(await new Pending().idle(0)).to.deep.equal([]);
  });

  it('is named when it does not end in time', async () => {
    const pending = new Pending();
    pending.begin('plugin "slow", hook "finish"');
    pending.begin('plugin "slow", hook "finish"');
    pending.begin('a call');
    pending.end('plugin "slow", hook "finish"');
    pending.end('a call');
    expect(await pending.idle(10)).to.deep.equal(['plugin "slow", hook "finish"']);
  });
});
