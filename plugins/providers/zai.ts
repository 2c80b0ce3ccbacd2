import type { ChatRequest } from '../../contract/index.ts';
import {
  drop,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  refuse,
  rename,
  within,
} from './openai-compatible.ts';

/**
 * Sources: docs.z.ai/api-reference (2026-10), vercel/ai `packages/zai`. Its error codes are numbers:
 * docs.z.ai/api-reference/api-code.
 */
export default openaiCompatible({
  name: 'zai',
  baseUrl: 'https://api.z.ai/api/paas/v4',
  apiKeyEnv: 'ZAI_API_KEY',
  media: ['video_url'],
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop('it has none', 0),
    logit_bias: refuse('no token biases'),
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    presence_penalty: drop('it has none', 0),
    reasoning_effort: emulate('`low`, `high`, `max` from GLM-5.2 on; `none` disables thinking', effort),
    seed: drop(),
    stop: pass('a single string becomes a list', (stop) => (typeof stop === 'string' ? [stop] : stop)),
    temperature: within(0, 1),
    tool_choice: emulate('`auto` only; `none` drops the tools, others are not enforced', choice),
    top_logprobs: drop(),
    user: rename('user_id'),
  },
  extras: ['do_sample', 'request_id', 'thinking', 'tool_stream', 'user_id'],
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  streamUsage: 'always',
  listsModels: false,
  lacks: { 'log probabilities': 'not in its documentation' },
  errors: {
    codes: {
      '1113': 'billing',
      '1211': 'model_not_found',
      '1261': 'context_length',
      '1301': 'content_filter',
      '1302': 'rate_limit',
      '1303': 'rate_limit',
      '1305': 'overloaded',
      '1308': 'billing',
    },
  },
});

function effort(value: unknown, { model, thinking }: ChatRequest) {
  if (value === 'none') return { body: thinking === undefined ? { thinking: { type: 'disabled' } } : {} };
  return /^glm-5\.[2-9]/.test(model)
    ? { body: { reasoning_effort: nearestEffort(value, ['max', 'high', 'low']) } }
    : { dropped: true };
}

function choice(value: unknown) {
  if (value === 'none') return { body: { tools: undefined } };
  return { body: { tool_choice: 'auto' }, dropped: value !== 'auto' };
}
