const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
} as const;
/** Tool name, description, and parameter name. */
const TOOL_WORDS = ['get_weather', 'The weather of a city.', 'city'] as const;
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

export interface Sample {
  readonly value: unknown;
  /** Fields that it requires. */
  readonly beside?: object;
  /** Words of the value that must reach the vendor, at any place. */
  readonly words?: readonly string[];
  /** Other values; at least one must change the request. Numbers and booleans get theirs automatically. */
  readonly others?: readonly unknown[];
}

/** Distinctive value for each field of OpenAI's chat completions. */
export const SAMPLES: Readonly<Record<string, Sample>> = Object.freeze({
  audio: { value: { voice: 'alloy', format: 'mp3' }, words: ['alloy'] },
  frequency_penalty: { value: 0.5 },
  function_call: { value: { name: 'get_weather' }, beside: { functions: [TOOL.function] }, others: ['none'] },
  functions: { value: [TOOL.function], words: TOOL_WORDS },
  logit_bias: { value: { '50256': -100 } },
  logprobs: { value: true },
  max_completion_tokens: { value: 78 },
  max_tokens: { value: 77 },
  metadata: { value: { purpose: 'test' }, words: ['purpose', 'test'] },
  modalities: { value: ['text', 'image'], others: [['text']] },
  moderation: { value: { model: 'omni-moderation-latest' }, words: ['omni-moderation-latest'] },
  n: { value: 2 },
  parallel_tool_calls: { value: false, beside: { tools: [TOOL] } },
  prediction: { value: { type: 'content', content: 'x' } },
  presence_penalty: { value: 0.25 },
  prompt_cache_key: { value: 'cache-1', words: ['cache-1'] },
  prompt_cache_options: { value: { mode: 'implicit' }, others: [{ mode: 'explicit' }] },
  prompt_cache_retention: { value: '24h', others: ['in_memory'] },
  reasoning_effort: { value: 'low', others: ['none', 'minimal', 'high'] },
  response_format: {
    value: { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA, strict: true } },
    words: ['city'],
    others: [{ type: 'json_object' }],
  },
  safety_identifier: { value: 'user-1', words: ['user-1'] },
  seed: { value: 7 },
  service_tier: { value: 'flex', others: ['auto', 'default', 'priority'] },
  stop: { value: ['END'], words: ['END'] },
  store: { value: true },
  temperature: { value: 0.5 },
  tool_choice: { value: 'required', beside: { tools: [TOOL] }, others: ['none', 'auto'] },
  tools: { value: [TOOL], words: TOOL_WORDS },
  top_logprobs: { value: 2, beside: { logprobs: true } },
  top_p: { value: 0.75 },
  user: { value: 'user-1', words: ['user-1'] },
  verbosity: { value: 'low', others: ['medium', 'high'] },
  web_search_options: { value: {} },
});
