// All exported names in one place, except those of a call's record, which are in `CALL_FIELDS`. The conventions for
// generative AI are still in development and change names.

/** Semantic conventions for generative AI, in the first release of their own repository. */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/gen-ai/0.1.0';

export const SCOPE = 'tollgate';

/** Attributes of spans and metric points. */
export const ATTRIBUTES = Object.freeze({
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  choices: 'gen_ai.request.choice.count',
  seed: 'gen_ai.request.seed',
  stop: 'gen_ai.request.stop_sequences',
  responseModel: 'gen_ai.response.model',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrittenTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenType: 'gen_ai.token.type',
  agent: 'gen_ai.agent.name',
  errorType: 'error.type',
  httpStatus: 'http.response.status_code',
  user: 'user.id',
  requestId: 'tollgate.request_id',
  key: 'tollgate.key_id',
  account: 'tollgate.account',
  reason: 'tollgate.reason',
  plugin: 'tollgate.plugin',
  hook: 'tollgate.hook',
});

export const METRIC_NAMES = Object.freeze({
  duration: 'gen_ai.client.operation.duration',
  tokens: 'gen_ai.client.token.usage',
  firstChunk: 'gen_ai.client.operation.time_to_first_chunk',
});

/** Operation names in the conventions; others keep their own name. */
export const OPERATIONS: Readonly<Record<string, string>> = Object.freeze({ chat: 'chat', embeddings: 'embeddings' });

/** Vendor names in the conventions; an instance with another name keeps it. */
export const PROVIDERS: Readonly<Record<string, string>> = Object.freeze({
  azure: 'azure.ai.openai',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  xai: 'x_ai',
});
