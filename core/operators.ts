/** The entry `tollgate/operators`: what plugins need that operators work with, beside what all plugins need: routes for them, plans, budgets, tags. */

export { ACCOUNTS, ALL_PLANS, accountKey, createPlanBook, findAccount, PLANS, USERS } from './calls/plans.ts';
export { checkBudget, PLAN_SCHEMA, readPlan } from './config/check-budgets.ts';
export { auditActor } from './contract/audit.ts';
export {
  BUDGET,
  firstInstantOf,
  isTimeZone,
  KEY_ORIGINS,
  keyBudgetId,
  keyWindowPrefix,
  MAX_OWN_BUDGETS,
  OWN_BUDGET,
  readBudget,
  userBudgetId,
  WEEKDAYS,
  wallAt,
  windowAt,
  windowId,
  writeBudget,
} from './contract/budgets.ts';
export { MAX_TAGS, refuseTag, steadyNow, tagName } from './contract/units.ts';
export {
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from './http/operator-routes.ts';
export { changedMeanwhile } from './plugins/instance-store.ts';
