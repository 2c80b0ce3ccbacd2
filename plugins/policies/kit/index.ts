/** The entry `tollgate/operators`: what plugins need that operators work with, in addition to what all plugins need: routes for them, plans, budgets, tags, the record of a call. */

export {
  ACCOUNTS,
  ALL_PLANS,
  accountKey,
  auditActor,
  BUDGET,
  changedMeanwhile,
  checkBudget,
  createPlanBook,
  createPlanFinder,
  FOR_OPERATORS,
  findAccount,
  isTimeZone,
  listOf,
  MAX_OWN_BUDGETS,
  MAX_TAGS,
  maxEntries,
  networkOf,
  OWN_BUDGET,
  PAGE_QUERY,
  PLAN_SCHEMA,
  PLANS,
  readBudget,
  readPage,
  readPlan,
  refuseTag,
  SESSION_COOKIE,
  sendList,
  steadyNow,
  tagName,
  USERS,
  WEEKDAYS,
} from '../../../core/operators.ts';
export type { CalendarWindow, KeyOrigin, WindowRule } from './calendar-windows.ts';
export {
  firstInstantOf,
  KEY_ORIGINS,
  keyBudgetId,
  keyWindowPrefix,
  userBudgetId,
  wallAt,
  windowAt,
  windowId,
  writeBudget,
} from './calendar-windows.ts';
export type { CallField, CallFieldType, CallSummary } from './call-fields.ts';
export { CALL_FIELDS, FACT_NAMES, plannedFacts, summaryOf, UNKNOWN_FACTS } from './call-fields.ts';
export { createLocalCounters } from './local-counters.ts';
export { matchVersion, sendVersion } from './versions.ts';
