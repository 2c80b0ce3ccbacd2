import { expect } from 'chai';
import { Hedges } from '../../routing/retries.ts';

const A = { provider: 'a', model: 'm' };
const P95 = { after: 'p95', maxExtra: 0.05 } as const;

/** Number of hedged calls out of `calls`, if all are slow. */
function countOf(hedges: Hedges, calls: number, maxExtra: number): number {
  let count = 0;
  for (let n = 0; n < calls; n++) {
    hedges.deposit('alias', { after: 1, maxExtra });
    if (hedges.withdraw('alias')) count += 1;
  }
  return count;
}

describe('hedged calls', () => {
  for (const [share, expected] of [
    [0, 0],
    [0.05, 51],
    [0.5, 501],
    [1, 1000],
  ] as const)
    it(`are ${expected} of 1,000 for a share of ${share}`, () => {
      expect(countOf(new Hedges(), 1000, share)).to.be.within(expected - 1, expected);
    });

  it('are at most ten in a row, however many calls were not hedged', () => {
    const hedges = new Hedges();
    for (let n = 0; n < 10_000; n++) hedges.deposit('alias', P95);
    let count = 0;
    while (hedges.withdraw('alias')) count += 1;
    expect(count).to.equal(10);
  });

  it('are counted for each alias, and none for an alias without calls', () => {
    const hedges = new Hedges();
    hedges.deposit('one', P95);
    expect([hedges.withdraw('one'), hedges.withdraw('other')]).to.deep.equal([true, false]);
  });
});

describe('the delay before a second target is called', () => {
  it('is unknown before twenty attempts, then the 95th percentile', () => {
    const hedges = new Hedges();
    for (let n = 1; n < 20; n++) hedges.note(A, true, n);
    expect(hedges.afterMs(P95, A, true)).to.equal(undefined);
    hedges.note(A, true, 20);
    expect(hedges.afterMs(P95, A, true)).to.equal(20);
    for (let n = 21; n <= 100; n++) hedges.note(A, true, n);
    expect(hedges.afterMs(P95, A, true)).to.equal(96);
  });

  it('follows the latest hundred, separately for streams and other responses', () => {
    const hedges = new Hedges();
    for (let n = 0; n < 100; n++) hedges.note(A, true, 5000);
    for (let n = 0; n < 100; n++) hedges.note(A, true, 10);
    expect(hedges.afterMs(P95, A, true)).to.equal(10);
    expect(hedges.afterMs(P95, A, false)).to.equal(undefined);
  });

  it('is the alias’s value if that is a time', () => {
    expect(new Hedges().afterMs({ after: 800, maxExtra: 0.05 }, A, false)).to.equal(800);
  });
});
