/**
 * Entry `tollgate/operators`: additional API for plugins that operators use: operator routes, plans, budgets, tags, the
 * record of a call. @beta
 */

export {
  ACCOUNTS,
  ALL_PLANS,
  accountKey,
  assertInPlan,
  auditActor,
  BUDGET,
  changedMeanwhile,
  checkBudget,
  coversTool,
  cpuBudget,
  createPlanBook,
  createPlanFinder,
  describeAge,
  END_USER_TAG,
  feesAreMore,
  findAccount,
  hasScope,
  isDearer,
  isTimeZone,
  type Linked,
  LinkedList,
  logFields,
  MAX_OWN_BUDGETS,
  MAX_TAGS,
  maxEntries,
  mergeStates,
  nearEndOf,
  networkOf,
  OWN_BUDGET,
  PLAN_SCHEMA,
  PLANS,
  readBudget,
  readPlan,
  refuseTag,
  SESSION_COOKIE,
  steadyNow,
  tagName,
  targetRows,
  USERS,
  WEEKDAYS,
} from '../../../contract/operators.ts';
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
export {
  CALL_FIELDS,
  describeHooks,
  FACT_NAMES,
  heldOf,
  plannedFacts,
  recordHold,
  summaryOf,
  UNKNOWN_FACTS,
} from './call-fields.ts';
export type { CallableModels, FindCallable } from './callable-models.ts';
export { CALLABLE_MODELS, findCallable, formatCallable, offerCallable } from './callable-models.ts';
export { createNameReplacer, endUserWindowPrefix, isBudgetOf } from './erased-names.ts';
export { type AdmitKey, admitKey, offerKeys } from './key-references.ts';
export { createLocalCounters } from './local-counters.ts';
export { createModelNames, type ModelNames, type ModelNamesApi } from './model-names.ts';

export type { NoticeApi, NoticeType, OperatorNotice } from './notices.ts';
export { daysBefore, hasReceivers, tellOperators } from './notices.ts';

export { FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from './operator-lists.ts';

export { createRefusals } from './refusals.ts';
export type { Rights, Role, Scope } from './scopes.ts';
export { findMissing, listScopes, ROLES, rightsOf, SCOPE_NAMES, SCOPES } from './scopes.ts';
export type { OwnTeam, StoredTeam, StoredTeams, Team } from './teams.ts';
export {
  ALL_TEAMS,
  beyondTeam,
  createTeamRoutes,
  OWN_TEAMS,
  ownsTeam,
  refuseOtherTag,
  shownTag,
  TEAM,
  TEAMS,
  teamOf,
} from './teams.ts';
export { matchVersion, sendVersion } from './versions.ts';
