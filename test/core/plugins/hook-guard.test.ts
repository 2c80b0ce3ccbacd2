import { expect } from 'chai';
import { countTimeout, forgetFailures, HookBook, isPaused, PAUSE_MS } from '../../../core/plugins/hook-guard.ts';

describe('a hook that takes too long', () => {
  it('E32: is skipped after five timeouts in a row, tried by one call after the pause, and used by all after its success', () => {
    const counts = new HookBook().countsOf('guard', 'admit');
    for (let at = 1; at < 5; at++) expect(countTimeout(counts)).to.equal(false);
    expect(countTimeout(counts)).to.equal(true);
    expect(counts.pausedUntilMs).to.be.within(performance.now(), performance.now() + PAUSE_MS);
    expect(isPaused(counts)).to.equal(true);
    counts.pausedUntilMs = performance.now() - 1;
    expect([isPaused(counts), isPaused(counts)]).to.deep.equal([false, true]);
    expect(counts.skipped).to.equal(2);
    expect(forgetFailures(counts)).to.equal(true);
    expect(counts.pausedUntilMs).to.equal(0);
  });

  it('E32: is not skipped after timeouts with successes in between', () => {
    const counts = new HookBook().countsOf('guard', 'admit');
    for (let at = 0; at < 20; at++) {
      expect(countTimeout(counts)).to.equal(false);
      if (at % 4 === 3) forgetFailures(counts);
    }
    expect(counts.pausedUntilMs).to.equal(0);
  });

  it('E32: is not skipped because of one caller’s hanging calls while others succeed', () => {
    const counts = new HookBook().countsOf('guard', 'admit');
    const before = counts.wentWell;
    counts.wentWell += 1;
    for (let at = 0; at < 20; at++) expect(countTimeout(counts, before)).to.equal(false);
    expect(counts.pausedUntilMs).to.equal(0);
    // Calls that began later count these timeouts.
    for (let at = 1; at < 5; at++) expect(countTimeout(counts)).to.equal(false);
    expect(countTimeout(counts)).to.equal(true);
  });

  it('E32: is tried immediately by a call of another account than the one for which it hung, one at a time', () => {
    const counts = new HookBook().countsOf('guard', 'admit');
    for (let at = 1; at <= 5; at++) countTimeout(counts, counts.wentWell, 'greedy');
    expect(isPaused(counts, 'greedy')).to.equal(true);
    expect([isPaused(counts, 'other'), isPaused(counts, 'third')]).to.deep.equal([false, true]);
    forgetFailures(counts);
    expect(counts.pausedUntilMs).to.equal(0);
  });
});
