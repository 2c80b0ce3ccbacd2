import { deepFreeze } from './deep-freeze.ts';

const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { municipality: { type: 'string' } }, required: ['municipality'] },
  },
} as const;
/** Tool name, description, and parameter name. None of them is a part of another one: each must arrive for itself. */
const TOOL_WORDS = ['get_weather', 'The weather of a city.', 'municipality'] as const;
const SCHEMA = {
  type: 'object',
  properties: { postcode: { type: 'string' } },
  required: ['postcode'],
  additionalProperties: false,
};

export interface Sample {
  readonly value: unknown;
  /** Fields that it requires. */
  readonly requires?: object;
  /** Words of the value that must reach the vendor, at any place. */
  readonly words?: readonly string[];
  /** Places in the value, such as `a.0.b`, that a vendor need not have. Every other place must change the request. */
  readonly free?: readonly string[];
  /** Other values; at least one must change the request. Numbers and booleans get theirs automatically. */
  readonly others?: readonly unknown[];
}

/** Distinctive value for each field of OpenAI's chat completions. */
export const SAMPLES: Readonly<Record<string, Sample>> = deepFreeze({
  audio: { value: { voice: 'alloy', format: 'mp3' }, words: ['alloy'] },
  frequency_penalty: { value: 0.5 },
  function_call: {
    value: { name: 'get_weather' },
    requires: { functions: [TOOL.function] },
    free: ['name'],
    others: ['none'],
  },
  functions: { value: [TOOL.function], words: TOOL_WORDS },
  logit_bias: { value: { '50256': -100 } },
  logprobs: { value: true },
  max_completion_tokens: { value: 78 },
  max_tokens: { value: 77 },
  metadata: { value: { purpose: 'kumquat' }, words: ['purpose', 'kumquat'] },
  modalities: { value: ['text', 'image'], free: ['0'], others: [['text']] },
  moderation: { value: { model: 'omni-moderation-latest' }, words: ['omni-moderation-latest'] },
  n: { value: 2 },
  parallel_tool_calls: { value: false, requires: { tools: [TOOL] } },
  prediction: { value: { type: 'content', content: 'x' }, free: ['type'] },
  presence_penalty: { value: 0.25 },
  prompt_cache_key: { value: 'ocelot-1', words: ['ocelot-1'] },
  prompt_cache_options: { value: { mode: 'implicit' }, others: [{ mode: 'explicit' }] },
  prompt_cache_retention: { value: '24h', others: ['in_memory'] },
  reasoning_effort: { value: 'low', others: ['none', 'minimal', 'high'] },
  response_format: {
    value: { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA, strict: true } },
    words: ['postcode'],
    free: ['type', 'json_schema.name', 'json_schema.strict'],
    others: [{ type: 'json_object' }],
  },
  safety_identifier: { value: 'pangolin-1', words: ['pangolin-1'] },
  seed: { value: 7 },
  service_tier: { value: 'flex', others: ['auto', 'default', 'priority'] },
  stop: { value: ['ZYGOTE'], words: ['ZYGOTE'] },
  store: { value: true },
  temperature: { value: 0.5 },
  tool_choice: { value: 'required', requires: { tools: [TOOL] }, others: ['none', 'auto'] },
  tools: { value: [TOOL], words: TOOL_WORDS, free: ['0.type'] },
  top_logprobs: { value: 2, requires: { logprobs: true } },
  top_p: { value: 0.75 },
  user: { value: 'quokka-1', words: ['quokka-1'] },
  verbosity: { value: 'low', others: ['medium', 'high'] },
  web_search_options: { value: {} },
});
