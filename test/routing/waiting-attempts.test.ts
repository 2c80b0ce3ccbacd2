import { expect } from 'chai';
import { WaitingAttempts } from '../../routing/target-health.ts';

const TARGET = { provider: 'a', model: 'm' };

/** Attempts with a clock that a test sets. */
function createWaiting() {
  const clock = { now: 1000 };
  return { clock, waiting: new WaitingAttempts(() => clock.now) };
}

describe('calls that hang at a target', () => {
  it('are three without a token for four times the usual latency', () => {
    const { clock, waiting } = createWaiting();
    for (let n = 0; n < 3; n++) waiting.begin(TARGET, true);
    clock.now += 4000;
    expect(waiting.isStuck(TARGET, true, 1000)).to.equal(false);
    clock.now += 1;
    expect(waiting.isStuck(TARGET, true, 1000)).to.equal(true);
    expect(waiting.isStuck(TARGET, true, 1001)).to.equal(false);
    expect(waiting.isStuck(TARGET, false, 1), 'whole responses').to.equal(false);
  });

  it('are not two, nor three of which one is new', () => {
    const { clock, waiting } = createWaiting();
    for (let n = 0; n < 2; n++) waiting.begin(TARGET, true);
    clock.now += 60_000;
    expect(waiting.isStuck(TARGET, true, 1)).to.equal(false);
    waiting.begin(TARGET, true);
    expect(waiting.isStuck(TARGET, true, 1)).to.equal(false);
  });

  it('are none if the target responds to others', () => {
    const { clock, waiting } = createWaiting();
    for (let n = 0; n < 5; n++) waiting.begin(TARGET, false);
    const attempt = waiting.begin(TARGET, false);
    clock.now += 30_000;
    expect(waiting.isStuck(TARGET, false, undefined)).to.equal(true);
    waiting.end(attempt, true);
    expect(waiting.isStuck(TARGET, false, undefined)).to.equal(false);
  });

  it('stay the same number when one of more ends without a response', () => {
    const { clock, waiting } = createWaiting();
    const [first] = [1, 2, 3, 4].map(() => waiting.begin(TARGET, true));
    clock.now += 60_000;
    if (first) waiting.end(first, false);
    expect(waiting.isStuck(TARGET, true, 1)).to.equal(true);
  });

  it('are forgotten when they end', () => {
    const { clock, waiting } = createWaiting();
    const attempts = [1, 2, 3].map(() => waiting.begin(TARGET, true));
    clock.now += 60_000;
    for (const attempt of attempts.slice(0, 1)) waiting.end(attempt, false);
    expect(waiting.isStuck(TARGET, true, 1)).to.equal(false);
  });
});
