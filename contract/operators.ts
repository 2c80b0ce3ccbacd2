/** Exports for operator plugins in addition to the common contract; re-exported by `tollgate/operators` (plugins/policies/kit). */

export { auditActor } from './audit.ts';
export { BUDGET, isTimeZone, MAX_OWN_BUDGETS, OWN_BUDGET, readBudget, WEEKDAYS } from './budget-rules.ts';
export { checkBudget, readPlan } from './check-budgets.ts';
export { networkOf } from './hosts.ts';
export { type Linked, LinkedList } from './linked-list.ts';
export { logFields } from './log-fields.ts';
export { describeAge, nearEndOf } from './model-ends.ts';
export { PLAN_SCHEMA } from './plan-schema.ts';
export {
  ACCOUNTS,
  ALL_PLANS,
  accountKey,
  assertInPlan,
  createPlanBook,
  createPlanFinder,
  findAccount,
  PLANS,
  USERS,
} from './plans.ts';
export { feesAreMore, isDearer } from './price-compare.ts';
export { SESSION_COOKIE } from './route.ts';
export { hasScope } from './scopes.ts';
export { coversTool } from './server-tools.ts';
export { mergeStates, targetRows } from './target-rows.ts';
export { createNameReplacer } from './texts.ts';
export { cpuBudget, END_USER_TAG, MAX_TAGS, maxEntries, refuseTag, steadyNow, tagName } from './units.ts';
export { changedMeanwhile } from './versions.ts';
