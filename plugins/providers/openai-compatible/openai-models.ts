import type { ChatRequest } from '../../../core/index.ts';
import { type CompatibleRules, drop, emulate, rename } from './rules.ts';
import type { Variant } from './spec.ts';

/**
 * What OpenAI's models take and what they refuse; Azure serves the same ones.
 * Source: vercel/ai `openai-model-catalog.ts` (2026-11), OpenAI's chat completions reference.
 */
const REASONING = /^(o\d|gpt-([5-9]|\d\d))/;
const NOT_REASONING = /^gpt-5-chat/;
/** These take sampling parameters while `reasoning_effort` is `none`. */
const EFFORT_NONE = /^gpt-(5\.[1-6]|6-sol|6-luna|6\.1-terra)/;
const TOOLS_WITHOUT_REASONING = /^gpt-5\.6/;

const LENGTH: CompatibleRules = { max_tokens: rename('max_completion_tokens') };
const NO_PENALTIES: CompatibleRules = {
  frequency_penalty: drop(undefined, 0),
  presence_penalty: drop(undefined, 0),
  logit_bias: drop(),
};
const NO_SAMPLING: CompatibleRules = {
  ...LENGTH,
  ...NO_PENALTIES,
  temperature: drop('always 1', 1),
  top_p: drop('always 1', 1),
  logprobs: drop(undefined, false),
  top_logprobs: drop(),
};

function reasons({ model }: ChatRequest): boolean {
  return REASONING.test(model) && !NOT_REASONING.test(model);
}

export const OPENAI_MODELS: readonly Variant[] = Object.freeze([
  {
    when: '`gpt-5.6` with function tools: they exclude reasoning in chat completions',
    applies: ({ model, tools }) => TOOLS_WITHOUT_REASONING.test(model) && (tools?.length ?? 0) > 0,
    example: { model: 'gpt-5.6-sol', tools: [{ type: 'function', function: { name: 'now' } }] },
    roles: { system: 'developer' },
    defaults: { reasoning_effort: 'none' },
    fields: {
      ...LENGTH,
      ...NO_PENALTIES,
      reasoning_effort: emulate('always `none`', (value) => ({
        body: { reasoning_effort: 'none' },
        dropped: value !== 'none',
      })),
    },
  },
  {
    when: '`gpt-5.1` to `gpt-5.6`, `gpt-6-sol`, `gpt-6-luna`, `gpt-6.1-terra` with `reasoning_effort: "none"`',
    applies: ({ model, reasoning_effort }) => reasoning_effort === 'none' && EFFORT_NONE.test(model),
    example: { model: 'gpt-5.2', reasoning_effort: 'none' },
    roles: { system: 'developer' },
    fields: { ...LENGTH, ...NO_PENALTIES },
  },
  {
    when: '`o3`, `o4-mini`',
    applies: ({ model }) => /^(o3|o4-mini)/.test(model),
    example: { model: 'o4-mini' },
    roles: { system: 'developer' },
    fields: { ...NO_SAMPLING, stop: drop() },
  },
  {
    when: 'reasoning models: `o*`, `gpt-5` and later, but `gpt-5-chat`',
    applies: reasons,
    example: { model: 'gpt-5-mini' },
    roles: { system: 'developer' },
    fields: NO_SAMPLING,
  },
  {
    when: '`*-search-preview`',
    applies: ({ model }) => model.includes('-search-preview'),
    example: { model: 'gpt-4o-search-preview' },
    fields: { temperature: drop(undefined, 1) },
  },
] satisfies readonly Variant[]);
