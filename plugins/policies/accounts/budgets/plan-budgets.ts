import { isGatewayError, type PlanFinder, type Principal } from '../../../../contract/index.ts';
import type { createPlanBook } from '../../kit/index.ts';
import type { CountedBudget } from './budget-window.ts';
import type { BudgetBook } from './find-budgets.ts';

/** Budget of an account through a plan. */
export interface PlanBudget {
  readonly plan: string;
  /** True for the plan of the account; its keys and tokens may name other plans. */
  readonly isOwn: boolean;
  readonly budget: CountedBudget;
}

/** Lists the budgets of an account through its own plan and all others. */
export type ListPlanBudgets = (account: string, now: number) => Promise<readonly PlanBudget[]>;

interface Parts {
  readonly book: Pick<BudgetBook, 'find'>;
  readonly findPlan: PlanFinder;
  readonly readPlans: ReturnType<typeof createPlanBook>;
}

/**
 * Uses the book of calls with each plan's name, so a report finds the same budgets as a call of a key with this plan.
 */
export function createPlanBudgets({ book, findPlan, readPlans }: Parts): ListPlanBudgets {
  return async (account, now) => {
    const principal = { credential: 'key', userId: account, account } as const;
    const own = await nameOfPlan(findPlan, principal);
    const plans = [...(await readPlans()).values()].filter(({ plan }) => plan.budgets !== undefined);
    const found = await Promise.all(
      plans.map(async ({ name }) => {
        const { windows } = await book.find({ principal: { ...principal, plan: name }, tags: [] }, now);
        return windows.filter(isOfAccount).map((budget) => ({ plan: name, isOwn: name === own, budget }));
      }),
    );
    return found.flat();
  };
}

/** Checks if each account of a plan has its own budget. */
export function isOfAccount({ owner }: Pick<CountedBudget, 'owner'>): boolean {
  return owner !== undefined && 'account' in owner;
}

/** Returns the plan name of an account; undefined if it has no plan or its plan was deleted. */
async function nameOfPlan(findPlan: PlanFinder, principal: Principal): Promise<string | undefined> {
  try {
    return (await findPlan(principal))?.name;
  } catch (error) {
    if (isGatewayError(error) && error.code === 'permission_denied') return undefined;
    throw error;
  }
}
