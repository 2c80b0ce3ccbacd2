/**
 * `tollgate/codec`: shared code of codecs for model vendors. A kit is a library for plugins, never a plugin itself.
 *
 * @public
 */

export { createEventReader } from '../../../contract/event-reader.ts';
export type {
  AnswerFormat,
  BatchOffer,
  BatchRequest,
  BatchResponse,
  CalledTool,
  Conversation,
  Effort,
  EmbeddingCodec,
  EmbeddingOffer,
  EmbeddingRequest,
  EmbeddingResponse,
  FormFile,
  FunctionTool,
  ImageOffer,
  ImageRequest,
  ImageResponse,
  JsonCodec,
  JsonOffer,
  Leniency,
  Located,
  ModerationRequest,
  ModerationResponse,
  ProviderConfig,
  RealtimeOffer,
  RealtimeRequest,
  RealtimeResponse,
  RerankRequest,
  RerankResponse,
  ToolMode,
  ToolResult,
  TranscriptionOffer,
  TranscriptionRequest,
  TranscriptionResponse,
  Turn,
  TurnOrder,
  TurnOrderConfig,
} from '../../formats/kit/index.ts';
export {
  ANSWER_TOOL,
  ANY_ORDER,
  alternateTurns,
  applyFieldRules,
  base64ToFloats,
  EFFORTS,
  effortOfTokens,
  failureOfStatus,
  fitCacheMarks,
  fitEffort,
  floatsToBase64,
  invalid,
  isEffort,
  LEGACY_FUNCTIONS,
  lenientChat,
  mergeExtraBody,
  minimalInstance,
  multipartBody,
  nearestEffort,
  parseArguments,
  readAnswerFormat,
  readConversation,
  readCost,
  readDataUrl,
  readParts,
  readRelayDetails,
  readRetryAfter,
  readToolChoice,
  readTools,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
  TEMPLATE_ORDER,
  THINKING_TOKENS,
  TOOL_NAME,
  TURN_ORDER_OPTION,
  tellDropped,
  templateOrder,
  textOf,
  textOfDetails,
  toolCallId,
  toolsOfHistory,
  toUnitLength,
  transcriptOf,
  urlOf,
  writeRelayDetails,
} from '../../formats/kit/index.ts';
export { createResponsesCodec } from '../../formats/openai-responses/read-stream.ts';
export { readReasoningItem } from '../../formats/openai-responses/reasoning.ts';
export { customArguments, customInput, namespacedName } from '../../formats/openai-responses/tables.ts';
export { type ChoiceEnd, hasDelivered, unmappedEnd } from '../../formats/unmapped-end.ts';
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
export { compatibleFacts, listedModel } from './listed-models.ts';
export type { ConfiguredProvider, EndpointDefaults } from './options.ts';
export { checkApiKeys, nativeRows, PROVIDER_OPTIONS, readApiKeys, readProviderOptions } from './options.ts';
