/** `tollgate/codec`: what codecs of model vendors share. A kit is a library for plugins, never a plugin itself. @public */

export { createResponsesCodec } from '../../formats/openai-responses/read-stream.ts';
export { readReasoningItem } from '../../formats/openai-responses/reasoning.ts';
export { customArguments, customInput, namespacedName } from '../../formats/openai-responses/tables.ts';
export { type ChoiceEnd, hasDelivered, unmappedEnd } from '../../formats/unmapped-end.ts';
export { fitCacheMarks } from './cache-marks.ts';
export type { Located } from './content.ts';
export { invalid, readDataUrl, readParts, textOf, transcriptOf, urlOf } from './content.ts';
export {
  AWS_HOSTS,
  AWS_OPTION,
  type AwsKeys,
  type AwsOptions,
  awsCredential,
  readAws,
  signV4,
} from './credentials/aws.ts';
export { ENTRA_HOSTS, ENTRA_OPTION, type EntraOptions, entraCredential, readEntra } from './credentials/entra.ts';
export { GOOGLE_OPTION, type GoogleOptions, googleCredential, readGoogle } from './credentials/google.ts';
export { LIVE_HOSTS, LIVE_OPTIONS, signedInBy } from './credentials/live-options.ts';
export {
  createRenewed,
  fetchCredential,
  type Lease,
  type Renewed,
  readToken,
  type TokenRequest,
  tokenCredential,
} from './credentials/renewed.ts';
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
export { LEGACY_FUNCTIONS, type Leniency, lenientChat } from './lenient-chat.ts';
export { compatibleFacts, listedModel } from './listed-models.ts';
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
  TranscriptionOffer,
  TranscriptionRequest,
  TranscriptionResponse,
} from './operations.ts';
export { readCost } from './operations.ts';
export type { ConfiguredProvider, EndpointDefaults, ProviderConfig } from './options.ts';
export { checkApiKeys, nativeRows, PROVIDER_OPTIONS, readApiKeys, readProviderOptions } from './options.ts';
export { readRelayDetails, textOfDetails, writeRelayDetails } from './reasoning-details.ts';
export { minimalInstance } from './schema-instance.ts';
export { failureOfStatus, readRetryAfter } from './status-failure.ts';
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
export type { CalledTool, Conversation, ToolResult, Turn } from './turns.ts';
export { parseArguments, readConversation } from './turns.ts';
