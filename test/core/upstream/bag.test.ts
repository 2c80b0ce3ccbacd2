import { expect } from 'chai';
import fc from 'fast-check';
import { Bag, type BagItem } from '../../../core/upstream/bag.ts';

describe('a bag', () => {
  it('holds what a set would, whatever comes and goes', () => {
    const moves = fc.array(fc.record({ at: fc.nat(9), isIn: fc.boolean() }), { maxLength: 60 });
    fc.assert(
      fc.property(moves, (all) => {
        const items = Array.from({ length: 10 }, (): BagItem => ({ slot: -1 }));
        const bag = new Bag<BagItem>();
        const set = new Set<BagItem>();
        for (const { at, isIn } of all) {
          const item = items[at] as BagItem;
          if (isIn) bag.add(item);
          else bag.delete(item);
          if (isIn) set.add(item);
          else set.delete(item);
        }
        expect(bag.size).to.equal(set.size);
        expect(bag.all()).to.have.members([...set]);
      }),
    );
  });
});
