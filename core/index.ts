/** The public entry of `tollgate`: what plugins and programs that embed the gateway import. @public */

export type { BudgetValues } from '../config/budgets.ts';
export { STANDARD_FORMATS } from '../config/formats.ts';
export { priceAt } from '../config/price-rows.ts';
export { nearest } from '../config/problems.ts';
export { createEventReader } from '../egress/event-reader.ts';
export { costOf, isCount } from '../models/prices.ts';
export type { Gateway, GatewayOptions } from './app.ts';
export { createGateway } from './app.ts';
export { failureToError } from './calls/attempt.ts';
export { normalChat } from './calls/chat-form.ts';
export { isLoopback, isPublicHost } from './calls/content.ts';
export { factsOf, type RequestFacts } from './calls/facts.ts';
export type {
  AccountRecord,
  NamedPlan,
  PlanBook,
  PlanFinder,
  StoredPlan,
  StoredPlans,
  UserRecord,
} from './calls/plans.ts';
export type * from './contract/audit.ts';
export type * from './contract/budgets.ts';
export type * from './contract/call.ts';
export type * from './contract/chat.ts';
export { CHAT_REQUEST, MAX_MESSAGES, MAX_PARTS } from './contract/chat-schemas.ts';
export type { ChunkHead } from './contract/chunks.ts';
export { chunkHead, deltaChunk, laterUsage, usageChunk } from './contract/chunks.ts';
export type * from './contract/dialect.ts';
export type { ErrorBody, ErrorCode, ErrorOptions, ErrorType } from './contract/errors.ts';
export { ERRORS, GatewayError, isGatewayError, toGatewayError } from './contract/errors.ts';
export type * from './contract/events.ts';
export type * from './contract/gateway.ts';
export type * from './contract/hooks.ts';
export { HOOKS } from './contract/hooks.ts';
export type * from './contract/json.ts';
export { exceedsBounds, isObject, parseJson, readArray, readCount, readObject, readString } from './contract/json.ts';
export type * from './contract/operation.ts';
export type * from './contract/plugin.ts';
export type { Log } from './contract/plugin.ts';
export { API_VERSION, definePlugin, OptionError, PLUGIN_KINDS, problemsOf } from './contract/plugin.ts';
export type * from './contract/provider.ts';
export { isStreamFailure, StreamFailure } from './contract/provider.ts';
export type * from './contract/store.ts';
export type * from './contract/units.ts';
export type { TagRules } from './contract/units.ts';
export {
  estimateTextTokens,
  formatUsd,
  parseDuration,
  parseSize,
  parseUsd,
  picoRate,
  roundCost,
} from './contract/units.ts';
export type { SseWriter, SseWriterOptions } from './http/sse-writer.ts';
export { createSseWriter } from './http/sse-writer.ts';

// The compiler keeps members that others add to these only where the first addition is to the file that declares them: before
// any plugin's, whatever order its files are in.
declare module './contract/call.ts' {
  interface Operations {}
  interface Services {}
}
