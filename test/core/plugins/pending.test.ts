import { expect } from 'chai';
import { Pending } from '../../../core/plugins/attribution.ts';

describe('background work of a request', () => {
  it('is awaited until all of it has ended', async () => {
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

  it('needs no wait without one', async () => {
    expect(await new Pending().idle(0)).to.deep.equal([]);
  });

  it('is named if it does not end in time', async () => {
    const pending = new Pending();
    pending.begin('plugin "slow", hook "finish"');
    pending.begin('plugin "slow", hook "finish"');
    pending.begin('a call');
    pending.end('plugin "slow", hook "finish"');
    pending.end('a call');
    expect(await pending.idle(10)).to.deep.equal(['plugin "slow", hook "finish"']);
  });
});
