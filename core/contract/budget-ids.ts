import type { BudgetRule } from './budgets.ts';
import type { CalendarWindow } from './calendar-windows.ts';

/** The ledger's id of all that a key, and the keys that it replaced, have ever spent: a budget without an end. */
export function keyBudgetId(limitsId: string): string {
  return `key:${limitsId}`;
}

/** The ledger's id of all that a user has ever spent over all keys: a budget without an end. */
export function userBudgetId(userId: string): string {
  return `user:${userId}`;
}

/** What the ledger counts the budgets of a key under; of keys that replaced one another, by the first of them. */
export function keyWindowPrefix(limitsId: string): string {
  return `key-window:${limitsId}`;
}

/** The ledger's id of a budget in one of its windows. One that is counted by another period begins anew. */
export function windowId(
  prefix: string,
  { name, every }: Pick<BudgetRule, 'name' | 'every'>,
  { start }: CalendarWindow,
): string {
  const id = `${prefix}:${name}:${every}`;
  return start === Number.NEGATIVE_INFINITY ? id : `${id}@${start}`;
}
