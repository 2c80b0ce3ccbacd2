import type { ChatRequest } from '../../../contract/index.ts';
import { type Effort, nearestEffort } from '../kit/index.ts';
import { drop, emulate, PRICED_CACHE, RESPONSES_API, refuse, rename } from './tables.ts';
import type { CompatibleRules, Emulation, Variant } from './types.ts';

/**
 * Capabilities of OpenAI's models, also on Azure. Source: vercel/ai `openai-model-catalog.ts` (2026-11), OpenAI's
 * chat completions reference.
 */
const REASONING = /^(ft:)?(o[134](?!\d)|gpt-5(\.[1-6])?(?![.\d]|-chat)|gpt-6(\.[12])?-(astra|luna|sol|terra))/;
const NEVER_REASONING = /^(ft:)?(gpt-([34]|5(\.\d)?-chat|audio)|chatgpt-4)/;
/** Models of later families: only their support for a reasoning effort is known. */
const LATER = /^(ft:)?(o\d|gpt-\d)/;
/** Models that accept sampling parameters with `reasoning_effort: none`. */
const EFFORT_NONE = /^(ft:)?gpt-(5\.[1-6]|6-sol|6-luna|6\.1-terra)/;

/**
 * Wire of each model. Sources: `ModelIdsResponses` of github.com/openai/openai-openapi (models that only Responses
 * has), OpenAI's deployment checklist, https://developers.openai.com/api/docs/guides/deployment-checklist (tools),
 * and its guide to deep research.
 */
const ONLY_RESPONSES =
  /^(codex-|computer-use-|(ft:)?(gpt-|o\d).*-(pro|codex|cyber|deep-research)(?![a-z])|gpt-daybreak-)/;
const DEEP_RESEARCH = /^o\d.*-deep-research/;
/** Models that support function tools in chat completions only without reasoning, or not at all. */
const TOOLS_WITHOUT_REASONING = /^(ft:)?(gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)|o[5-9])/;
/** Models without the effort `max` in chat completions. */
const MAX_ON_RESPONSES = /^(ft:)?gpt-([6-9]|\d\d)/;

/** Efforts by model, lowest first; the first match wins. */
const EFFORTS: readonly (readonly [model: RegExp, efforts: readonly Effort[]])[] = Object.freeze([
  [/^gpt-5-pro/, ['high']],
  [/^gpt-5\.\d+-pro/, ['medium', 'high', 'xhigh']],
  [/^gpt-5(\.1)?-codex(?!-max)/, ['low', 'medium', 'high']],
  [/^gpt-5.*-codex/, ['low', 'medium', 'high', 'xhigh']],
  [DEEP_RESEARCH, ['medium']],
  [/^(ft:)?gpt-5\.6/, ['none', 'low', 'medium', 'high', 'xhigh', 'max']],
  [/^(ft:)?gpt-5\.[2-5]/, ['none', 'low', 'medium', 'high', 'xhigh']],
  [/^(ft:)?gpt-5\.1/, ['none', 'low', 'medium', 'high']],
  [/^(ft:)?gpt-5(?!\.)/, ['minimal', 'low', 'medium', 'high']],
  [/^(ft:)?gpt-(6-sol|6-luna|6\.1-terra)/, ['none', 'low', 'medium', 'high', 'xhigh', 'max']],
  [/^(ft:)?gpt-6(\.[12])?-(astra|luna|sol|terra)/, ['low', 'medium', 'high', 'xhigh', 'max']],
  [/./, ['low', 'medium', 'high']],
]);

function effort(value: unknown, { model }: ChatRequest): Emulation {
  const [, taken = []] = EFFORTS.find(([pattern]) => pattern.test(model)) ?? [];
  return { body: { reasoning_effort: nearestEffort(value, taken) } };
}

const LENGTH: CompatibleRules = {
  max_tokens: rename('max_completion_tokens'),
  prompt_cache_options: PRICED_CACHE,
  reasoning_effort: emulate('nearest effort that the model supports', effort),
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

const RESPONSES: CompatibleRules = {
  ...NO_SAMPLING,
  ...RESPONSES_API,
  reasoning_effort: emulate('as `reasoning.effort`: nearest effort that the model supports', effort),
};

/** Rules for an unknown model. */
const NARROWEST: CompatibleRules = {
  ...NO_SAMPLING,
  n: refuse('it is unknown whether the model returns more than one response', 1),
  prediction: drop('it affects latency only'),
  prompt_cache_options: drop('it affects latency only'),
  prompt_cache_retention: drop('it affects latency only'),
  stop: drop(),
  verbosity: drop(undefined, 'medium'),
};

const NO_TOOLS = emulate('replaced by the vendor’s own search, since deep research does not call functions', () => ({
  dropped: true,
}));

/** Returns true for function tools in the newer form or the old one. */
function hasTools({ tools, functions }: ChatRequest): boolean {
  return [tools, functions].some((list) => Array.isArray(list) && list.length > 0);
}

/**
 * Returns true if a request needs a feature that chat completions lack: reasoning with function tools, or the highest
 * effort.
 */
function needsResponses(request: ChatRequest): boolean {
  const isGreatest = request.reasoning_effort === 'max' && MAX_ON_RESPONSES.test(request.model);
  return isGreatest || (hasTools(request) && !isChatEnough(request));
}

/**
 * Returns true if chat completions suffice for function tools: the caller disables reasoning, or leaves it unset and
 * requests several choices.
 */
function isChatEnough({ model, reasoning_effort: wanted, n }: ChatRequest): boolean {
  if (!EFFORT_NONE.test(model)) return false;
  return wanted === 'none' || ((wanted ?? undefined) === undefined && (n ?? 1) > 1);
}

const NOW = { type: 'function', function: { name: 'now' } } as const;

export const OPENAI_MODELS: readonly Variant[] = Object.freeze([
  {
    when: 'deep research, by the Responses API',
    wire: 'responses',
    models: DEEP_RESEARCH,
    example: { model: 'o3-deep-research' },
    roles: { system: 'developer' },
    // The vendor rejects these models without a data source.
    defaults: { tools: [{ type: 'web_search_preview' }] },
    fields: { ...RESPONSES, tools: NO_TOOLS, tool_choice: NO_TOOLS, parallel_tool_calls: NO_TOOLS },
  },
  {
    when: 'models available only by the Responses API: `*-codex`, `*-pro`, `gpt-5.6-cyber`, `gpt-daybreak-*`',
    wire: 'responses',
    models: ONLY_RESPONSES,
    example: { model: 'gpt-5.3-codex' },
    roles: { system: 'developer' },
    fields: RESPONSES,
  },
  {
    when: '`gpt-5.4` and later with function tools, except for the next row, and `gpt-6` and later with `reasoning_effort: "max"`, by the Responses API',
    wire: 'responses',
    models: TOOLS_WITHOUT_REASONING,
    applies: needsResponses,
    example: { model: 'gpt-6-sol', reasoning_effort: 'low', tools: [NOW] },
    roles: { system: 'developer' },
    fields: RESPONSES,
  },
  {
    when: 'the same with `reasoning_effort: "none"` if the model supports it, or with `n` and no effort: chat completions support function tools without reasoning',
    models: TOOLS_WITHOUT_REASONING,
    applies: hasTools,
    example: { model: 'gpt-5.6-sol', reasoning_effort: 'none', tools: [NOW] },
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
    models: EFFORT_NONE,
    applies: ({ reasoning_effort }) => reasoning_effort === 'none',
    example: { model: 'gpt-5.2', reasoning_effort: 'none' },
    roles: { system: 'developer' },
    fields: { ...LENGTH, ...NO_PENALTIES },
  },
  {
    when: '`o3`, `o4-mini`, `gpt-6-astra`',
    models: /^(ft:)?(o3|o4-mini|gpt-6-astra)/,
    example: { model: 'o4-mini' },
    roles: { system: 'developer' },
    fields: { ...NO_SAMPLING, stop: drop() },
  },
  {
    when: 'reasoning models: `o*`, `gpt-5` and later, but `gpt-5-chat`',
    models: REASONING,
    example: { model: 'gpt-5-mini' },
    roles: { system: 'developer' },
    fields: NO_SAMPLING,
  },
  {
    when: '`*-search-preview`',
    models: /-search-preview/,
    example: { model: 'gpt-4o-search-preview' },
    fields: { temperature: drop(undefined, 1), reasoning_effort: drop(undefined, 'none') },
  },
  {
    when: 'models that do not reason: `gpt-3*`, `gpt-4*`, `gpt-5-chat`',
    models: NEVER_REASONING,
    example: { model: 'gpt-4o' },
    fields: { reasoning_effort: drop(undefined, 'none') },
  },
  {
    when: 'unknown newer models of the families `gpt-*` and `o*`: a restricted request',
    models: LATER,
    example: { model: 'gpt-9-new' },
    fields: NARROWEST,
  },
  {
    when: 'any other model, and deployments without a configured model',
    example: { model: 'a-new-model' },
    fields: { ...NARROWEST, reasoning_effort: drop(undefined, 'none') },
  },
] satisfies readonly Variant[]);
