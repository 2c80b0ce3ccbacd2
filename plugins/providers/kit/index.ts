/** `tollgate/codec`: what codecs of model vendors share. A kit is a library for plugins, never a plugin itself. */

export type { Located } from './content.ts';
export { invalid, readDataUrl, readParts, textOf, urlOf } from './content.ts';
export type * from './embedding-types.ts';
export { base64ToFloats, floatsToBase64, toUnitLength } from './embeddings.ts';
export { mergeExtraBody } from './extra-body.ts';
export { applyFieldRules, tellDropped } from './field-rules.ts';
export { LEGACY_FUNCTIONS } from './legacy-functions.ts';
export { type Leniency, lenientChat } from './lenient-chat.ts';
export type { EndpointDefaults, ProviderConfig } from './options.ts';
export { PROVIDER_OPTIONS, readProviderOptions } from './options.ts';
export { createResponsesCodec } from './responses-codec.ts';
export { readReasoningItem } from './responses-items.ts';
export { customArguments, customInput, namespacedName } from './responses-tools.ts';
export { readRetryAfter } from './retry-after.ts';
export { minimalInstance } from './schema-instance.ts';
export { failureOfStatus } from './status-failure.ts';
export { toolCallId } from './tool-call-ids.ts';
export { TOOL_NAME } from './tool-names.ts';
export type { AnswerFormat, FunctionTool, ToolMode } from './tools.ts';
export { ANSWER_TOOL, readAnswerFormat, readToolChoice, readTools } from './tools.ts';
export type { CalledTool, Conversation, ToolResult, Turn } from './turns.ts';
export { parseArguments, readConversation } from './turns.ts';
