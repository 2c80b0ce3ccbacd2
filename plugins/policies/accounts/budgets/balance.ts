import type { Ledger, Principal } from '../../../../contract/index.ts';
import { keyBudgetId, userBudgetId } from '../../kit/index.ts';
import type { BudgetClock, CountedBudget } from './budget-window.ts';
import type { BudgetBook } from './find-budgets.ts';
import { isOfAccount, type ListPlanBudgets } from './plan-budgets.ts';
import { readStates, showToCaller } from './view.ts';

/** Returns all budgets that limit a caller, each with its spent, held and remaining amounts. */
export type ReadBudgets = (principal: Principal) => Promise<readonly Record<string, unknown>[]>;

export function createReadBudgets(ledger: Pick<Ledger, 'budgets'>, book: BudgetBook, now: BudgetClock): ReadBudgets {
  return async (principal) => {
    const windows = await book.find({ principal, tags: principal.tags ?? [] }, now());
    const counted = [...totalsOf(principal), ...windows];
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
    const shared = (await book.find({ principal, tags: [] }, at)).filter(
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

/** Total budgets: `budget_usd` of a key, and that of a token for its user. They have no window. */
function totalsOf({ userId, keyId, limitsId = keyId, budget, userLimits }: Principal): readonly CountedBudget[] {
  const totals: CountedBudget[] = [];
  if (userLimits?.budget !== undefined) totals.push(totalOf('user', userBudgetId(userId), userLimits.budget));
  if (budget !== undefined && limitsId !== undefined) totals.push(totalOf('key', keyBudgetId(limitsId), budget));
  return totals;
}

function totalOf(scope: 'user' | 'key', id: string, limit: number): CountedBudget {
  const rule = { name: 'budget_usd', amount: limit, every: 'total', timezone: 'UTC' } as const;
  const window = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY };
  return { rule, scope, id, window, limit, raised: 0, hold: { id, limit } };
}
