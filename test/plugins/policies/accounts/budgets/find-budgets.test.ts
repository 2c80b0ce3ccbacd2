import { expect } from 'chai';
import type { BudgetRule, Principal } from '../../../../../contract/index.ts';
import { createBudgetTable } from '../../../../../plugins/policies/accounts/budgets/budget-table.ts';

const principal: Principal = { credential: 'key', userId: 'ann', account: 'ann' };
const plan = { name: 'pro', plan: {} };

/** Returns true if a budget with these conditions counts a call of ann. */
function counts(of: Partial<BudgetRule>, tags: readonly string[], isPro: boolean): boolean {
  const rule: BudgetRule = { name: 'b', amount: 1, every: 'day', timezone: 'UTC', ...of };
  const table = createBudgetTable({ shared: [{ rule, raises: [] }] });
  const rules = table.of(principal, isPro ? plan : undefined);
  return rules.find(Date.now(), { tags }).windows.length === 1;
}

describe('the raise of a budget', () => {
  it('adds to it until its end', () => {
    const rule: BudgetRule = { name: 'b', amount: 1, every: 'day', timezone: 'UTC' };
    const now = Date.now();
    const limitAt = (until: number) =>
      createBudgetTable({ shared: [{ rule, raises: [{ amount: 5, until }] }] })
        .of(principal, undefined)
        .find(now, { tags: [] })
        .windows.map(({ limit }) => limit);
    expect([limitAt(now + 1), limitAt(now)]).to.deep.equal([[6], [1]]);
  });
});

describe('a budget that names several things', () => {
  it('counts calls that match all of them', () => {
    expect(counts({ user: 'ann', tag: 'team=a', plan: 'pro' }, ['team=a'], true)).to.equal(true);
  });

  it('counts no call of the user without the tag, nor on another plan, nor of another user with both', () => {
    expect(counts({ user: 'ann', tag: 'team=a' }, ['team=b'], true), 'the tag').to.equal(false);
    expect(counts({ user: 'ann', plan: 'pro' }, [], false), 'the plan').to.equal(false);
    expect(counts({ user: 'bob', tag: 'team=a', plan: 'pro' }, ['team=a'], true), 'the user').to.equal(false);
  });
});
