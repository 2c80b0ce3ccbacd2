import type { ChatRequest } from '../../../core/index.ts';
import { type Effort, nearestEffort } from '../kit/index.ts';
import { type CompatibleRules, drop, type Emulation, emulate, rename } from './rules.ts';
import type { Variant } from './spec.ts';

/**
 * What OpenAI's models take and what they refuse; Azure serves the same ones.
 * Source: vercel/ai `openai-model-catalog.ts` (2026-11), OpenAI's chat completions reference.
 */
const REASONING = /^(ft:)?(o\d|gpt-([5-9]|\d\d))/;
const NOT_REASONING = /^(ft:)?gpt-5-chat/;
const NEVER_REASONING = /^(ft:)?(gpt-[34]|chatgpt-4|gpt-5-chat)/;
/** These take sampling parameters while `reasoning_effort` is `none`. */
const EFFORT_NONE = /^(ft:)?gpt-(5\.[1-6]|6-sol|6-luna|6\.1-terra)/;
const TOOLS_WITHOUT_REASONING = /^(ft:)?gpt-5\.6/;

/** Efforts by model, from little to much; the first row that matches. */
const EFFORTS: readonly (readonly [model: RegExp, efforts: readonly Effort[]])[] = Object.freeze([
  [/^(ft:)?gpt-5\.6/, ['none', 'low', 'medium', 'high', 'xhigh', 'max']],
  [/^(ft:)?gpt-5\.[2-5]/, ['none', 'low', 'medium', 'high', 'xhigh']],
  [/^(ft:)?gpt-5\.1/, ['none', 'low', 'medium', 'high']],
  [/^(ft:)?gpt-5(?!\.)/, ['minimal', 'low', 'medium', 'high']],
  [/^(ft:)?gpt-(6-sol|6-luna|6\.1-terra)/, ['none', 'low', 'medium', 'high', 'xhigh', 'max']],
  [/^(ft:)?gpt-/, ['low', 'medium', 'high', 'xhigh', 'max']],
  [/./, ['low', 'medium', 'high']],
]);

function effort(value: unknown, { model }: ChatRequest): Emulation {
  const [, taken = []] = EFFORTS.find(([pattern]) => pattern.test(model)) ?? [];
  return { body: { reasoning_effort: nearestEffort(value, taken) } };
}

const LENGTH: CompatibleRules = {
  max_tokens: rename('max_completion_tokens'),
  reasoning_effort: emulate('the nearest effort that the model takes', effort),
};
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
    applies: ({ model }) => /^(ft:)?(o3|o4-mini)/.test(model),
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
    fields: { temperature: drop(undefined, 1), reasoning_effort: drop(undefined, 'none') },
  },
  {
    when: 'models that do not reason: `gpt-3*`, `gpt-4*`, `gpt-5-chat`',
    applies: ({ model }) => NEVER_REASONING.test(model),
    example: { model: 'gpt-4o' },
    fields: { reasoning_effort: drop(undefined, 'none') },
  },
] satisfies readonly Variant[]);
