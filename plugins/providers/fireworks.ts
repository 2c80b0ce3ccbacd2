import { drop, nearestEffort, OPENAI_ONLY, openaiCompatible, pass, rename } from './openai-compatible.ts';

/** Sources: fw-ai-external/python-sdk (generated from its OpenAPI document), docs.fireworks.ai (2026-10). */
export default openaiCompatible({
  name: 'fireworks',
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  apiKeyEnv: 'FIREWORKS_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    echo: drop('it returns the prompt, which the caller has'),
    max_completion_tokens: rename('max_tokens'),
    prediction: pass(),
    reasoning_effort: pass('`low`, `medium`, `high`, `none`', (effort) =>
      nearestEffort(effort, ['high', 'medium', 'low', 'none']),
    ),
  },
  extras: [
    ...['context_length_exceeded_behavior', 'ignore_eos', 'min_p', 'mirostat_lr', 'mirostat_target'],
    ...['prompt_cache_isolation_key', 'prompt_truncate_len', 'repetition_penalty', 'thinking', 'top_k'],
  ],
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  thinkTags: true,
  errors: { messages: [{ status: [412], text: /suspended/, is: 'billing' }] },
  embeddings: { fields: { user: drop() } },
});
