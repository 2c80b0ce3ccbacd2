import { randomUUID } from 'node:crypto';
import type { PlanFinder, PluginApi } from '../../../../contract/index.ts';
import { createDeliveries, type Deliveries, postJson } from '../../kit/deliveries.ts';
import { createPlanBook, createPlanFinder } from '../../kit/index.ts';
import { tellOperators } from '../../kit/notices.ts';
import { registerTeams } from '../teams/manage.ts';
import { registerTeamBudgets } from '../teams/team-budgets.ts';
import { accountRaiseRoutes, createAccountRaises } from './account-raises.ts';
import { createReadAccountBudgets, createReadBudgets, type ReadAccountBudgets, type ReadBudgets } from './balance.ts';
import type { BudgetClock } from './budget-window.ts';
import {
  type BudgetBook,
  type CallBudgets,
  createBudgetBook,
  createCallBudgets,
  createKeyOrigins,
  keepCurrent,
} from './find-budgets.ts';
import { createReadRule, createViewer, registerBudgets } from './manage.ts';
import { checkConfigured } from './model-check.ts';
import { nearAction } from './near.ts';
import { createNotices, type Notice, noticeForOperators } from './notices.ts';
import { createOpenings } from './openings.ts';
import { createPlanBudgets } from './plan-budgets.ts';
import { type BudgetRecords, createBudgetRecords } from './records.ts';

interface BudgetParts {
  /** For the charges of calls. */
  readonly calls: CallBudgets;
  /** For callers. */
  readonly read: ReadBudgets;
  /** For operators. */
  readonly readOfAccount: ReadAccountBudgets;
  readonly book: BudgetBook;
  readonly findPlan: PlanFinder;
}

/**
 * Sets up budgets: counts calls, notifies operators, refreshes stored budgets while the gateway runs, and registers the
 * routes and the command of operators.
 */
export function setUpBudgets(api: PluginApi, now: BudgetClock, webhook: WebhookOptions | undefined): BudgetParts {
  const {
    books: { ledger },
    log,
    stores,
  } = api;
  const records = createBudgetRecords(api);
  const raises = createAccountRaises(api);
  checkConfigured(api);

  const findPlan = createPlanFinder(api);
  const firstKeyOf = createKeyOrigins(api);
  const book = createBudgetBook({
    records,
    raises,
    findPlan,
    firstKeyOf,
    aliases: () => new Map(api.models.aliases()),
    openings: createOpenings({ ledger, now, findPlan, firstKeyOf, log }),
  });
  const changed = withOpenings(records, book);
  const listPlanBudgets = createPlanBudgets({ book, findPlan, readPlans: createPlanBook(api) });
  const view = createViewer(api, now);
  const readRule = createReadRule(api);
  registerBudgets(api, {
    records: changed,
    raises,
    view,
    readRule,
    near: nearAction({ records, listPlanBudgets, ledger, now }),
  });
  registerTeams(api, { budgets: changed, readRule });
  registerTeamBudgets(api, { records: changed, view, readRule });
  for (const route of accountRaiseRoutes(raises)) api.route(route);
  if (api.settings.billing !== 'off') keepCurrent(api, { book, records, now });
  // Pending webhook deliveries survive a reload.
  const deliveries =
    webhook &&
    api.keep(
      'budget-webhook',
      () => createDeliveries(log, { receiver: 'the webhook of budgets' }),
      (kept) => kept.close(),
    );
  const post = webhook && deliveries && createWebhook(api, webhook, deliveries);
  const send = (notice: Notice, cause: string): void => {
    post?.(notice);
    tellOperators(api, noticeForOperators(notice, cause));
  };
  const notices = createNotices({ sets: stores.sets, log, send });
  return {
    calls: createCallBudgets({ book, notices, ledger, now }),
    read: createReadBudgets(ledger, book, now),
    readOfAccount: createReadAccountBudgets(ledger, book, listPlanBudgets, now),
    book,
    findPlan,
  };
}

/** Budgets whose changes wait for the opening amounts, so that a response shows what a new budget has left. */
function withOpenings(records: BudgetRecords, book: BudgetBook): BudgetRecords {
  return {
    ...records,
    async change(name, make) {
      const changed = await records.change(name, make);
      await book.applied();
      return changed;
    },
  };
}

/** URL and signing secret of the webhook for notices. */
interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
}

/** Creates a function that posts signed notices to the webhook. */
export function createWebhook(
  api: Pick<PluginApi, 'http'>,
  webhook: WebhookOptions,
  deliveries: Deliveries,
): (notice: Notice) => void {
  return (notice) => {
    const createdAt = new Date().toISOString();
    // All attempts send the same id, so that a receiver can detect duplicates.
    const body = JSON.stringify({ id: randomUUID(), created_at: createdAt, ...notice });
    deliveries.add(`${notice.type} ${notice.budget}`, () => postJson(api, webhook, body));
  };
}
