import {
  CHAT_REQUEST,
  type ChatChunk,
  type ChatRequest,
  type DialectDefinition,
  definePlugin,
  type Schema,
} from '../../core/index.ts';
import { readChatRequest } from '../formats/openai-chat/request.ts';
import { writeChatChunk, writeChatResponse } from '../formats/openai-chat/response.ts';
import { modelNamesSchema, readModelNames } from './kit/model-names.ts';

const DESCRIPTION =
  'A stream of server-sent events when `stream` is true, whatever `Accept` says. Fields beyond the listed ones are carried to the provider where it has them.';

const USAGE: Schema = {
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  properties: {
    prompt_tokens: { type: 'integer' },
    completion_tokens: { type: 'integer' },
    total_tokens: { type: 'integer' },
  },
};

/** What responses look like, for the OpenAPI document; codecs make them fit, and tests hold them to it. */
const CHAT_RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ChatCompletion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  properties: {
    id: { type: 'string' },
    object: { const: 'chat.completion' },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    model: { type: 'string' },
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'message', 'finish_reason', 'logprobs'],
        properties: {
          index: { type: 'integer' },
          message: { type: 'object', required: ['role', 'content', 'refusal'] },
          finish_reason: { enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] },
        },
      },
    },
    usage: USAGE,
  },
});

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** What Azure has below a deployment, which is the model. https://learn.microsoft.com/azure/ai-foundry/openai/reference */
const OF_DEPLOYMENTS =
  'chat/completions|completions|embeddings|responses|audio/(?:speech|transcriptions|translations)|images/(?:generations|edits)';

const AZURE = Object.freeze({ path: '/v1/', credentials: ['api-key'] });

/** OpenAI's chat completions: the canonical shape itself, on both surfaces. */
const chat: DialectDefinition<ChatRequest> = {
  name: 'chat',
  request: CHAT_REQUEST,
  response: CHAT_RESPONSE,
  routes: [
    {
      path: '/api/core/:provider/chat/completions',
      summary: 'Chat completion by one provider',
      description: DESCRIPTION,
    },
    {
      path: '/v1/chat/completions',
      summary: 'Chat completion; the model is `provider/model` or an alias',
      description: DESCRIPTION,
    },
  ],
  // As Groq's SDK, Google's servers for OpenAI's clients and Azure's have the same routes.
  pathAliases: [
    { pattern: new RegExp(`^/openai/deployments/(?<model>.+?)/(?=(?:${OF_DEPLOYMENTS})$)`), ...AZURE },
    { pattern: /^\/openai\/(?!deployments\/)(?:v1\/)?/, ...AZURE },
    { pattern: /^\/v1beta\/openai\//, path: '/v1/' },
  ],
  keepAlive: ': keep-alive\n\n',
  read({ body, params: { provider } }) {
    return { ...readChatRequest(body), ...(provider !== undefined && { provider }) };
  },
  write: (response, context) => writeChatResponse(response, context),
  stream(context) {
    const { stream_options } = context.request;
    // The final usage chunk, which has no choices, is for those who ask for it.
    const isWanted = ({ usage }: ChatChunk): boolean => !usage || stream_options?.include_usage === true;
    return {
      push: (chunk) => (isWanted(chunk) ? frame(writeChatChunk(chunk, context)) : ''),
      end: () => 'data: [DONE]\n\n',
      fail: (error, requestId) => frame(error.toBody(requestId)),
    };
  },
  error: (error, requestId) => ({ body: error.toBody(requestId) }),
};

export default definePlugin({
  name: 'chat',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      models: modelNamesSchema('gpt-6-sol'),
    },
  },
  setup(api, config) {
    api.dialect({ ...chat, aliases: readModelNames(config) });
  },
});
