import type { Ledger, Principal } from '../../../../contract/index.ts';
import type { TotalBudget } from './budget-table.ts';
import type { BudgetClock, CountedBudget } from './budget-window.ts';
import type { BudgetBook } from './find-budgets.ts';
import { isOfAccount, type ListPlanBudgets } from './plan-budgets.ts';
import { readStates, showToCaller } from './view.ts';

/** Returns all budgets that limit a caller, each with its spent, held and remaining amounts. */
export type ReadBudgets = (principal: Principal) => Promise<readonly Record<string, unknown>[]>;

export function createReadBudgets(ledger: Pick<Ledger, 'budgets'>, book: BudgetBook, now: BudgetClock): ReadBudgets {
  return async (principal) => {
    const { totals, windows } = await book.find({ principal, tags: principal.tags ?? [] }, now());
    const limited = totals.filter(({ limit }) => limit !== Number.POSITIVE_INFINITY);
    const counted = [...limited.map(showTotal), ...windows];
    const states = await readStates(ledger, counted);
    return counted.map((budget, at) => showToCaller(budget, states[at]));
  };
}

/**
 * Returns the budgets of an account for operators. Includes budgets of its plan, of plans of its keys and tokens with
 * usage, and of the user with the same name.
 */
export type ReadAccountBudgets = (account: string) => Promise<readonly Record<string, unknown>[]>;

export function createReadAccountBudgets(
  ledger: Pick<Ledger, 'budgets'>,
  book: BudgetBook,
  listPlanBudgets: ListPlanBudgets,
  now: BudgetClock,
): ReadAccountBudgets {
  return async (account) => {
    const at = now();
    const principal = { credential: 'key', userId: account, account } as const;
    const shared = (await book.find({ principal, tags: [] }, at)).windows.filter(
      (budget) => budget.scope !== 'all' && !isOfAccount(budget),
    );
    const ofPlans = await listPlanBudgets(account, at);
    const states = await readStates(ledger, [...ofPlans.map(({ budget }) => budget), ...shared]);
    const rows: Record<string, unknown>[] = [];
    for (const [index, { budget, plan, isOwn }] of ofPlans.entries()) {
      const { spent, held } = states[index] ?? { spent: 0, held: 0 };
      if (isOwn || spent + held > 0) rows.push({ ...showToCaller(budget, states[index]), plan });
    }
    for (const [index, budget] of shared.entries()) rows.push(showToCaller(budget, states[ofPlans.length + index]));
    return rows;
  };
}

/** Describes a total as a budget without a window. */
function showTotal({ whose, id, limit }: TotalBudget): CountedBudget {
  const rule = { name: 'budget_usd', amount: limit, every: 'total', timezone: 'UTC' } as const;
  const window = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY };
  return { rule, scope: whose, id, window, limit, raised: 0, hold: { id, limit } };
}
