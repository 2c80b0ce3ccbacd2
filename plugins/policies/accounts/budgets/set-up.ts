import { createPlanFinder, type PluginApi } from '../../../../core/index.ts';
import { type BudgetBook, createBudgetBook, createKeyOrigins, keepCurrent } from './book.ts';
import { type CallBudgets, createCallBudgets } from './call-budgets.ts';
import { budgetCommand } from './commands.ts';
import { createBudgetManager } from './manage.ts';
import { createNotices } from './notices.ts';
import { createBudgetRecords } from './records.ts';
import { createViewer, registerBudgetRoutes } from './routes.ts';
import { createDeliveries, createWebhook, type WebhookOptions } from './webhook.ts';

export interface BudgetParts {
  readonly book: BudgetBook;
  readonly calls: CallBudgets;
}

/** Registers what operators do with budgets: routes and a command. */
export function offerBudgets(api: PluginApi, now: BudgetClock): void {
  const manager = createBudgetManager(api, createBudgetRecords(api));
  registerBudgetRoutes(api, manager, now);
  api.command(budgetCommand(manager, createViewer(api, now)));
}

/** The clock that budgets go by, in Unix milliseconds. */
export type BudgetClock = () => number;

/** Makes what counts calls in budgets, reads the store's while the gateway runs, and tells operators what happens. */
export function setUpBudgets(api: PluginApi, now: BudgetClock, webhook: WebhookOptions | undefined): BudgetParts {
  const { ledger, log, stores } = api;
  const book = createBudgetBook({
    records: createBudgetRecords(api),
    findPlan: createPlanFinder(api),
    firstKeyOf: createKeyOrigins(api),
  });
  keepCurrent(api, book);
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
  return { book, calls: createCallBudgets({ book, notices, ledger, now }) };
}
