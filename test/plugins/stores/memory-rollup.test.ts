import { expect } from 'chai';
import { Rollup } from '../../../plugins/stores/memory/records.ts';

const DAY = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

describe('the rollup of the memory store', () => {
  /** Adds one call per hour for each of these users. */
  const fill = (rollup: Rollup, hours: number, users: number): void => {
    for (let hour = 0; hour < hours; hour++)
      for (let user = 0; user < users; user++) rollup.add(DAY + hour * HOUR_MS + 1, [`user-${user}`], [1, 10]);
  };
  const sums = (rollup: Rollup): readonly number[] =>
    [...rollup].reduce(
      ([calls = 0, cost = 0], [, group]) => [calls + (group.sums[0] ?? 0), cost + (group.sums[1] ?? 0)],
      [0, 0],
    );

  it('joins the hours of its oldest days when there are too many groups, and loses nothing', () => {
    const rollup = new Rollup(100);
    fill(rollup, 24 * 60, 3);
    expect(sums(rollup)).to.deep.equal([24 * 60 * 3, 24 * 60 * 30]);
    // The size is checked every thousand groups.
    expect(rollup.size).to.be.below(100 + 1000 + 3 * 24);
    expect(rollup.daysBefore).to.be.above(DAY + 30 * 24 * HOUR_MS);
    const hours = new Set([...rollup].map(([hour]) => hour));
    expect(hours.has(DAY)).to.equal(true);
    expect(hours.has(DAY + 5 * HOUR_MS)).to.equal(false);
  });

  it('corrects a call of a day whose hours are joined in that day', () => {
    const rollup = new Rollup(10);
    fill(rollup, 24 * 20, 3);
    rollup.add(DAY + 5 * HOUR_MS, ['user-0'], [-1, -10]);
    rollup.add(DAY + 5 * HOUR_MS, ['user-0'], [1, 7]);
    const first = [...rollup]
      .filter(([hour]) => hour === DAY)
      .map(
        ([
          ,
          {
            sums: [calls, cost],
          },
        ]) => [calls, cost],
      );
    expect(first).to.deep.equal([
      [24, 237],
      [24, 240],
      [24, 240],
    ]);
  });

  it('keeps the hours of today apart, however many groups they have', () => {
    const rollup = new Rollup(10);
    fill(rollup, 20, 100);
    expect(new Set([...rollup].map(([hour]) => hour)).size).to.equal(20);
  });
});
