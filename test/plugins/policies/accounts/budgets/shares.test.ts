import { expect } from 'chai';
import type { BudgetRule, Ledger } from '../../../../../contract/index.ts';
import { openMemory } from '../../../../../plugins/stores/memory/index.ts';
import { createBudgetNode } from './budget-node.ts';

const LIMIT = 1000;
const RULE: BudgetRule = { name: 'company', amount: LIMIT, every: 'total', timezone: 'UTC' };

describe('a budget of which a process has a share', () => {
  it('serves a call whose share another call returned meanwhile: the budget has room', async () => {
    const store = await openMemory();
    let sharedCalls = 0;
    const ledger: Ledger = {
      ...store.ledger,
      shareBudget: async ({ amount }) => ({
        budget: { spent: 0, held: amount },
        free: amount,
        held: 0,
        expired: [],
      }),
      reserve: async (reservation) => {
        const at = reservation.budgets?.findIndex(({ isShare }) => isShare === true) ?? -1;
        if (at < 0) return store.ledger.reserve(reservation);
        sharedCalls += 1;
        // A call that needs more than the budget has returns the share first, so the store finds no share.
        const refused = await node.call(`big-${sharedCalls}`, LIMIT * 2).catch((error: unknown) => error);
        expect(refused).to.have.property('code', 'insufficient_balance');
        return { outcome: 'over_budget', budget: at, used: 0 };
      },
    };
    const node = createBudgetNode({ ...store, ledger }, [RULE], () => Date.now());
    for (let at = 0; at < 10; at += 1) await (await node.call(`call-${at}`, 1))(1);
    expect(sharedCalls).to.be.greaterThan(0);
    expect(await node.spent(RULE)).to.deep.equal({ spent: 10, held: 0 });
    await node.close();
    await store.close();
  });
});
