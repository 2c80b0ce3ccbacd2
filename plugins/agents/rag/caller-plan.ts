import type { PluginApi, Principal } from '../../../core/index.ts';
import { createPlanBook, findAccount } from '../../../core/operators.ts';

/**
 * The name of the plan that a caller is on: that of the key or token, else the one an operator gave the account, else the
 * default plan. Names that this gateway does not have count as none.
 */
export function createCallerPlan(
  api: Pick<PluginApi, 'settings' | 'shared' | 'records'>,
): (principal: Principal) => Promise<string | undefined> {
  const readBook = createPlanBook(api);
  return async ({ plan, account }) => {
    const book = await readBook();
    const named = (name: string | undefined) => (name !== undefined && book.has(name) ? name : undefined);
    return named(plan) ?? named((await findAccount(api, account)).plan) ?? named(api.settings.defaultPlan);
  };
}
