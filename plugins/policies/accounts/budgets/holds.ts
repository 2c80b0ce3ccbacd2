import { type BudgetHold, formatUsd, GatewayError, type Outcome } from '../../../../core/index.ts';
import { type CountedBudget, countsTarget, isByTarget } from './counted.ts';

/** What one reservation of the ledger may count in beside the totals of its key and its user. */
const MAX_BUDGETS = 30;

const DAY_MS = 86_400_000;

/** What the ledger holds for a call in these budgets. Throws when there are more of them than it takes. */
export function holdsOf(budgets: readonly CountedBudget[]): readonly BudgetHold[] {
  if (budgets.length <= MAX_BUDGETS) return budgets.map(({ hold }) => hold);
  throw new GatewayError(
    'permission_denied',
    `More than ${MAX_BUDGETS} budgets count this call, the most that are counted at once. The operator of this gateway has to remove some.`,
  );
}

/** The budgets that a settled call is not charged to: those of a provider or a model that did not answer it. */
export function unchargedOf(budgets: readonly CountedBudget[], { target }: Pick<Outcome, 'target'>): readonly string[] {
  const others = budgets.filter(({ rule }) => isByTarget(rule) && !(target && countsTarget(rule, target)));
  return others.map(({ id }) => id);
}

/** The refusal of a call that a budget does not cover. `used` is what of it was spent and held before the call. */
export function refusalOf(budget: CountedBudget, used: number, amount: number, now: number): GatewayError {
  const { rule, limit, window } = budget;
  const left = Math.max(limit - used, 0);
  const resets = resetsAt(budget);
  const headers: Record<string, string> = {};
  // In whole seconds, and not a second early. Of more than a day nobody waits for.
  const waitMs = window.end - now;
  if (waitMs <= DAY_MS && amount <= rule.amount) headers['retry-after'] = String(Math.max(Math.ceil(waitMs / 1000), 1));
  return new GatewayError(
    'insufficient_balance',
    `The budget "${rule.name}" of ${formatUsd(limit)} USD ${PER[rule.every]} does not cover the call: ${formatUsd(left)} USD are left, and the call may cost ${formatUsd(amount)} USD. ${
      resets === null ? 'It does not begin anew.' : `It begins anew at ${resets}.`
    } Ask for fewer tokens with "max_tokens"${resets === null ? '' : ', or wait'}.`,
    { headers },
  );
}

/** When a budget begins anew, as people and programs read it; null for one that never does. */
export function resetsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.end === Number.POSITIVE_INFINITY ? null : isoSeconds(window.end);
}

/** When a budget's window began; null for one without a beginning. */
export function startsAt({ window }: Pick<CountedBudget, 'window'>): string | null {
  return window.start === Number.NEGATIVE_INFINITY ? null : isoSeconds(window.start);
}

/** ISO 8601 in UTC, to the second. */
export function isoSeconds(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z');
}

const PER = Object.freeze({ total: 'in all', hour: 'an hour', day: 'a day', week: 'a week', month: 'a month' });
