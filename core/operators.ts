/** What core has for plugins that operators work with; `tollgate/operators` (plugins/policies/kit) passes it on with their own. */

export { BUDGET, isTimeZone, MAX_OWN_BUDGETS, OWN_BUDGET, readBudget, WEEKDAYS } from '../config/budgets.ts';
export { checkBudget, PLAN_SCHEMA, readPlan } from '../config/check-budgets.ts';
export { describeAge, nearEndOf } from '../models/model-ends.ts';
export { loadModelTable, problemsOfModels, problemsOfTable } from '../models/model-table.ts';
export { feesAreMore, isDearer } from '../models/price-compare.ts';
export { targetRows } from '../routing/routing-states.ts';
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
} from './calls/plans.ts';
export { auditActor } from './contract/audit.ts';
export { type Linked, LinkedList } from './contract/linked-list.ts';
export { logFields } from './contract/log-fields.ts';
export { SESSION_COOKIE } from './contract/route.ts';
export { cpuBudget, MAX_TAGS, maxEntries, refuseTag, steadyNow, tagName } from './contract/units.ts';
export { networkOf } from './http/failed-credentials.ts';
export { hasScope } from './http/operator-rights.ts';
export { changedMeanwhile } from './plugins/instance-store.ts';
