import type { ChatRequest, JsonObject } from '../../contract/index.ts';
import { drop, emulate, nearestEffort, OPENAI_ONLY, openaiCompatible, pass, rename } from './openai-compatible.ts';

/** Sources: togethercomputer/openapi (2026-04), docs.together.ai. */
export default openaiCompatible({
  name: 'together',
  baseUrl: 'https://api.together.ai/v1',
  apiKeyEnv: 'TOGETHER_API_KEY',
  media: ['input_audio', 'audio_url', 'video_url'],
  fields: {
    ...OPENAI_ONLY,
    logprobs: emulate('a number there: `top_logprobs`, or 1', logprobs),
    max_completion_tokens: rename('max_tokens'),
    parallel_tool_calls: drop(undefined, true),
    reasoning_effort: emulate('`low`, `medium`, `high`; `none` disables reasoning', effort),
    stop: pass('a single string becomes a list', (stop) => (typeof stop === 'string' ? [stop] : stop)),
    top_logprobs: emulate('see `logprobs`'),
    echo: drop('it returns the prompt, which the caller has'),
    safety_model: drop('names another model with its own price'),
    user: drop(),
  },
  extras: [
    'top_k',
    'min_p',
    'repetition_penalty',
    'context_length_exceeded_behavior',
    'reasoning',
    'chat_template_kwargs',
    'compliance',
  ],
  effects: { compliance: [{ does: 'residency', note: '`hipaa`: place of processing' }] },
  roles: { developer: 'system' },
  thinkTags: true,
  streamUsage: 'always',
  lacks: { 'reasoning tokens': 'its usage does not count them separately' },
  operations: ['images', 'rerank', 'transcription'],
  without: ['images/edits'],
  images: { write: imageFields },
  transcription: { fields: ['language', 'prompt', 'temperature'], streams: false },
  embeddings: { fields: { user: drop() } },
});

function logprobs(value: unknown, { top_logprobs: top }: ChatRequest) {
  return { body: value === true ? { logprobs: Math.max(top ?? 1, 1) } : {} };
}

function effort(value: unknown, { reasoning: own }: ChatRequest) {
  if (value === 'none') return { body: own === undefined ? { reasoning: { enabled: false } } : {} };
  return { body: { reasoning_effort: nearestEffort(value, ['low', 'medium', 'high']) } };
}

/** Source: https://docs.together.ai/reference/post-images-generations */
function imageFields({ prompt, n, output_format, response_format, size, ...others }: JsonObject) {
  const [width, height] = typeof size === 'string' && size !== 'auto' ? size.split('x').map(Number) : [];
  const encoding = response_format === 'b64_json' ? 'base64' : response_format;
  const isTaken = output_format !== 'webp';
  return {
    body: { prompt, n, response_format: encoding, width, height, ...(isTaken && { output_format }) },
    dropped: [...(isTaken ? [] : ['output_format']), ...Object.keys(others)],
  };
}
