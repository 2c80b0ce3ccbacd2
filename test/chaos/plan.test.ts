import { expect } from 'chai';
import { hadLiveTarget, makePlan, spellAt, VENDORS } from './plan.ts';

const MINUTE_MS = 60_000;

describe('the plan of a chaos run', () => {
  it('is the same for the same seed, and different for another', () => {
    expect(makePlan(1, MINUTE_MS)).to.deep.equal(makePlan(1, MINUTE_MS));
    expect(makePlan(1, MINUTE_MS)).not.to.deep.equal(makePlan(2, MINUTE_MS));
  });

  for (const seed of [1, 2, 3, 4, 5])
    it(`has a live vendor at every moment, and for every call of ten seconds, with the seed ${seed}`, () => {
      const plan = makePlan(seed, 10 * MINUTE_MS);
      for (let at = 0; at < 10 * MINUTE_MS; at += 250) {
        expect(plan.spells.some((own) => spellAt(own, at).mood === 'live')).to.equal(true);
        expect(hadLiveTarget(plan, at, at + 10_000), `${at} ms`).to.equal(true);
      }
    });

  it('has exactly one mode for each vendor at every moment', () => {
    const { spells } = makePlan(7, MINUTE_MS);
    expect(spells).to.have.lengthOf(VENDORS);
    for (const own of spells)
      for (const [at, { fromMs, toMs }] of own.entries()) {
        expect(toMs).to.be.greaterThan(fromMs);
        if (at > 0) expect(fromMs).to.equal(own[at - 1]?.toMs);
      }
  });

  it('performs every action on the gateways at least once, however short it is', () => {
    for (const seed of [1, 2, 3]) {
      const done = new Set(makePlan(seed, MINUTE_MS / 2).deeds.map((deed) => deed.do));
      expect([...done].sort()).to.deep.equal(['kill a worker', 'reload', 'set the clock', 'spoil the file']);
    }
  });

  it('counts no vendor as live that failed during a part of the call', () => {
    const bad = { mood: 'hangs', fromMs: 1_000, toMs: 2_000 } as const;
    const live = (fromMs: number, toMs: number) => ({ mood: 'live', fromMs, toMs }) as const;
    const plan = { spells: [[live(0, 1_000), bad, live(2_000, 9_000)]], deeds: [] };
    expect(hadLiveTarget(plan, 500, 900)).to.equal(true);
    expect(hadLiveTarget(plan, 500, 3_500)).to.equal(false);
    // The `retry-after` that it sent ends a second after it is live again.
    expect(hadLiveTarget(plan, 2_500, 3_500)).to.equal(false);
    expect(hadLiveTarget(plan, 3_100, 60_000)).to.equal(true);
  });
});
