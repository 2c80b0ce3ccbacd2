import {
  type BudgetRule,
  type BudgetValues,
  formatUsd,
  GatewayError,
  type Ledger,
  type PluginConfig,
} from '../../../contract/index.ts';
import {
  checkBudget,
  keyWindowPrefix,
  MAX_OWN_BUDGETS,
  OWN_BUDGET,
  readBudget,
  windowAt,
  windowId,
  writeBudget,
} from '../../policies/kit/index.ts';
import { limitsIdOf, type StoredKey, withStore } from './records.ts';

/** Request schema of a key's budgets by calendar period. */
export const KEY_BUDGETS = {
  type: ['array', 'null'],
  maxItems: MAX_OWN_BUDGETS,
  items: OWN_BUDGET,
  description: 'Budgets by calendar period, in addition to `budget_usd`.',
} as const;

/** Budget of a key in the API's form; absent limits are omitted. */
export const KEY_BUDGETS_SHOWN = {
  type: ['array', 'null'],
  items: {
    type: 'object',
    required: ['name', 'amount_usd', 'every', 'timezone'],
    properties: {
      name: { type: 'string' },
      amount_usd: { type: 'string' },
      every: { type: 'string' },
      timezone: { type: 'string' },
      starts_on: { anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 20 }] },
      soft_usd: { type: 'string' },
      provider: { type: 'string' },
      model: { type: 'string' },
      spent_usd: {
        type: 'string',
        description: 'This and the following fields are only in responses with one key, for operators.',
      },
      held_usd: { type: 'string', description: 'Amount reserved for running calls.' },
      left_usd: { type: 'string' },
      starts_at: { type: ['string', 'null'] },
      resets_at: {
        type: ['string', 'null'],
        description: 'Time of the next reset, ISO 8601; null if it never resets.',
      },
    },
  },
} as const;

/** Defaults are not added to requests. */
type Requested = Omit<BudgetValues, 'timezone'> & { readonly timezone?: string };

/**
 * Reads the budgets of a validated request; throws `invalid_request`. The existence of the provider is checked
 * elsewhere.
 */
export function readKeyBudgets(requested: readonly Requested[]): readonly BudgetRule[] | undefined {
  const rules = requested.map((each, at) => {
    const budget = { ...each, timezone: each.timezone ?? 'UTC' };
    const { provider } = budget;
    const [problem] = checkBudget(budget, { plans: [], providers: provider === undefined ? [] : [provider] });
    if (!problem) return readBudget(budget);
    const param = `budgets[${at}].${problem.path.slice(1)}`;
    throw new GatewayError('invalid_request', `"${param}" ${problem.message}. ${problem.hint}`, { param });
  });
  const names = rules.map(({ name }) => name);
  const again = names.findIndex((name, at) => names.indexOf(name) !== at);
  if (again === -1) return rules.length > 0 ? rules : undefined;
  throw new GatewayError(
    'invalid_request',
    `budgets has two entries named "${names[again]}". Spend is counted by name, so give each a unique "name".`,
    { param: `budgets[${again}].name` },
  );
}

/** Converts a budget to the API's form. */
export function showBudget(rule: BudgetRule): PluginConfig<(typeof KEY_BUDGETS_SHOWN)['items']> {
  const { name = '', amount_usd, soft_usd, ...budget } = writeBudget(rule);
  const soft = soft_usd === undefined ? {} : { soft_usd: String(soft_usd) };
  return { ...budget, name, amount_usd: String(amount_usd), ...soft };
}

const OPTION = /^(total|hour|day|week|month)=([^@]{1,20})(?:@(.{1,64}))?$/;

/** Parses budgets of the command line: `day=2,month=20@Europe/Berlin`. Undefined for an invalid text. */
export function parseKeyBudgets(entries: readonly string[]): readonly BudgetValues[] | undefined {
  const budgets = entries.flatMap((entry): readonly BudgetValues[] => {
    const [, every, amount = '', timezone = 'UTC'] = OPTION.exec(entry) ?? [];
    if (every === undefined) return [];
    return [{ every: every as BudgetValues['every'], amount_usd: amount, timezone }];
  });
  return budgets.length === entries.length ? budgets : undefined;
}

type ShownBudget = PluginConfig<(typeof KEY_BUDGETS_SHOWN)['items']>;

/** Reads a key's budgets with the amounts spent and left in the current window; null without budgets. */
export async function readKeySpending(
  { record }: StoredKey,
  ledger: Pick<Ledger, 'budgets' | 'clock'>,
): Promise<readonly ShownBudget[] | null> {
  const { budgets } = record;
  if (!budgets) return null;
  // Windows follow the clock that all gateways of the store share, if it has one.
  const now = (await withStore(async () => ledger.clock?.())) ?? Date.now();
  const prefix = keyWindowPrefix(limitsIdOf(record));
  const counted = budgets.map((rule) => {
    const window = windowAt(rule, now);
    return { rule, window, id: windowId(prefix, rule, window) };
  });
  const states = await withStore(() => ledger.budgets(counted.map(({ id }) => id)));
  return counted.map(({ rule, window }, at) => {
    const { spent, held } = states[at] ?? { spent: 0, held: 0 };
    return {
      ...showBudget(rule),
      spent_usd: formatUsd(spent),
      held_usd: formatUsd(held),
      left_usd: formatUsd(Math.max(rule.amount - spent - held, 0)),
      starts_at: formatEnd(window.start),
      resets_at: formatEnd(window.end),
    };
  });
}

/** Null for infinity. */
function formatEnd(instant: number): string | null {
  return Number.isFinite(instant) ? new Date(instant).toISOString().replace('.000Z', 'Z') : null;
}
