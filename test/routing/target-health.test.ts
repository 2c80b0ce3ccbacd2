import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Attempt,
  begin,
  type Health,
  judge,
  leave,
  mayTry,
  openByOthers,
  shareOf,
  stateOf,
  UNKNOWN,
  type Verdict,
} from '../../routing/target-health.ts';

const failure = (cause: 'failures' | 'rate_limit' | 'credential' = 'failures', retryAfterMs?: number): Verdict => ({
  ...{ kind: 'failure', cause, error: { message: 'no' } },
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});
/** Attempt that begins at this time. */
const attempt = (startedAt: number, id = 1): Attempt => ({ id, startedAt });
const success: Verdict = { kind: 'success', durationMs: 100, stream: false };

const streamed: Verdict = { kind: 'success', stream: true };
const firstToken: Verdict = { kind: 'answered', stream: true, durationMs: 100 };
/** Stream that started and was interrupted. */
const broken: Verdict = { kind: 'failure', cause: 'failures', error: { message: 'no' }, isBroken: true };

/** Judges the verdicts in order, one millisecond apart. */
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

  it('opens for three fifths of many attempts and not for two fifths, and for none before the twentieth', () => {
    const of = (marks: string, count: number): Health =>
      judgeAll(Array.from({ length: count }, (_, n) => (marks[n % marks.length] === 'F' ? failure() : success)));
    expect(stateOf(of('FSFSF', 60), 1_070)).to.equal('open');
    expect(stateOf(of('SFSFS', 60), 1_070)).to.equal('closed');
    expect(stateOf(of('FFS', 19), 1_030)).to.equal('closed');
    expect(stateOf(of('FFS', 20), 1_030)).to.equal('open');
    expect(of('F', 1).errorRate, 'the first attempts count in full').to.equal(1);
    expect(of('FS', 2).errorRate).to.equal(0.5);
  });

  it('is probed by another call after a minute, if the first one has no result', () => {
    const open = judgeAll([failure('rate_limit', 1_000)]);
    const tested = begin(open, attempt(2_000));
    expect(mayTry(tested, 61_999)).to.equal(false);
    expect(mayTry(tested, 62_000)).to.equal(true);
  });

  it('is open for a moment when the vendor sends a past retry time', () => {
    expect(judgeAll([failure('rate_limit', -500)]).openUntil).to.equal(1_001);
  });

  it('opens at once for a rate limit, for the vendor’s retry-after', () => {
    const limited = judgeAll([failure('rate_limit', 2000)]);
    expect(mayTry(limited, 2999)).to.equal(false);
    expect(mayTry(limited, 3000)).to.equal(true);
  });

  it('opens at once for a refused key', () => {
    expect(stateOf(judgeAll([failure('credential')]), 1001)).to.equal('open');
  });

  it('caps a retry-after at five minutes', () => {
    expect(judgeAll([failure('rate_limit', 999_999_000)]).openUntil).to.equal(301_000);
  });

  it('is never opened by callers’ invalid requests', () => {
    expect(stateOf(judgeAll(Array.from({ length: 50 }, () => ({ kind: 'alive' }) as const)), 2000)).to.equal('closed');
  });

  it('is probed by one call when its time is over, and closed by a success', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    expect(stateOf(open, at)).to.equal('half-open');
    const tested = begin(open, attempt(at));
    expect(mayTry(tested, at + 1), 'a second call').to.equal(false);
    expect(stateOf(judge(tested, success, at + 2), at + 2)).to.equal('closed');
  });

  it('is open for twice as long when the probe fails', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    const again = judge(begin(open, attempt(at)), failure(), at);
    expect((again.openUntil ?? 0) - at).to.equal(2 * (at - 1002));
  });

  it('may be probed by the next call if the caller of the probe disconnected', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    expect(mayTry(leave(begin(open, attempt(at)), attempt(at)), at + 1)).to.equal(true);
  });

  it('E54: is not probed by a second call when one that is not the probe ends without a verdict (E59)', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    const tested = begin(open, attempt(at, 7));
    expect(mayTry(leave(tested, attempt(at, 8)), at + 1), 'after another one was left').to.equal(false);
    expect(mayTry(leave(tested, attempt(at, 7)), at + 1), 'after the test was left').to.equal(true);
  });

  it('E54: opens with the third interrupted stream in a row, also while calls without a stream succeed', () => {
    const mixed = judgeAll([broken, success, broken, success, broken]);
    expect(stateOf(mixed, 1010)).to.equal('open');
    const between = judgeAll([broken, broken, streamed, broken, broken]);
    expect(stateOf(between, 1010), 'with one that came to its end between').to.equal('closed');
  });

  it('E54: is not closed by the first token of the probing stream, but by its end', () => {
    const open = judgeAll([broken, broken, broken]);
    const at = open.openUntil ?? 0;
    const test = attempt(at);
    const healthy = judge(begin(open, test), firstToken, at + 1, test);
    expect(stateOf(healthy, at + 1)).to.equal('half-open');
    expect(mayTry(healthy, at + 2), 'a second call while the stream goes on').to.equal(false);
    expect(stateOf(judge(healthy, streamed, at + 3, test), at + 3)).to.equal('closed');
    const again = judge(healthy, broken, at + 3, test);
    expect((again.openUntil ?? 0) - (at + 3), 'open for twice as long').to.equal(10_000);
  });

  it('E54: is probed by a second call when the probing stream lasts longer than the open time', () => {
    const open = judgeAll([broken, broken, broken]);
    const at = open.openUntil ?? 0;
    const healthy = judge(begin(open, attempt(at)), firstToken, at + 1, attempt(at));
    expect(mayTry(healthy, at + 5_000)).to.equal(false);
    expect(mayTry(healthy, at + 5_001)).to.equal(true);
  });

  it('E54: is not closed by a call without a stream, when it was opened by interrupted streams, for a minute', () => {
    const open = judgeAll([broken, broken, broken]);
    const at = open.openUntil ?? 0;
    expect(stateOf(judge(begin(open, attempt(at)), success, at, attempt(at)), at)).to.equal('half-open');
    expect(stateOf(judge(open, success, at + 60_000), at + 60_000), 'when no stream comes').to.equal('closed');
  });

  it('E54: is not closed, nor opened again, by attempts that began before it was opened', () => {
    const open = judgeAll([broken, broken, broken]);
    const at = open.openUntil ?? 0;
    const old = attempt(900, 3);
    expect(stateOf(judge(open, streamed, 1_100, old), 1_100)).to.equal('open');
    expect(judge(open, broken, at, old).openUntil, 'half open').to.equal(open.openUntil);
  });

  it('E54: is open for longer again, if it was healthy for less than its open time', () => {
    const waits: number[] = [];
    let health = UNKNOWN;
    let now = 1000;
    for (let n = 0; n < 6; n++) {
      for (let failures = 0; failures < 3; failures++) health = judge(health, broken, now);
      waits.push((health.openUntil ?? 0) - now);
      now = health.openUntil ?? 0;
      health = judge(begin(health, attempt(now)), streamed, now, attempt(now));
      expect(stateOf(health, now)).to.equal('closed');
      now += 1_000;
    }
    expect(waits, 'and never for over a minute (E59)').to.deep.equal([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    // Three minutes of success reduce the opening count by three.
    now += 180_000;
    for (let failures = 0; failures < 3; failures++) health = judge(health, broken, now);
    expect((health.openUntil ?? 0) - now).to.equal(40_000);
  });

  it('E54: is closed by the first token of a stream when a rate limit or a key opened it', () => {
    for (const cause of ['rate_limit', 'credential'] as const) {
      const open = judgeAll([failure(cause)]);
      const at = open.openUntil ?? 0;
      expect(stateOf(judge(begin(open, attempt(at)), firstToken, at, attempt(at)), at), cause).to.equal('closed');
    }
  });

  it('E54: is neither closed nor opened by a rejected request', () => {
    const open = judgeAll([failure(), failure(), failure()]);
    const at = open.openUntil ?? 0;
    const refused = judge(begin(open, attempt(at)), { kind: 'alive' }, at, attempt(at));
    expect(stateOf(refused, at)).to.equal('half-open');
    expect(mayTry(refused, at), 'the next call may test').to.equal(true);
    expect(stateOf(judgeAll([failure(), failure(), { kind: 'alive' }, failure()]), 1010)).to.equal('open');
  });

  it('E59: is open for at most a minute for failures and limits without a wait, and five minutes for a key', () => {
    for (const [cause, longestMs] of [
      ['failures', 60_000],
      ['rate_limit', 60_000],
      ['credential', 300_000],
    ] as const) {
      let health = judgeAll([failure(cause), failure(cause), failure(cause)]);
      let now = 0;
      for (let n = 0; n < 12; n++) {
        now = health.openUntil ?? 0;
        health = judge(begin(health, attempt(now)), failure(cause), now, attempt(now));
      }
      expect((health.openUntil ?? 0) - now, cause).to.equal(longestMs);
    }
  });

  it('E59: is open no shorter for a later limit with a shorter wait', () => {
    const limited = judgeAll([failure('rate_limit', 30_000), failure('rate_limit', 1_000)]);
    expect(limited.openUntil).to.equal(31_000);
    expect(judgeAll([failure('rate_limit', 1_000), failure('rate_limit', 30_000)]).openUntil).to.equal(31_001);
  });

  it('E59: is opened by the third failure in a row with a rate limit in between', () => {
    const limited = judgeAll([broken, broken, failure('rate_limit', 1_000)]);
    const at = limited.openUntil ?? 0;
    const healthy = judge(begin(limited, attempt(at)), firstToken, at, attempt(at));
    expect(stateOf(healthy, at), 'the limit is over').to.equal('closed');
    expect(stateOf(judge(healthy, failure(), at, attempt(at)), at)).to.equal('open');
    const counted = judgeAll([broken, failure('rate_limit', 1_000)]);
    const next = judge(begin(counted, attempt(2001)), firstToken, 2001, attempt(2001));
    expect(stateOf(judge(next, failure(), 2001, attempt(2001)), 2001), 'a limit is no failure').to.equal('closed');
  });

  it('gets a growing share of its calls for as long as it was open, for at most ten seconds', () => {
    const returned = (openMs: number): Health => {
      const open = judge(UNKNOWN, failure('rate_limit', openMs), 1_000);
      return judge(open, { ...success, durationMs: 1 }, 1_000 + openMs, attempt(1_000 + openMs));
    };
    const shares = (health: Health, backAt: number, ms: readonly number[]): readonly number[] =>
      ms.map((each) => shareOf(health, backAt + each, false));
    expect(shares(returned(2_000), 3_000, [0, 500, 1_000, 2_000])).to.deep.equal([0.05, 0.25, 0.5, 1]);
    expect(shares(returned(60_000), 61_000, [0, 5_000, 10_000])).to.deep.equal([0.05, 0.5, 1]);
    expect(shareOf(UNKNOWN, 5_000, false)).to.equal(1);
    expect(shareOf(judgeAll([failure('rate_limit', 2_000)]), 3_000, false), 'half open').to.equal(1);
  });

  it('gets a twentieth of its calls while it is eight times slower than usual, separately for streams and other responses', () => {
    const taking = (durationMs: number, stream = false): Verdict => ({ kind: 'success', stream, durationMs });
    const many = (durationMs: number, count: number) => Array.from({ length: count }, () => taking(durationMs));
    const usual = judgeAll([...many(100, 20), taking(100, true)]);
    expect(shareOf(judgeAll(many(2_000, 2), usual), 2_000, false)).to.equal(1);
    const slow = judgeAll(many(2_000, 6), usual);
    expect(shareOf(slow, 2_000, false)).to.equal(0.05);
    expect(shareOf(slow, 2_000, true)).to.equal(1);
    expect(shareOf(judgeAll(many(100, 8), slow), 2_000, false), 'as before').to.equal(1);
    expect(shareOf(judgeAll(many(2_000, 300), slow), 2_000, false), 'usual by now').to.equal(1);
    const quick = judgeAll([...many(1, 20), ...many(20, 10)]);
    expect(shareOf(quick, 2_000, false), 'slower, and quick enough').to.equal(1);
  });

  it('stays open for a reported wait although one call still succeeds', () => {
    const limited = judge(judgeAll([failure('rate_limit', 2000)]), success, 1500);
    expect(stateOf(limited, 1501)).to.equal('open');
  });

  it('is open when others report it, and probed when they no longer do', () => {
    const open = openByOthers(UNKNOWN, 5000, 1000);
    expect(stateOf(open, 1001)).to.equal('open');
    expect(stateOf(judge(open, success, 1001), 1001), 'a call from before succeeds').to.equal('open');
    expect(stateOf({ ...open, openUntil: 1002 }, 1002)).to.equal('half-open');
  });

  it('always recovers: whatever happened, it may be tried after the longest wait, and a success then closes it', () => {
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
          health = judge(begin(health, attempt(now)), verdict, now);
          expect(health.errorRate).to.be.within(0, 1);
        }
        now += 300_000;
        expect(mayTry(health, now)).to.equal(true);
        expect(stateOf(judge(begin(health, attempt(now)), success, now), now)).to.equal('closed');
      }),
    );
  });
});
