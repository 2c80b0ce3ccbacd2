import { expect } from 'chai';
import { CallerSignal, toAbortSignal } from '../../../core/upstream/caller-signal.ts';

describe('the signal of a caller', () => {
  it('tells each listener once, with the reason, but not one that went away', () => {
    const caller = new CallerSignal();
    const told: string[] = [];
    const gone = () => told.push('gone');
    caller.addEventListener('abort', () => told.push('one'));
    caller.addEventListener('abort', gone);
    caller.addEventListener('abort', () => told.push('two'));
    caller.removeEventListener('abort', gone);
    caller.abort('left');
    caller.abort('again');
    expect(told).to.deep.equal(['one', 'two']);
    expect(caller).to.include({ aborted: true, reason: 'left' });
  });

  it('is a real AbortSignal for who asks, before or after it fired', () => {
    const early = new CallerSignal();
    const { signal } = early;
    expect(signal).to.be.instanceOf(AbortSignal);
    expect(signal.aborted).to.equal(false);
    early.abort('left');
    expect(signal).to.include({ aborted: true, reason: 'left' });
    expect(early.signal).to.equal(signal);

    const late = new CallerSignal();
    late.abort();
    expect(late.signal.aborted).to.equal(true);
    expect((late.signal.reason as Error).name).to.equal('AbortError');
    expect(toAbortSignal(late)).to.equal(late.signal);
  });
});
