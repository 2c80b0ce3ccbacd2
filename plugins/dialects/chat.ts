import { type ChatRequest, type DialectDefinition, definePlugin } from '../../contract/index.ts';
import { readChatRequest } from '../formats/openai-chat/request.ts';
import { CHAT_SHAPE } from './kit/chat-shape.ts';
import { modelNamesSchema, readModelNames } from './kit/model-names.ts';

const DESCRIPTION =
  'Returns server-sent events if `stream` is true; `Accept` is ignored. Other fields are passed on to providers that support them.';

/**
 * Azure's paths below a deployment, which is the model. https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
const OF_DEPLOYMENTS =
  'chat/completions|completions|embeddings|responses|audio/(?:speech|transcriptions|translations)|images/(?:generations|edits)';

const AZURE = Object.freeze({ path: '/v1/', credentials: ['api-key'] });

/** OpenAI's chat completions: the canonical shape itself, on both surfaces. */
const chat: DialectDefinition<ChatRequest> = {
  ...CHAT_SHAPE,
  name: 'chat',
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
  // Same routes under the paths of Groq's SDK, Google's servers for OpenAI's clients, and Azure.
  pathAliases: [
    { pattern: new RegExp(`^/openai/deployments/(?<model>.+?)/(?=(?:${OF_DEPLOYMENTS})$)`), ...AZURE },
    { pattern: /^\/openai\/(?!deployments\/)(?:v1\/)?/, ...AZURE },
    { pattern: /^\/v1beta\/openai\//, path: '/v1/' },
  ],
  read({ body, params: { provider } }) {
    return readChatRequest(body, provider);
  },
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
