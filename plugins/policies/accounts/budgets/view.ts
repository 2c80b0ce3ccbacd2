import { type BudgetRule, type BudgetState, formatUsd, type Ledger } from '../../../../contract/index.ts';
import { type CountedBudget, EACH, isoSeconds, resetsAt, startsAt } from './budget-window.ts';
import type { NamedBudget } from './records.ts';

/** Number of budgets per ledger request. */
const AT_ONCE = 100;

const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const MONEY = { type: 'string', description: 'US dollars as a decimal string.' } as const;

const MONEY_OR_NULL = {
  ...MONEY,
  type: ['string', 'null'],
  description: 'Null if each end user has the amount.',
} as const;

/** Current amounts of a budget. */
const NUMBERS = {
  amount_usd: { ...MONEY, description: 'US dollars per period, without raises.' },
  raised_usd: { ...MONEY, description: 'Sum of the active raises; absent without raises.' },
  soft_usd: { ...MONEY, description: 'Amount that triggers a warning.' },
  spent_usd: MONEY,
  held_usd: { ...MONEY, description: 'Reserved for running calls, and for shares that gateways have leased.' },
  left_usd: MONEY,
  starts_at: TEXT_OR_NULL,
  resets_at: { ...TEXT_OR_NULL, description: 'Time of the next reset, ISO 8601; null if it never resets.' },
} as const;

/** Raise in a request. */
export const RAISE_FIELDS = {
  amount_usd: {
    anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }],
    description: 'US dollars in addition to the budget’s amount.',
  },
  until: { type: 'string', maxLength: 40, description: 'End, ISO 8601 with a time zone.' },
} as const;

/** Raises of a budget for operators. */
export const RAISES_SHOWN = {
  type: 'array',
  items: { type: 'object', properties: { amount_usd: MONEY, until: TEXT }, required: ['amount_usd', 'until'] },
} as const;

/** Budget for callers. */
export const CALLER_BUDGET = {
  type: 'object',
  required: [
    ...['name', 'of', 'every', 'timezone', 'amount_usd', 'spent_usd', 'held_usd', 'left_usd'],
    ...['starts_at', 'resets_at'],
  ],
  properties: {
    name: TEXT,
    of: { enum: ['all', 'user', 'key', 'tag', 'plan'], description: 'Scope of the budget.' },
    every: TEXT,
    timezone: TEXT,
    provider: TEXT,
    model: TEXT,
    ...NUMBERS,
  },
} as const;

/** Budget for operators. */
export const OPERATOR_BUDGET = {
  type: 'object',
  required: [...CALLER_BUDGET.required, 'owner', 'raises'],
  properties: {
    ...CALLER_BUDGET.properties,
    owner: { enum: ['file', 'store'], description: '`file`: the configuration; change the budget there.' },
    starts_on: { anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 20 }] },
    spent_usd: MONEY_OR_NULL,
    held_usd: MONEY_OR_NULL,
    left_usd: MONEY_OR_NULL,
    user: TEXT,
    key: TEXT,
    tag: TEXT,
    plan: TEXT,
    end_user: { ...TEXT, description: '`*`: each end user has the amount.' },
    raises: RAISES_SHOWN,
  },
} as const;

/** Returns the spent and held amounts of budgets, in their order. */
export async function readStates(
  ledger: Pick<Ledger, 'budgets'>,
  budgets: readonly CountedBudget[],
): Promise<readonly BudgetState[]> {
  const states: BudgetState[] = [];
  for (let at = 0; at < budgets.length; at += AT_ONCE)
    states.push(...(await ledger.budgets(budgets.slice(at, at + AT_ONCE).map(({ id }) => id))));
  return states;
}

/** Formats a budget for its callers. */
export function showToCaller(budget: CountedBudget, state: BudgetState | undefined): Record<string, unknown> {
  const { rule, scope } = budget;
  const { name, every, timezone, provider, model } = rule;
  return {
    ...{ name, of: scope, every, timezone },
    ...(provider !== undefined && { provider }),
    ...(model !== undefined && { model }),
    ...numbersOf(budget, state),
  };
}

/** Formats a budget for operators, with its filters and raises. */
export function showToOperator(
  { owner, rule, raises }: NamedBudget,
  budget: CountedBudget,
  state: BudgetState | undefined,
): Record<string, unknown> {
  const { startsOn, user, key, tag, plan, endUser }: BudgetRule = rule;
  const named = Object.entries({ starts_on: startsOn, user, key, tag, plan, end_user: endUser });
  return {
    ...showToCaller(budget, state),
    // Each end user has an amount of its own.
    ...(endUser === EACH && { spent_usd: null, held_usd: null, left_usd: null }),
    owner,
    ...Object.fromEntries(named.filter(([, value]) => value !== undefined)),
    raises: raises.map(({ amount, until }) => ({ amount_usd: formatUsd(amount), until: isoSeconds(until) })),
  };
}

function numbersOf(
  budget: CountedBudget,
  { spent, held }: BudgetState = { spent: 0, held: 0 },
): Record<string, unknown> {
  const { rule, limit, raised } = budget;
  return {
    amount_usd: formatUsd(rule.amount),
    ...(raised > 0 && { raised_usd: formatUsd(raised) }),
    ...(rule.soft !== undefined && { soft_usd: formatUsd(rule.soft) }),
    spent_usd: formatUsd(spent),
    held_usd: formatUsd(held),
    left_usd: formatUsd(Math.max(limit - spent - held, 0)),
    starts_at: startsAt(budget),
    resets_at: resetsAt(budget),
  };
}
