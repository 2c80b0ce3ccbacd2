/** The public entry of `tollgate`: what plugins and programs that embed the gateway import. */

export type { Gateway, GatewayOptions } from './app.ts';
export { createGateway } from './app.ts';
export type { UserRecord } from './calls/blocked-users.ts';
export { USERS } from './calls/blocked-users.ts';
export { failureToError } from './calls/failures.ts';
export type { NamedPlan, PlanBook, StoredPlan, StoredPlans } from './calls/plan-book.ts';
export { ALL_PLANS, createPlanBook, PLANS } from './calls/plan-book.ts';
export type { AccountRecord, PlanFinder } from './calls/plan-finder.ts';
export { ACCOUNTS, accountKey, createPlanFinder, findAccount } from './calls/plan-finder.ts';
export { costOf } from './calls/pricing.ts';
export { isPublicHost } from './calls/remote-media.ts';
export { estimateInputTokens, estimateTextTokens } from './calls/tokens.ts';
export { nearest } from './config/nearest.ts';
export { PLAN_SCHEMA, readPlan } from './config/read-plan.ts';
export type * from './contract/agent.ts';
export type * from './contract/audit.ts';
export { auditActor } from './contract/audit.ts';
export { keyBudgetId, userBudgetId } from './contract/budget-ids.ts';
export type * from './contract/budgets.ts';
export {
  BUDGET,
  checkBudget,
  isTimeZone,
  KEY_ORIGINS,
  MAX_OWN_BUDGETS,
  OWN_BUDGET,
  readBudget,
  WEEKDAYS,
  writeBudget,
} from './contract/budgets.ts';
export type * from './contract/call.ts';
export type * from './contract/call-records.ts';
export type * from './contract/catalog.ts';
export type * from './contract/chat.ts';
export type * from './contract/chat-extensions.ts';
export { CHAT_REQUEST, CHAT_RESPONSE } from './contract/chat-schemas.ts';
export type { ChunkHead } from './contract/chunks.ts';
export { chunkHead, deltaChunk, usageChunk } from './contract/chunks.ts';
export type * from './contract/dialect.ts';
export type { ErrorBody, ErrorCode, ErrorOptions, ErrorType } from './contract/errors.ts';
export { ERRORS, GatewayError, isGatewayError, toGatewayError } from './contract/errors.ts';
export type * from './contract/fields.ts';
export type * from './contract/figures.ts';
export type * from './contract/hooks.ts';
export { HOOKS } from './contract/hooks.ts';
export type * from './contract/json.ts';
export { isObject, parseJson, readArray, readCount, readObject, readString } from './contract/json.ts';
export type * from './contract/ledger.ts';
export type { Log } from './contract/log.ts';
export type * from './contract/operation.ts';
export { OptionError, problemsOf } from './contract/option-error.ts';
export type * from './contract/plugin.ts';
export { API_VERSION, definePlugin, PLUGIN_KINDS } from './contract/plugin.ts';
export type * from './contract/provider.ts';
export { isStreamFailure, StreamFailure } from './contract/provider.ts';
export type * from './contract/records.ts';
export type * from './contract/routing.ts';
export { SESSION_COOKIE } from './contract/session-cookie.ts';
export type * from './contract/store.ts';
export type { TagRules } from './contract/tags.ts';
export { MAX_TAGS, refuseTag, tagName } from './contract/tags.ts';
export { formatUsd, parseDuration, parseSize, parseUsd } from './contract/units.ts';
export {
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from './http/operator-routes.ts';
export type { SseWriter, SseWriterOptions } from './http/sse-writer.ts';
export { createSseWriter } from './http/sse-writer.ts';
export { createLocalCounters } from './plugins/local-counters.ts';
export { changedMeanwhile } from './plugins/records.ts';
export type { SseReader, SseReaderOptions } from './upstream/event-reader.ts';
export { createEventReader } from './upstream/event-reader.ts';
