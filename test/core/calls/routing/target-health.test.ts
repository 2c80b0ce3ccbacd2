import { expect } from 'chai';
import fc from 'fast-check';
import {
  begin,
  forget,
  type Health,
  judge,
  mayTry,
  openByOthers,
  stateOf,
  UNKNOWN,
  type Verdict,
} from '../../../../core/calls/routing/target-health.ts';

const failure = (cause: 'failures' | 'rate_limit' | 'credential' = 'failures', retryAfterMs?: number): Verdict => ({
  ...{ kind: 'failure', cause, error: { message: 'no' } },
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});
const success: Verdict = { kind: 'success', durationMs: 100, stream: false };

/** Judges one verdict after the other, a millisecond apart. */
const judgeAll = (verdicts: readonly Verdict[], from: Health = UNKNOWN, at = 1000): Health =>
  verdicts.reduce((health, verdict, n) => judge(health, verdict, at + n), from);

describe('the health of a target', () => {
  it('stays closed for two failures in a row, and opens with the third', () => {
    expect(stateOf(judgeAll([failure(), failure()]), 1010)).to.equal('closed');
    expect(stateOf(judgeAll([failure(), failure(), failure()]), 1010)).to.equal('open');
    expect(stateOf(judgeAll([failure(), failure(), success, failure(), failure()]), 1010)).to.equal('closed');
  });

  it('opens when more than half of many attempts fail, although some succeed between', () => {
    const flapping = Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? success : failure()));
    expect(stateOf(judgeAll(flapping), 1070)).to.equal('open');
  });

  it('opens at once for a rate limit, for as long as the vendor told', () => {
    const limited = judgeAll([failure('rate_limit', 2000)]);
    expect(mayTry(limited, 2999)).to.equal(false);
    expect(mayTry(limited, 3000)).to.equal(true);
  });

  it('opens at once for a refused key', () => {
    expect(stateOf(judgeAll([failure('credential')]), 1001)).to.equal('open');
  });

  it('believes no wait over five minutes', () => {
    expect(judgeAll([failure('rate_limit', 999_999_000)]).openUntil).to.equal(301_000);
  });

  it('is never opened by what callers send', () => {
    expect(stateOf(judgeAll(Array.from({ length: 50 }, () => ({ kind: 'alive' }) as const)), 2000)).to.equal('closed');
  });

  it('is tested by one call when its time is over, and closed by a success', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    expect(stateOf(open, at)).to.equal('half-open');
    const tested = begin(open, at);
    expect(mayTry(tested, at + 1), 'a second call').to.equal(false);
    expect(stateOf(judge(tested, success, at + 2), at + 2)).to.equal('closed');
  });

  it('is open for twice as long when the test fails', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    const again = judge(begin(open, at), failure(), at);
    expect((again.openUntil ?? 0) - at).to.equal(2 * (at - 1002));
  });

  it('may be tested by the next call when the caller of the test left', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    expect(mayTry(forget(begin(open, at)), at + 1)).to.equal(true);
  });

  it('stays open for a told wait although one call still succeeds', () => {
    const limited = judge(judgeAll([failure('rate_limit', 2000)]), success, 1500);
    expect(stateOf(limited, 1501)).to.equal('open');
  });

  it('is open when others say so, and tested when they say no more', () => {
    const open = openByOthers(UNKNOWN, 5000, 1000);
    expect(stateOf(open, 1001)).to.equal('open');
    expect(stateOf(judge(open, success, 1001), 1001), 'a call from before succeeds').to.equal('open');
    expect(stateOf({ ...open, openUntil: 1002 }, 1002)).to.equal('half-open');
  });

  it('always comes back: whatever happened, it may be tried after the longest wait, and a success then closes it', () => {
    const verdicts = fc.array(
      fc.oneof(
        fc.constant(success),
        fc.constant<Verdict>({ kind: 'alive' }),
        fc.record({
          kind: fc.constant('failure' as const),
          cause: fc.constantFrom('failures' as const, 'rate_limit' as const, 'credential' as const),
          error: fc.record({ message: fc.string() }),
          retryAfterMs: fc.option(fc.nat(10_000_000), { nil: undefined }),
        }),
      ),
      { maxLength: 100 },
    );
    fc.assert(
      fc.property(verdicts, fc.nat(10_000), (all, stepMs) => {
        let now = 1000;
        let health = UNKNOWN;
        for (const verdict of all) {
          now += stepMs;
          health = judge(begin(health, now), verdict, now);
          expect(health.errorRate).to.be.within(0, 1);
        }
        now += 300_000;
        expect(mayTry(health, now)).to.equal(true);
        expect(stateOf(judge(begin(health, now), success, now), now)).to.equal('closed');
      }),
    );
  });
});
