import { mock } from 'node:test';
import { expect } from 'chai';
import { createLocalCounters } from '../../plugins/policies/kit/index.ts';
import { StickyTargets } from '../../routing/choose-targets.ts';
import { HealthBook, shareHealth } from '../../routing/health-book.ts';
import { eventually } from '../support/wait.ts';

const TARGET = { provider: 'a', model: 'm' };
const TEN_MINUTES_MS = 600_000;
const limited = { kind: 'failure', cause: 'rate_limit', error: { message: 'slow down' }, retryAfterMs: 3_000 } as const;

describe('the state of targets after a change of the clock', () => {
  let jumpMs = 0;
  let passedMs = 0;
  let mocks: readonly { mock: { restore(): void } }[] = [];
  beforeEach(() => {
    const [now, steady] = [Date.now.bind(Date), performance.now.bind(performance)];
    jumpMs = 0;
    passedMs = 0;
    mocks = [
      mock.method(Date, 'now', () => now() + passedMs + jumpMs),
      mock.method(performance, 'now', () => steady() + passedMs),
    ];
  });
  afterEach(() => {
    for (const each of mocks) each.mock.restore();
  });

  for (const [title, ms] of [
    ['back', -TEN_MINUTES_MS],
    ['forward', TEN_MINUTES_MS],
  ] as const) {
    it(`skips a target for its retry-after, when the clock goes ${title}`, () => {
      const health = new HealthBook();
      health.report(TARGET, limited);
      jumpMs = ms;
      expect(health.mayTry(TARGET), 'at once').to.equal(false);
      passedMs = 4_000;
      expect(health.mayTry(TARGET), 'after its time').to.equal(true);
    });

    it(`keeps another node’s result for the same time, when the clock of this one goes ${title}`, async () => {
      const counters = createLocalCounters();
      const nodes = [0, 1].map(() => {
        const health = new HealthBook();
        return { health, shared: shareHealth(counters, health) };
      });
      const [one, two] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
      two.health.report(TARGET, { kind: 'success', durationMs: 1, stream: false });
      two.shared.refresh();
      one.health.report(TARGET, { ...limited, retryAfterMs: 60_000 });
      jumpMs = ms;
      await eventually(async () => {
        passedMs += 2_000;
        two.shared.refresh();
        expect(two.health.mayTry(TARGET)).to.equal(false);
      }, TEN_MINUTES_MS);
    });

    it(`remembers the target of a conversation for five minutes, when the clock goes ${title}`, () => {
      const sticky = new StickyTargets();
      sticky.set('conversation', 'a/m');
      jumpMs = ms;
      expect(sticky.get('conversation')).to.equal('a/m');
      passedMs = TEN_MINUTES_MS;
      expect(sticky.get('conversation')).to.equal(undefined);
    });
  }
});
