/** The entry `tollgate`: what plugins import. It loads this folder alone. @public */

export type * from './audit.ts';
export type { BudgetValues } from './budget-rules.ts';
export type * from './budgets.ts';
export type * from './call.ts';
export type * from './chat.ts';
export { normalChat } from './chat-form.ts';
export { CHAT_REQUEST, MAX_MESSAGES, MAX_PARTS } from './chat-schemas.ts';
export type * from './chat-tools.ts';
export type { ChunkHead } from './chunks.ts';
export { chunkHead, deltaChunk, laterUsage, usageChunk } from './chunks.ts';
export type * from './config-changes.ts';
export type * from './dialect.ts';
export type { ErrorBody, ErrorCode, ErrorOptions, ErrorType } from './errors.ts';
export { ERRORS, GatewayError, isGatewayError, toGatewayError } from './errors.ts';
export { framesOf, openEventStream, sendEvents } from './event-stream.ts';
export type * from './events.ts';
export { moveNumber, parseExact, withNumbersOf, writeJson } from './exact-json.ts';
export { factsOf, type RequestFacts } from './facts.ts';
export { failureToError } from './failures.ts';
export type * from './gateway.ts';
export type * from './hooks.ts';
export { HOOKS } from './hooks.ts';
export { isLoopback, isPublicHost } from './hosts.ts';
export type * from './json.ts';
export { exceedsBounds, isObject, parseJson, readArray, readCount, readObject, readString } from './json.ts';
export { splitModel } from './model-names.ts';
export { nearest } from './nearest.ts';
export type * from './operation.ts';
export type {
  AccountRecord,
  NamedPlan,
  PlanBook,
  PlanFinder,
  StoredPlan,
  StoredPlans,
  UserRecord,
} from './plans.ts';
export type * from './plugin.ts';
export type { Log } from './plugin.ts';
export { API_VERSION, definePlugin, OptionError, PLUGIN_KINDS, problemsOf } from './plugin.ts';
export { priceAt } from './price-rows.ts';
export { costOf, isCount } from './prices.ts';
export type * from './provider.ts';
export { isStreamFailure, StreamFailure } from './provider.ts';
export { callContext } from './route.ts';
export { STANDARD_FORMATS } from './schema-formats.ts';
export type { SseWriter, SseWriterOptions } from './sse-writer.ts';
export { createSseWriter } from './sse-writer.ts';
export type * from './store.ts';
export type * from './units.ts';
export type { TagRules } from './units.ts';
export {
  estimateTextTokens,
  formatUsd,
  parseDuration,
  parseSize,
  parseUsd,
  picoRate,
  roundCost,
} from './units.ts';

// The compiler keeps members that others add only if the first addition is to the declaring file. This one precedes those of all
// plugins, regardless of file order.
declare module './call.ts' {
  interface Operations {}
  interface Services {}
}
