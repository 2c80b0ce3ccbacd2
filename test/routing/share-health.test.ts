import { expect } from 'chai';
import type { Counters } from '../../contract/index.ts';
import { createLocalCounters } from '../../plugins/policies/kit/index.ts';
import { HealthBook, shareHealth } from '../../routing/health-book.ts';
import { eventually } from '../support/wait.ts';

const TARGET = { provider: 'a', model: 'm' };

/** Two nodes on one store, with a clock that a test sets. */
function createNodes(counters: Counters = createLocalCounters()) {
  const clock = { now: 1_000_000 };
  const now = () => clock.now;
  const nodes = [0, 1].map(() => {
    const health = new HealthBook(now);
    return { health, shared: shareHealth(counters, health, now) };
  });
  const [one, two] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  // A node looks up only targets that it used.
  two.health.report(TARGET, { kind: 'success', durationMs: 1, stream: false });
  return { clock, one, two };
}

const limited = {
  kind: 'failure',
  cause: 'rate_limit',
  error: { message: 'slow down' },
  retryAfterMs: 10_000,
} as const;

describe('shared health of nodes', () => {
  it('keeps the calls of one node away from a target that another one opened, until its time is over', async () => {
    const { clock, one, two } = createNodes();
    one.health.report(TARGET, limited);
    await eventually(async () => {
      clock.now += 2_000;
      two.shared.refresh();
      expect(two.health.mayTry(TARGET)).to.equal(false);
      expect(two.health.causeOf(TARGET)).to.equal('shared');
    });
    clock.now += 10_000;
    two.shared.refresh();
    await eventually(async () => expect(two.health.mayTry(TARGET)).to.equal(true));
  });

  it('tries a provider immediately after its key was replaced, on the other node too, and only in that case', async () => {
    const { clock, one, two } = createNodes();
    one.health.useKeys(new Map([['a', 'old']]));
    const refused = { kind: 'failure', cause: 'credential', error: { message: 'no such key' } } as const;
    one.health.report(TARGET, refused, 'provider');
    await eventually(async () => {
      clock.now += 2_000;
      two.shared.refresh();
      expect(two.health.mayTry(TARGET)).to.equal(false);
    });
    one.health.useKeys(new Map([['a', 'old']]));
    expect(one.health.mayTry(TARGET), 'the same key').to.equal(false);
    one.health.useKeys(new Map([['a', 'new']]));
    expect(one.health.mayTry(TARGET)).to.equal(true);
    expect(one.health.reportOf(TARGET).lastError?.message, 'what happened stays').to.equal('no such key');
    await eventually(async () => {
      clock.now += 2_000;
      two.shared.refresh();
      expect(two.health.mayTry(TARGET)).to.equal(true);
    });
    one.health.report(TARGET, { ...limited, retryAfterMs: 100_000 });
    one.health.useKeys(new Map([['a', 'newer']]));
    expect(one.health.mayTry(TARGET), 'the retry-after of the vendor').to.equal(false);
  });

  it('lets the other node probe a target that one found healthy again', async () => {
    const { clock, one, two } = createNodes();
    one.health.report(TARGET, { ...limited, retryAfterMs: 100_000 });
    await eventually(async () => {
      clock.now += 2_000;
      two.shared.refresh();
      expect(two.health.mayTry(TARGET)).to.equal(false);
    });
    // Past the expiry on the first node, where a success closes the circuit.
    clock.now += 100_001;
    one.health.begin(TARGET);
    one.health.report(TARGET, { kind: 'success', durationMs: 1, stream: false });
    two.shared.refresh();
    await eventually(async () => expect(two.health.mayTry(TARGET)).to.equal(true));
  });

  it('applies to a target that this node had opened and closed itself', async () => {
    const { clock, one, two } = createNodes();
    two.health.report(TARGET, { ...limited, retryAfterMs: 100 });
    clock.now += 101;
    two.health.report(TARGET, { kind: 'success', durationMs: 1, stream: false }, 'model', two.health.begin(TARGET));
    expect(two.health.mayTry(TARGET)).to.equal(true);
    one.health.report(TARGET, { ...limited, retryAfterMs: 100_000 });
    await eventually(async () => {
      clock.now += 2_000;
      two.shared.refresh();
      expect(two.health.causeOf(TARGET)).to.equal('shared');
    });
  });

  it('is not awaited and not required when the store is unavailable', async () => {
    const broken = new Proxy(createLocalCounters(), { get: () => () => Promise.reject(new Error('away')) });
    const { clock, one } = createNodes(broken);
    one.health.report(TARGET, limited);
    for (let n = 0; n < 5; n++) {
      clock.now += 1_000;
      one.shared.refresh();
      await Promise.resolve();
    }
    expect(one.health.mayTry(TARGET)).to.equal(false);
    clock.now += 10_000;
    expect(one.health.mayTry(TARGET)).to.equal(true);
  });

  it('reads one number from the store while nothing changes', async () => {
    let requestCount = 0;
    const counters = createLocalCounters();
    const counted: Counters = {
      ...counters,
      next: (key, by) => {
        requestCount += 1;
        return counters.next(key, by);
      },
      lease: () => Promise.reject(new Error('not called')),
    };
    const { clock, two } = createNodes(counted);
    for (let n = 0; n < 100; n++) {
      clock.now += 100;
      two.shared.refresh();
      await Promise.resolve();
      await Promise.resolve();
    }
    expect(requestCount).to.be.within(1, 6);
  });
});
