import { isGatewayError, type PlanFinder, type Principal } from '../../../../contract/index.ts';
import type { createPlanBook } from '../../kit/index.ts';
import type { CountedBudget } from './budget-window.ts';
import type { BudgetBook } from './find-budgets.ts';

/** A budget that an account has by a plan. */
export interface PlanBudget {
  readonly plan: string;
  /** Whether it is the plan of the account; otherwise its keys and tokens may name the plan. */
  readonly isOwn: boolean;
  readonly budget: CountedBudget;
}

/** Lists the budgets that an account has by plans, its own and all others. */
export type ListPlanBudgets = (account: string, now: number) => Promise<readonly PlanBudget[]>;

interface Parts {
  readonly book: Pick<BudgetBook, 'find'>;
  readonly findPlan: PlanFinder;
  readonly readPlans: ReturnType<typeof createPlanBook>;
}

/** Asks the book of calls for each plan by name, so a report finds the budgets that a call of a key with this plan is counted in. */
export function createPlanBudgets({ book, findPlan, readPlans }: Parts): ListPlanBudgets {
  return async (account, now) => {
    const principal = { credential: 'key', userId: account, account } as const;
    const own = await nameOfPlan(findPlan, principal);
    const plans = [...(await readPlans()).values()].filter(({ plan }) => plan.budgets !== undefined);
    const found = await Promise.all(
      plans.map(async ({ name }) => {
        const budgets = await book.find({ principal: { ...principal, plan: name }, tags: [] }, now);
        return budgets.filter(isOfAccount).map((budget) => ({ plan: name, isOwn: name === own, budget }));
      }),
    );
    return found.flat();
  };
}

/** Whether each account of a plan has this budget for itself. */
export function isOfAccount({ owner }: Pick<CountedBudget, 'owner'>): boolean {
  return owner !== undefined && 'account' in owner;
}

/** The plan of an account; undefined when it has none, or one that was removed. */
async function nameOfPlan(findPlan: PlanFinder, principal: Principal): Promise<string | undefined> {
  try {
    return (await findPlan(principal))?.name;
  } catch (error) {
    if (isGatewayError(error) && error.code === 'permission_denied') return undefined;
    throw error;
  }
}
