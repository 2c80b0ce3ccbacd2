/** The ledger's id of all that a key, and the keys that it replaced, have ever spent: a budget without an end. */
export function keyBudgetId(limitsId: string): string {
  return `key:${limitsId}`;
}

/** The ledger's id of all that a user has ever spent over all keys: a budget without an end. */
export function userBudgetId(userId: string): string {
  return `user:${userId}`;
}
