import { expect } from 'chai';
import { type Linked, LinkedList } from '../../contract/linked-list.ts';

interface Item extends Linked<Item> {
  readonly name: string;
}

const item = (name: string): Item => ({ name, previous: undefined, next: undefined, isLinked: false });

const namesOf = (list: LinkedList<Item>): string => list.toArray().reduce((all, { name }) => all + name, '');

describe('a list of work in flight', () => {
  it('keeps the order of arrival, whatever is removed', () => {
    const list = new LinkedList<Item>();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(item) as [Item, Item, Item, Item];
    for (const each of [a, b, c, d]) list.add(each);
    expect(list.remove(b)).to.equal(true);
    expect(namesOf(list)).to.equal('acd');
    expect(list.remove(a)).to.equal(true);
    expect(list.remove(d)).to.equal(true);
    expect([namesOf(list), list.first, list.size]).to.deep.equal(['c', c, 1]);
    list.add(a);
    expect(namesOf(list)).to.equal('ca');
  });

  it('removes an item once, and accepts it again', () => {
    const list = new LinkedList<Item>();
    const only = item('a');
    list.add(only);
    expect(() => list.add(only)).to.throw('in a list already');
    expect([list.remove(only), list.remove(only), list.size]).to.deep.equal([true, false, 0]);
    list.add(only);
    expect(namesOf(list)).to.equal('a');
  });

  it('holds no removed item, nor does a removed item hold the list', () => {
    const list = new LinkedList<Item>();
    const [a, b] = [item('a'), item('b')];
    list.add(a);
    list.add(b);
    list.remove(a);
    list.remove(b);
    expect([a.next, a.previous, b.next, b.previous, list.first]).to.deep.equal(Array(5).fill(undefined));
  });
});
