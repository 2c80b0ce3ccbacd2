/**
 * Shared code of wire formats: content, tools, turns, efforts, options of providers, operations. It imports only the contract;
 * `tollgate/codec` re-exports it.
 */

export { fitCacheMarks } from './cache-marks.ts';
export type { Located } from './content.ts';
export { invalid, readDataUrl, readParts, textOf, transcriptOf, urlOf } from './content.ts';
export {
  EFFORTS,
  type Effort,
  effortOfTokens,
  fitEffort,
  isEffort,
  nearestEffort,
  THINKING_TOKENS,
} from './efforts.ts';
export type { EmbeddingCodec, EmbeddingOffer, EmbeddingRequest, EmbeddingResponse } from './embeddings.ts';
export { base64ToFloats, floatsToBase64, toUnitLength } from './embeddings.ts';
export { applyFieldRules, mergeExtraBody, tellDropped } from './field-rules.ts';
export { FORMAT_FIELDS, MESSAGE_FIELDS, RESPONSE_FIELDS } from './inner-fields.ts';
export { LEGACY_FUNCTIONS, type Leniency, lenientChat } from './lenient-chat.ts';
export { type FormFile, multipartBody } from './multipart.ts';
export type {
  BatchOffer,
  BatchRequest,
  BatchResponse,
  ImageOffer,
  ImageRequest,
  ImageResponse,
  JsonCodec,
  JsonOffer,
  ModerationRequest,
  ModerationResponse,
  RealtimeOffer,
  RealtimeRequest,
  RealtimeResponse,
  RerankRequest,
  RerankResponse,
  ToolResponse,
  TranscriptionOffer,
  TranscriptionRequest,
  TranscriptionResponse,
} from './operations.ts';
export { readCost } from './operations.ts';
export type { ConfiguredProvider, EndpointDefaults } from './options.ts';
export { checkApiKeys, nativeRows, PROVIDER_OPTIONS, readApiKeys, readProviderOptions } from './options.ts';
export type { ProviderConfig } from './provider-config.ts';
export { readRelayDetails, textOfDetails, writeRelayDetails } from './reasoning-details.ts';
export { minimalInstance } from './schema-instance.ts';
export { classOfStatus, failureOfStatus, readRetryAfter, retryHintOf } from './status-failure.ts';
export {
  ANSWER_TOOL,
  type AnswerFormat,
  type FunctionTool,
  readAnswerFormat,
  readToolChoice,
  readTools,
  TOOL_NAME,
  type ToolMode,
  toolCallId,
  toolsOfHistory,
} from './tools.ts';
export {
  ANY_ORDER,
  alternateTurns,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
  TEMPLATE_ORDER,
  TURN_ORDER_OPTION,
  type TurnOrder,
  type TurnOrderConfig,
  templateOrder,
} from './turn-order.ts';
export type { CalledTool, Conversation, ToolResult, Turn } from './turns.ts';
export { parseArguments, readConversation } from './turns.ts';
export { type KnownNames, knownNames, tellUnknown } from './unknown-names.ts';
