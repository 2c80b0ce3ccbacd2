import { expect } from 'chai';
import { type FailureFacts, RetryBudget, retryDelayMs } from '../../routing/retries.ts';

const facts = (rest: Partial<FailureFacts>): FailureFacts => ({
  ...{ class: 'overloaded', status: 503, isSent: true, durationMs: 50 },
  ...rest,
});

/** Retries on the same target: without an `Idempotency-Key`, and with one if the request may have been processed. */
const CASES: readonly (readonly [title: string, Partial<FailureFacts>, plain: boolean, idempotent: boolean])[] = [
  ['a 503', {}, true, true],
  ['a 529', { status: 529 }, true, true],
  ['a 429', { class: 'rate_limit', status: 429 }, true, true],
  ['a 429 with a wait of 5 s', { class: 'rate_limit', status: 429, retryAfterMs: 5000 }, true, true],
  ['a 429 with a longer wait', { class: 'rate_limit', status: 429, retryAfterMs: 5001 }, false, false],
  ['a used-up quota', { class: 'billing', status: 429 }, false, false],
  ['a refused key', { class: 'authentication', status: 401 }, false, false],
  ['a 500', { class: 'upstream_error', status: 500 }, false, false],
  ['a 502', { class: 'upstream_error', status: 502 }, false, true],
  ['a 504', { class: 'timeout', status: 504 }, false, true],
  ['a 400', { class: 'invalid_request', status: 400 }, false, false],
  ['an error inside a 200 that says overloaded', { status: 200 }, true, true],
  ['a refused connection', { class: 'upstream_error', status: undefined, phase: 'connect', isSent: false }, true, true],
  ['a connection that broke', { class: 'upstream_error', status: undefined, phase: 'firstByte' }, false, true],
  [
    'a handshake that broke when something was sent',
    { class: 'upstream_error', status: undefined, phase: 'connect' },
    false,
    true,
  ],
  ['a clock of ours', { class: 'timeout', status: undefined, phase: 'firstByte' }, false, false],
  ['our own bound on connections', { status: undefined, phase: 'connect', isSent: false }, false, false],
  ['what took over ten seconds', { durationMs: 10_001 }, false, false],
  ['an error of a plugin', { class: undefined }, false, false],
];

describe('the retry of a request', () => {
  for (const [title, rest, plain, idempotent] of CASES)
    it(`is ${plain ? 'made' : 'not made'} after ${title}, ${idempotent ? 'made' : 'not made'} with an idempotency key`, () => {
      expect(retryDelayMs(facts(rest), false, () => 0.5) !== undefined).to.equal(plain);
      expect(retryDelayMs(facts(rest), true, () => 0.5) !== undefined).to.equal(idempotent);
    });

  it('waits at least the reported time, with jitter', () => {
    const reported = { class: 'rate_limit', status: 429, retryAfterMs: 2000 } as const;
    expect(retryDelayMs(facts(reported), false, () => 0)).to.equal(2100);
    expect(retryDelayMs(facts(reported), false, () => 1)).to.equal(2400);
  });

  it('is limited to a fifth of the live calls, or to three if there are few', () => {
    const budget = new RetryBudget();
    budget.live = 10;
    expect([1, 2, 3, 4].map(() => budget.reserve())).to.deep.equal([true, true, true, false]);
    budget.live = 20;
    expect(budget.reserve()).to.equal(true);
    expect(budget.state).to.deep.equal({ live: 20, running: 4, allowed: 4, refused: 1 });
    budget.release();
    expect(budget.reserve()).to.equal(true);
  });
});
