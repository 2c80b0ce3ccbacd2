import { drop, nearestEffort, OPENAI_ONLY, openaiCompatible, pass, refuse, rename } from './openai-compatible.ts';

const OTHERS = 'rejected by the vendor';

/**
 * Sources: @cerebras/cerebras_cloud_sdk 1.91, inference-docs.cerebras.ai (2026-10). If they differ, the narrower one
 * applies.
 */
export default openaiCompatible({
  name: 'cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  apiKeyEnv: 'CEREBRAS_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop(OTHERS, 0),
    logit_bias: refuse('no token biases'),
    max_tokens: rename('max_completion_tokens'),
    prediction: pass(),
    presence_penalty: drop(OTHERS, 0),
    prompt_cache_key: pass(),
    reasoning_effort: pass('`low`, `medium`, `high`', (effort) => nearestEffort(effort, ['low', 'medium', 'high'])),
    service_tier: drop('the gateway has no prices for its tiers', 'auto', 'default'),
  },
  variants: [
    {
      when: '`qwen`',
      models: /^qwen/,
      example: { model: 'qwen-3.8-27b' },
      fields: {
        reasoning_effort: pass('`none` too', (effort) => nearestEffort(effort, ['high', 'medium', 'low', 'none'])),
      },
    },
  ],
  extras: ['clear_thinking', 'disable_reasoning', 'min_completion_tokens', 'min_tokens', 'reasoning_format'],
  roles: { developer: 'system' },
  replay: 'reasoning',
});
