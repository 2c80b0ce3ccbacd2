import { expect } from 'chai';
import type { Store } from '../../../contract/index.ts';
import { settlement } from '../../conformance/store.ts';

/** Time of the rows in `test/fixtures/stores/*-schema-6.*`, which a gateway of that schema wrote. */
const THEN = Date.UTC(2026, 10, 1, 12);

/**
 * Asserts that a store has all rows of the fixture, and that they can be changed: a reservation is settled, a swept call
 * is corrected.
 */
export async function expectEarlierRows(store: Store): Promise<void> {
  const { ledger } = store;
  const settle = (account: string, requestId: string, amount: number) =>
    ledger.settle(settlement({ account, requestId, amount, now: THEN }));
  const sumsOf = async () => {
    const [row] = await ledger.report({ edges: [THEN - 1, THEN + 3_600_000], by: [] });
    return [row?.requests, row?.cost];
  };
  expect(await ledger.balance('ada')).to.include({ balance: 480, held: 30, spent: 20, credited: 500 });
  expect(await ledger.balance('bob')).to.include({ balance: -40, held: 0, spent: 40 });
  expect(await ledger.budgets(['month'])).to.deep.equal([{ spent: 60, held: 30 }]);
  expect((await ledger.accounts({ limit: 10 })).map(({ account }) => account)).to.deep.equal(['ada', 'bob']);
  expect((await ledger.entries('ada', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([-10, -10, 500]);
  const { calls } = await ledger.calls({ limit: 10 });
  expect(calls.map(({ id, cost, outcome }) => [id, cost, outcome])).to.deep.equal([
    ['swept', 40, 'expired'],
    ['r2', 10, 'ok'],
    ['r1', 10, 'ok'],
  ]);
  expect((await ledger.calls({ session: 's1', limit: 10 })).calls.map(({ id }) => id)).to.deep.equal(['r1']);
  expect(await sumsOf()).to.deep.equal([3, 60n]);
  expect(await store.keyv('documents').get('a')).to.deep.equal({ value: 1 });
  expect(await store.sets.list('people', { limit: 10 })).to.deep.equal(['ada']);
  expect(await store.counters.next('starters', 0)).to.equal(7);

  expect(await settle('ada', 'r1', 10)).to.equal(false);
  expect(await settle('ada', 'held', 25)).to.equal(true);
  expect(await settle('bob', 'swept', 5)).to.equal(true);
  expect(await ledger.budgets(['month'])).to.deep.equal([{ spent: 50, held: 0 }]);
  expect((await ledger.entries('ada', { limit: 10 })).map(({ amount }) => amount)).to.deep.equal([-25, -10, -10, 500]);
  expect(await sumsOf()).to.deep.equal([4, 50n]);
}
