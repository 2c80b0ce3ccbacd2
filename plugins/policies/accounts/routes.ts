import { createPlanFinder, formatUsd, type PluginApi, type Route } from '../../../core/index.ts';
import type { ReadBudgets } from './budgets/balance.ts';
import { CALLER_BUDGET } from './budgets/view.ts';

const MONEY = { type: 'string', description: 'US dollars as a decimal string.' };

const BALANCE = {
  type: 'object',
  required: ['user_id', 'plan', 'currency', 'balance', 'held', 'spent', 'credited', 'limits', 'budgets', 'updated_at'],
  properties: {
    user_id: { type: 'string' },
    plan: { type: ['string', 'null'] },
    currency: { const: 'USD' },
    balance: MONEY,
    held: MONEY,
    spent: MONEY,
    credited: MONEY,
    limits: { type: 'object' },
    budgets: { type: 'array', items: CALLER_BUDGET, description: 'All budgets that count the caller’s calls.' },
    updated_at: { type: ['string', 'null'] },
  },
} as const;

/** What a caller may read of its own account, and of no other. */
export function accountRoutes(api: PluginApi, permission: string, readBudgets: ReadBudgets): readonly Route[] {
  return [balanceRoute(api, permission, readBudgets)];
}

function balanceRoute(api: PluginApi, permission: string, readBudgets: ReadBudgets): Route {
  const findPlan = createPlanFinder(api);
  return {
    method: 'GET',
    path: '/api/core/balance',
    summary: 'The balance, the plan and its limits',
    auth: ['key', 'token'],
    permission,
    // No account can be named: a caller who tries is refused, instead of getting its own account for the other's.
    query: { type: 'object', additionalProperties: false, properties: {} },
    responses: {
      200: {
        description: 'The account of the caller.',
        schema: BALANCE,
      },
    },
    async handler(ctx) {
      const { principal } = ctx.state;
      const [{ balance, held, spent, credited, updatedAt }, plan, budgets] = await Promise.all([
        api.ledger.balance(principal.account),
        findPlan(principal),
        readBudgets(principal),
      ]);
      const { budgets: _ofPlan, ...limits } = plan?.plan ?? {};
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        user_id: principal.userId,
        plan: plan?.name ?? null,
        currency: 'USD',
        balance: formatUsd(balance),
        held: formatUsd(held),
        spent: formatUsd(spent),
        credited: formatUsd(credited),
        limits: {
          ...limits,
          ...(principal.rpm !== undefined && { key_rpm: principal.rpm }),
          ...(principal.tpm !== undefined && { key_tpm: principal.tpm }),
          ...(principal.budget !== undefined && { key_budget_usd: formatUsd(principal.budget) }),
        },
        budgets,
        updated_at: updatedAt === 0 ? null : new Date(updatedAt).toISOString(),
      };
    },
  };
}
