import type { BudgetPeriod, BudgetRule, Weekday } from './budgets.ts';
import type { FromSchema, Schema } from './json.ts';
import { parseUsd } from './units.ts';

const BUDGET_PERIODS = Object.freeze([
  'total',
  'hour',
  'day',
  'week',
  'month',
] as const satisfies readonly BudgetPeriod[]);

export const WEEKDAYS = Object.freeze([
  'sunday',
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
] as const satisfies readonly Weekday[]);

const NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$';
const word = (description: string) => ({ type: 'string', minLength: 1, maxLength: 200, description }) as const;

const AMOUNT = {
  name: {
    type: 'string',
    pattern: NAME,
    description:
      'Name of the budget: at most 63 letters, digits, dots, dashes and underscores. Spend is counted by name.',
  },
  amount_usd: {
    anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }],
    description: 'Limit in US dollars for each period.',
  },
  every: {
    type: 'string',
    enum: BUDGET_PERIODS,
    description: 'Period after which the budget resets; `total` never resets.',
  },
  timezone: {
    ...word('Time zone of the periods, such as `Europe/Berlin`.'),
    default: 'UTC',
  },
  starts_on: {
    anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 20 }],
    description: 'First day of a week (default: `monday`) or of a month, 1 to 28 (default: 1).',
  },
  soft_usd: {
    anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }],
    description: 'Soft limit in US dollars, at which the log, a header and the webhook warn.',
  },
} as const;

const TARGET = {
  provider: word('Counts only calls to this provider.'),
  model: word(
    'Counts only this model: a provider’s model, `provider/model`, or an alias for its targets. `gpt-5*` matches all names with that prefix.',
  ),
} as const;

/** Budget of a key or of a plan. It counts the calls of the key, or of each account of the plan. */
export const OWN_BUDGET = {
  type: 'object',
  additionalProperties: false,
  required: ['amount_usd', 'every'],
  properties: { ...AMOUNT, ...TARGET },
} as const satisfies Schema;

/** Budget shared by all calls that match its filters. */
export const BUDGET = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'amount_usd', 'every'],
  properties: {
    ...AMOUNT,
    user: word('Counts only calls of this user.'),
    key: word('Counts only calls of this API key (id or `tg_` prefix) and of its rotated successors.'),
    tag: word('Counts only calls with this tag, such as `team=search`.'),
    plan: word('Counts only calls of users with this plan, all together.'),
    end_user: word(
      'Counts only calls for this end user of an application; `*` gives each end user the amount. Needs the `key`, `user` or `tag` of the application.',
    ),
    ...TARGET,
  },
} as const satisfies Schema;

/** Maximum number of budgets per key or plan. */
export const MAX_OWN_BUDGETS = 8;

/** Budget as written in files and requests. */
export type BudgetValues = FromSchema<typeof OWN_BUDGET> & Partial<FromSchema<typeof BUDGET>>;

/** Converts a validated budget to the gateway's form. A budget without a name gets a default name. */
export function readBudget(budget: BudgetValues): BudgetRule {
  const { amount_usd, soft_usd, starts_on, every, timezone, name = defaultName(budget), end_user, ...filter } = budget;
  return {
    ...filter,
    ...(end_user !== undefined && { endUser: end_user }),
    name,
    amount: parseUsd(amount_usd),
    every,
    timezone,
    ...(starts_on !== undefined && { startsOn: starts_on as Weekday | number }),
    ...(soft_usd !== undefined && { soft: parseUsd(soft_usd) }),
  };
}

/**
 * Returns whether a text is a time zone such as `Europe/Berlin` or `UTC`. Rejects offsets such as `+02:00`: they have no summer
 * time.
 */
export function isTimeZone(name: string): boolean {
  // A formatter takes a millisecond, and most configurations and reports use this zone.
  if (name === 'UTC') return true;
  if (!/^[A-Za-z][\w+/-]{1,63}$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** `day`, `month-openai`. */
function defaultName({ every, provider, model }: BudgetValues): string {
  const parts = [every, provider, model].filter((part) => part !== undefined);
  return parts
    .join('-')
    .replaceAll(/[^\w.-]/g, '_')
    .slice(0, 63);
}
