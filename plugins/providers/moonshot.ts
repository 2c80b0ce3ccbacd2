import type { ChatRequest } from '../../contract/index.ts';
import { withThinking } from '../formats/openai-chat/messages.ts';
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

const FIXED = 'fixed by the model';

/** Sources: platform.kimi.ai/docs (2026-11), vercel/ai `packages/moonshotai`. */
export default openaiCompatible({
  name: 'moonshot',
  baseUrl: 'https://api.moonshot.ai/v1',
  apiKeyEnv: 'MOONSHOT_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop(FIXED, 0),
    logit_bias: refuse('no token biases'),
    max_tokens: rename('max_completion_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    prediction: pass(),
    presence_penalty: drop(FIXED, 0),
    prompt_cache_key: pass(),
    reasoning_effort: emulate('`low`, `high`, `max` for K3; `none` disables thinking in K2.5 and K2.6', effort),
    safety_identifier: pass(),
    seed: drop(),
    temperature: drop(FIXED, 1),
    tool_choice: emulate('`required` becomes `auto` for K2', choice),
    top_p: drop(FIXED, 1),
    user: drop(),
  },
  variants: [
    {
      when: '`moonshot-v1`',
      models: /^moonshot-v1/,
      example: { model: 'moonshot-v1-128k' },
      fields: {
        ...Object.fromEntries(['frequency_penalty', 'n', 'presence_penalty', 'top_p'].map((name) => [name, pass()])),
        temperature: within(0, 1),
      },
    },
  ],
  extras: ['thinking'],
  errors: { codes: { engine_overloaded_error: 'overloaded', exceeded_current_quota_error: 'billing' } },
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  messages: (messages, { model }) => (model.startsWith('kimi-') ? withThinking(messages) : messages),
});

function effort(value: unknown, { model, thinking }: ChatRequest) {
  if (/^kimi-k(?!2)\d/.test(model)) return { body: { reasoning_effort: nearestEffort(value, ['max', 'high', 'low']) } };
  if (value !== 'none') return { dropped: true };
  if (!/^kimi-k2\.[56]/.test(model)) return { dropped: model.startsWith('kimi-') };
  return { body: thinking === undefined ? { thinking: { type: 'disabled' } } : {} };
}

function choice(value: unknown, { model }: ChatRequest) {
  return value === 'required' && /^kimi-k2/.test(model)
    ? { body: { tool_choice: 'auto' }, dropped: true }
    : { body: { tool_choice: value } };
}
