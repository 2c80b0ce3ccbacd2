/** `tollgate/codec`: what codecs of model vendors share. A kit is a library for plugins, never a plugin itself. */

export type { Located } from './content.ts';
export { invalid, readDataUrl, readParts, textOf, urlOf } from './content.ts';
export type { EmbeddingCodec, EmbeddingOffer, EmbeddingRequest, EmbeddingResponse } from './embeddings.ts';
export { base64ToFloats, floatsToBase64, toUnitLength } from './embeddings.ts';
export { applyFieldRules, mergeExtraBody, tellDropped } from './field-rules.ts';
export { LEGACY_FUNCTIONS } from './legacy-functions.ts';
export { type Leniency, lenientChat } from './lenient-chat.ts';
export type { EndpointDefaults, ProviderConfig } from './options.ts';
export { PROVIDER_OPTIONS, readProviderOptions } from './options.ts';
export { createResponsesCodec } from './responses-codec.ts';
export { readReasoningItem } from './responses-items.ts';
export { customArguments, customInput, namespacedName } from './responses-tools.ts';
export { minimalInstance } from './schema-instance.ts';
export { failureOfStatus, readRetryAfter } from './status-failure.ts';
export { TOOL_NAME } from './tool-names.ts';
export {
  ANSWER_TOOL,
  type AnswerFormat,
  type FunctionTool,
  readAnswerFormat,
  readToolChoice,
  readTools,
  type ToolMode,
  toolCallId,
} from './tools.ts';
export type { CalledTool, Conversation, ToolResult, Turn } from './turns.ts';
export { parseArguments, readConversation } from './turns.ts';
