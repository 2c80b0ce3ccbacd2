import type { Principal } from '../../../core/index.ts';

/** Begins the names of accounts that count what a user with a budget has spent. No user id holds a control character. */
const USER_BUDGET = '\u0001user:';

/** The account whose balance is what a user has spent of the budget that binds all keys; undefined for users without one. */
export function userBudgetAccount({ userId, userLimits }: Principal): string | undefined {
  return userLimits?.budget === undefined ? undefined : USER_BUDGET + userId;
}
