import { createPlanFinder, type PluginApi } from '../../../../core/index.ts';
import { accountRaiseRoutes } from './account-raise-routes.ts';
import { createAccountRaises } from './account-raises.ts';
import { createReadBudgets, type ReadBudgets } from './balance.ts';
import { createBudgetBook, createKeyOrigins, keepCurrent } from './book.ts';
import { type CallBudgets, createCallBudgets } from './call-budgets.ts';
import { budgetCommand } from './commands.ts';
import type { BudgetClock } from './counted.ts';
import { createBudgetManager } from './manage.ts';
import { createNotices } from './notices.ts';
import { createBudgetRecords } from './records.ts';
import { createViewer, registerBudgetRoutes } from './routes.ts';
import { createDeliveries, createWebhook, type WebhookOptions } from './webhook.ts';

export interface BudgetParts {
  /** For the books. */
  readonly calls: CallBudgets;
  /** For callers. */
  readonly read: ReadBudgets;
}

/**
 * Makes what counts calls in budgets and tells operators what happens, reads the store's budgets while the gateway runs, and registers
 * the routes and the command of operators.
 */
export function setUpBudgets(api: PluginApi, now: BudgetClock, webhook: WebhookOptions | undefined): BudgetParts {
  const { ledger, log, stores } = api;
  const records = createBudgetRecords(api);
  const manager = createBudgetManager(api, records);
  const show = createViewer(api, now);
  registerBudgetRoutes(api, manager, show);
  const raises = createAccountRaises(api);
  for (const route of accountRaiseRoutes(raises)) api.route(route);
  api.command(budgetCommand(manager, raises, show));

  const book = createBudgetBook({
    records,
    raises,
    findPlan: createPlanFinder(api),
    firstKeyOf: createKeyOrigins(api),
  });
  if (api.settings.billing !== 'off') keepCurrent(api, book);
  // What waits for the webhook outlives a reload.
  const deliveries =
    webhook &&
    api.keep(
      'budget-webhook',
      () => createDeliveries(log),
      (kept) => kept.close(),
    );
  const send = webhook && deliveries && createWebhook(api, webhook, deliveries);
  const notices = createNotices({ sets: stores.sets, log, send });
  return {
    calls: createCallBudgets({ book, notices, ledger, now }),
    read: createReadBudgets(ledger, book, now),
  };
}
