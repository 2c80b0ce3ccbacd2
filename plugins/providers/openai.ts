import { OPENAI_EFFECTS, OPENAI_MODELS, openaiCompatible } from './openai-compatible.ts';

/** Models without the Responses API. */
const CHAT_ONLY = /-(audio|search|realtime|transcribe|tts)|instruct|^(babbage|davinci)/;

/**
 * Regional hosts cost 10 % more, for models since March 5, 2026.
 * https://developers.openai.com/api/docs/guides/data-residency, https://developers.openai.com/api/docs/pricing
 */
const REGIONAL_HOST = /^https:\/\/[a-z]{2}\.api\.openai\.com(?:[:/]|$)/i;
const REGIONAL = Object.freeze({ models: /^(?:ft:)?gpt-(?:5\.[4-9]|[6-9])/, by: 1.1 });

/** https://platform.openai.com/docs/api-reference/chat */
export default openaiCompatible({
  name: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  apiKeyEnv: 'OPENAI_API_KEY',
  media: ['input_audio'],
  openAiTools: true,
  variants: OPENAI_MODELS,
  effects: OPENAI_EFFECTS,
  // Accounts created since the Responses API store chat completions by default:
  // https://platform.openai.com/docs/guides/migrate-to-responses
  stores: 'always',
  toolIds: { valid: /^[A-Za-z0-9_-]{1,40}$/, length: 40 },
  files: { data: ['application/pdf'], ids: true },
  keepsStop: true,
  // Without padding, frames pass unchanged, and the stream is half as long.
  streamOptions: { include_obfuscation: false },
  embeddings: {},
  operations: ['batches', 'images', 'moderations', 'realtime', 'transcription'],
  reasoningSummary: 'auto',
  lacks: {
    'reasoning content':
      'chat completions return only the number of reasoning tokens; requests sent by the Responses API get summaries',
  },
  responsesPath: (model) => (CHAT_ONLY.test(model) ? undefined : '/responses'),
  options: {
    organization: { type: 'string', description: 'Sent as `OpenAI-Organization`.' },
    project: { type: 'string', description: 'Sent as `OpenAI-Project`.' },
  },
  configure: ({ organization, project, baseUrl }) => ({
    ...(REGIONAL_HOST.test(baseUrl ?? '') && { dearerPlace: REGIONAL }),
    headers: {
      ...(typeof organization === 'string' && { 'openai-organization': organization }),
      ...(typeof project === 'string' && { 'openai-project': project }),
    },
  }),
});
