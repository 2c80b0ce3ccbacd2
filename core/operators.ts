/** The entry `tollgate/operators`: what plugins need that operators work with, beside what all plugins need: routes for them, plans, budgets, tags. */

export { USERS } from './calls/blocked-users.ts';
export { ACCOUNTS, ALL_PLANS, accountKey, createPlanBook, findAccount, PLANS } from './calls/plans.ts';
export { checkBudget } from './config/check-budgets.ts';
export { PLAN_SCHEMA, readPlan } from './config/read-plan.ts';
export { auditActor } from './contract/audit.ts';
export { keyBudgetId, keyWindowPrefix, userBudgetId, windowAt, windowId } from './contract/budget-windows.ts';
export {
  BUDGET,
  isTimeZone,
  KEY_ORIGINS,
  MAX_OWN_BUDGETS,
  OWN_BUDGET,
  readBudget,
  WEEKDAYS,
  writeBudget,
} from './contract/budgets.ts';
export { steadyNow } from './contract/steady-now.ts';
export { MAX_TAGS, refuseTag, tagName } from './contract/tags.ts';
export { firstInstantOf, wallAt } from './contract/zone-clock.ts';
export {
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from './http/operator-routes.ts';
export { changedMeanwhile } from './plugins/records.ts';
