import { OPENAI_MODELS, openaiCompatible } from './openai-compatible.ts';

const BASE_URL = 'https://api.openai.com/v1';

/** https://platform.openai.com/docs/api-reference/chat */
export default openaiCompatible({
  name: 'openai',
  baseUrl: BASE_URL,
  apiKeyEnv: 'OPENAI_API_KEY',
  variants: OPENAI_MODELS,
  toolIds: { valid: /^.{1,40}$/s, length: 40 },
  keepsStop: true,
  // Without the padding every frame is what callers get, and the stream is half as long.
  streamOptions: { include_obfuscation: false },
  embeddings: {},
  options: {
    organization: { type: 'string', description: 'Sent as `OpenAI-Organization`.' },
    project: { type: 'string', description: 'Sent as `OpenAI-Project`.' },
  },
  configure: ({ baseUrl = BASE_URL, organization, project }) => ({
    headers: {
      ...(typeof organization === 'string' && { 'openai-organization': organization }),
      ...(typeof project === 'string' && { 'openai-project': project }),
    },
    // Frames are known to be exact where OpenAI itself sends them; other servers behind this wire are not trusted to.
    exactStream: new URL(baseUrl).host === new URL(BASE_URL).host,
  }),
});
