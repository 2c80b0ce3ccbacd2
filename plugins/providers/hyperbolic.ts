import { drop, OPENAI_ONLY, openaiCompatible, refuse, rename } from './openai-compatible.ts';

/** Documented only by third parties: LiteLLM, Portkey, api-evangelist (2026). It behaves like vLLM. */
export default openaiCompatible({
  name: 'hyperbolic',
  baseUrl: 'https://api.hyperbolic.xyz/v1',
  apiKeyEnv: 'HYPERBOLIC_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    logit_bias: refuse('no token biases'),
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    parallel_tool_calls: drop(undefined, true),
    reasoning_effort: drop(),
    top_logprobs: drop(),
  },
  unknown: 'dropped',
  extras: ['top_k', 'min_p', 'repetition_penalty'],
  roles: { developer: 'system' },
  thinkTags: true,
  media: ['input_audio', 'audio_url', 'video_url'],
  errors: { messages: [{ status: [404], text: /^$/, is: 'model_not_found' }] },
  lacks: {
    'cached tokens': 'its usage has three counts only',
    'log probabilities': 'not in its documentation',
    'reasoning content': 'not in its documentation',
    'reasoning tokens': 'its usage has three counts only',
  },
});
