import type { AccountRecord, PluginApi } from '../../../core/index.ts';
import { ACCOUNTS } from '../../../core/operators.ts';
import { createAccountOperations } from './account-operations.ts';
import { adminAccountRoutes } from './account-routes.ts';
import { accountCommand } from './commands.ts';
import { planCommand } from './plan-command.ts';
import { createPlanOperations } from './plan-operations.ts';
import { planRoutes } from './plan-routes.ts';

/** What operators do with accounts and plans: the admin API and the commands. */
export function setUpOperators(api: PluginApi): void {
  // Where plans of accounts were before they had records; read until an account's plan is changed.
  api.share<AccountRecord>(ACCOUNTS);
  const accounts = createAccountOperations(api);
  const plans = createPlanOperations(api);
  for (const route of [...adminAccountRoutes(accounts), ...planRoutes(plans)]) api.route(route);
  api.command(accountCommand(accounts));
  api.command(planCommand(plans));
}
