import type { ChatRequest, JsonObject } from '../../contract/index.ts';
import {
  drop,
  type Effort,
  emulate,
  nearestEffort,
  OPENAI_ONLY,
  openaiCompatible,
  pass,
  RESPONSES_API,
  refuse,
  rename,
  within,
} from './openai-compatible.ts';

const NO_REASONING = /^grok-4\.20(-\d{4})?-non-reasoning/;
const MULTI_AGENT = /^grok-[\d.]+-multi-agent/;
const FIXED_REASONING = /^grok-4\.20(-\d{4})?-(non-)?reasoning/;

/**
 * Sources: docs.x.ai (2026), vercel/ai `packages/xai` 4.0. Chat completions are xAI's older interface, which remains
 * supported.
 */
export default openaiCompatible({
  name: 'xai',
  operations: ['images'],
  images: { write: imageFields, edits: 'json' },
  baseUrl: 'https://api.x.ai/v1',
  apiKeyEnv: 'XAI_API_KEY',
  fields: {
    ...OPENAI_ONLY,
    frequency_penalty: drop('not for reasoning models', 0),
    logit_bias: refuse('no token biases'),
    max_tokens: rename('max_completion_tokens'),
    parallel_tool_calls: rename('parallel_function_calling'),
    presence_penalty: drop('not for reasoning models', 0),
    reasoning_effort: emulate('nearest effort that the model supports', effort),
    service_tier: pass('`default` or `priority`; others are dropped', (tier) =>
      tier === 'default' || tier === 'priority' ? tier : undefined,
    ),
    stop: drop('not for reasoning models'),
    top_logprobs: within(0, 8),
  },
  variants: [
    {
      when: '`grok-4.20-multi-agent`, which only the Responses API has',
      wire: 'responses',
      models: MULTI_AGENT,
      example: { model: 'grok-4.20-multi-agent' },
      fields: { ...RESPONSES_API, parallel_tool_calls: pass() },
    },
    {
      when: '`grok-4.20-non-reasoning`',
      models: NO_REASONING,
      example: { model: 'grok-4.20-non-reasoning' },
      fields: { frequency_penalty: pass(), presence_penalty: pass(), stop: pass(), reasoning_effort: drop() },
    },
    {
      when: '`grok-4.20-reasoning`',
      models: FIXED_REASONING,
      example: { model: 'grok-4.20-reasoning' },
      fields: { reasoning_effort: drop('rejected for every value') },
    },
  ],
  responsesPath: () => '/responses',
  extras: ['parallel_function_calling', 'search_parameters'],
  // Chat completions are not stored, responses are by default:
  // https://docs.x.ai/developers/model-capabilities/text/comparison
  effects: {
    deferred: [{ does: 'stores', note: 'the vendor stores the response for a day' }],
    search_parameters: [{ does: 'tool', name: 'web_search' }],
  },
  roles: { developer: 'system' },
  reasoningTokens: 'outside',
  // A dollar is 10^10 ticks.
  usageCost: ({ cost_in_usd_ticks: ticks }) => (typeof ticks === 'number' ? ticks / 1e10 : undefined),
  repeatsReasoning: true,
  listsSources: true,
  errors: {
    codes: { 'the service is currently unavailable': 'overloaded' },
    // An invalid key is a 400 without a code, an empty account a 403 or 429.
    messages: [
      { status: [400], text: /^Incorrect API key provided/, is: 'authentication' },
      { status: [403, 429], text: /\bcredits\b|spending limit/, is: 'billing' },
    ],
  },
});

/** Efforts by model, lowest first. */
const EFFORTS: readonly { readonly model: RegExp; readonly efforts: readonly Effort[] }[] = [
  { model: /^grok-4\.3/, efforts: ['none', 'low', 'medium', 'high'] },
  { model: /^grok-4\.5/, efforts: ['low', 'medium', 'high'] },
  { model: /^grok-(4\.[67]|4\.20|latest|build)/, efforts: ['low', 'medium', 'high', 'xhigh'] },
  { model: /^/, efforts: ['low', 'medium', 'high'] },
];

function effort(value: unknown, { model }: ChatRequest) {
  const { efforts = [] } = EFFORTS.find((row) => row.model.test(model)) ?? {};
  const nearest = nearestEffort(value, efforts);
  return { body: { reasoning_effort: nearest }, dropped: value === 'none' && nearest !== 'none' };
}

const RATIOS = Object.freeze(['1:1', '16:9', '9:16', '4:3', '3:4', '3:2', '2:3', '2:1', '1:2']);

/** It supports aspect ratios, not sizes. Source: https://docs.x.ai/developers/model-capabilities/images/generation */
function imageFields({ prompt, n, response_format, size, ...others }: JsonObject) {
  const ratio = typeof size === 'string' ? ratioOf(size) : undefined;
  const isLost = size !== undefined && size !== 'auto' && ratio === undefined;
  return {
    body: { prompt, n, response_format, ...(ratio !== undefined && { aspect_ratio: ratio }) },
    dropped: [...(isLost ? ['size'] : []), ...Object.keys(others)],
  };
}

function ratioOf(size: string): string | undefined {
  const [width = 0, height = 0] = size.split('x').map(Number);
  return RATIOS.find((ratio) => {
    const [across = 1, down = 1] = ratio.split(':').map(Number);
    return width > 0 && width * down === height * across;
  });
}
