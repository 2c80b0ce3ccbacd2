import type { ChatRequest, FailureClass, FinishReason, ProviderEffects } from '../../../contract/index.ts';
import { MIN_OUTPUT_TOKENS, pricedCache } from '../openai-responses/tables.ts';
import type { CompatibleRule, CompatibleRules, Emulation } from './types.ts';

/** Sends a field unchanged, or converted; undefined from `convert` omits it. */
export function pass(note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'passed', ...(note && { note }), ...(convert && { convert }) };
}

/** Sends a field unchanged; a number outside the range is rejected. */
export function within(min: number, max: number, note?: string): CompatibleRule {
  return { rule: 'passed', min, max, ...(note && { note }) };
}

/** Sends a field under another name. If the caller also set that name, the caller's value wins. */
export function rename(to: string, note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'renamed', to, ...(note && { note }), ...(convert && { convert }) };
}

/** Drops and reports a field, except with a neutral value. */
export function drop(note?: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'dropped', ...(note && { note }), ...(neutral.length > 0 && { neutral }) };
}

/** Rejects a field with 400, except with a neutral value. */
export function refuse(note: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'refused', note, ...(neutral.length > 0 && { neutral }) };
}

/** Replaces a field by an equivalent, which the note describes. */
export function emulate(
  note: string,
  apply: (value: unknown, request: ChatRequest) => Emulation = () => ({}),
): CompatibleRule {
  return { rule: 'emulated', note, apply };
}

/** Converts values by a table; unknown values stay unchanged. */
export function mapped(table: Readonly<Record<string, unknown>>): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' && Object.hasOwn(table, value) ? table[value] : value);
}

/** A longer cache lifetime would be charged at an unknown price. */
export const PRICED_CACHE: CompatibleRule = emulate(
  'only with the `ttl` `30m`: other prices are not published',
  (value) => ({ body: { prompt_cache_options: pricedCache(value) }, dropped: pricedCache(value) !== value }),
);

/** Fields that only OpenAI has: hints are dropped, fields that would change the response are rejected. */
export const OPENAI_ONLY: CompatibleRules = Object.freeze({
  audio: refuse('no audio output'),
  metadata: drop(),
  modalities: refuse('text only', ['text']),
  moderation: drop(),
  prediction: drop('it affects latency only'),
  prompt_cache_key: drop('it affects latency only'),
  prompt_cache_options: drop('it affects latency only'),
  prompt_cache_retention: drop('it affects latency only'),
  safety_identifier: drop(),
  service_tier: drop(undefined, 'auto', 'default'),
  store: drop(undefined, false),
  verbosity: drop(undefined, 'medium'),
  web_search_options: refuse('no web search'),
});

/** Sends `store: false`, whatever the caller sent. */
export const KEEP_NOTHING: CompatibleRule = emulate(
  'always `false`; the option `store` lets callers choose',
  (value) => ({ body: { store: false }, dropped: value !== false }),
);

/**
 * Matches tools that a vendor runs: every type except those that callers run, in chat completions and in the
 * Responses API.
 */
const VENDORS_TOOL = /^(?!(?:function|custom|namespace|local_shell|shell|apply_patch|tool_search)$)/;

const SEARCH = { does: 'tool', name: 'web_search' } as const;

/**
 * Effects of OpenAI's chat completions fields at vendors that support them. Source: `CreateChatCompletionRequest` of
 * github.com/openai/openai-openapi.
 */
export const CHAT_EFFECTS: ProviderEffects = Object.freeze({
  service_tier: [{ does: 'price', note: 'only tiers with a known price are sent' }],
  store: [{ does: 'stores', values: /^true$/ }],
  tools: [
    {
      does: 'tool',
      at: '[].type',
      values: VENDORS_TOOL,
      note: 'every tool except functions and others that callers run',
    },
    { does: 'tool', at: '[].tools.[].type', values: VENDORS_TOOL, note: 'the same within a namespace' },
    { does: 'tool', name: 'shell', at: '[].environment.type', values: /^(?!local$)/ },
  ],
  web_search_options: [SEARCH],
});

/** Additional effects of OpenAI's models, also on Azure. Source: https://platform.openai.com/docs/models */
export const OPENAI_EFFECTS: ProviderEffects = Object.freeze({
  model: [
    { ...SEARCH, values: /-search(?:-|$)/, note: 'models that search in every call' },
    {
      does: 'tool',
      name: 'web_search_preview',
      values: /-deep-research/,
      note: 'deep research searches in every call',
    },
  ],
  service_tier: [{ does: 'price', note: 'only tiers with a known price are sent' }],
  store: [{ does: 'stores', values: /^true$/ }],
  web_search_options: [SEARCH],
});

/**
 * Effects of a request at OpenRouter, and at relays with the same fields. Excludes free plugins that call no other
 * model. Source: `ChatRequest` and `*Plugin` of OpenRouter's OpenAPI document,
 * https://openrouter.ai/docs/guides/features/presets.
 */
export const RELAY_EFFECTS: ProviderEffects = Object.freeze({
  model: [
    { ...SEARCH, values: /:online(?:$|[:@])/ },
    { does: 'tool', name: 'preset', values: /@preset\// },
  ],
  models: [{ does: 'model', at: '[]' }],
  plugins: [
    { ...SEARCH, at: '[].id', values: /^web$/ },
    { does: 'tool', at: '[].id', values: /^(?!(?:web|response-healing|context-compression|moderation)$)/ },
  ],
  preset: [
    { does: 'tool', name: 'preset', note: 'tools, models and texts of the operator’s account' },
    { does: 'model', name: '*' },
  ],
  provider: [{ does: 'residency', note: 'provider of the model, and data retention' }],
});

/**
 * Fields of other vendors, in any of their formats, that a relay or another company's server may know. Each has the
 * effect it has at its vendor. Source: `test/fixtures/effects`.
 */
export const OTHERS_EFFECTS: ProviderEffects = Object.freeze({
  ...Object.fromEntries(
    [
      'enable_search',
      'exclude_domains',
      'google_search',
      'include_domains',
      'search_parameters',
      'search_settings',
    ].map((field) => [field, [SEARCH]]),
  ),
  ...Object.fromEntries(
    [
      ...['background', 'cachedContent', 'cached_content', 'container', 'conversation', 'deferred'],
      ...['previous_response_id', 'thread', 'user_profile_id', 'workspace_id'],
    ].map((field) => [field, [{ does: 'stores' as const, note: 'data stored in the operator’s account' }]]),
  ),
  agent_id: [{ does: 'model', name: '*', note: 'an agent of the operator’s account' }],
  ...Object.fromEntries(
    ['chat_template', 'kv_transfer_params', 'modelArmorConfig', 'vllm_xargs'].map((name) => [
      name,
      [{ does: 'tool' as const, name }],
    ]),
  ),
  compound_custom: [{ does: 'tool', name: 'compound' }],
  data_sources: [{ does: 'tool', name: 'data_sources' }],
  draft_model: [{ does: 'model' }],
  integrations: [{ does: 'tool', name: 'mcp' }],
  mcp_servers: [{ does: 'tool', name: 'mcp' }],
  prompt: [{ does: 'model', name: '*', note: 'a prompt of the operator’s account' }],
  route: [{ does: 'model', name: '*', values: /^fallback$/ }],
  safety_model: [{ does: 'model' }],
});

const OUTPUT_TOKENS = rename('max_output_tokens', `at least ${MIN_OUTPUT_TOKENS}`, (value) =>
  typeof value === 'number' ? Math.max(value, MIN_OUTPUT_TOKENS) : value,
);

/**
 * For variants of the wire `responses`: fields that differ between OpenAI's Responses API and chat completions, or
 * that it lacks.
 */
export const RESPONSES_API: CompatibleRules = Object.freeze({
  audio: refuse('the Responses API has no audio'),
  frequency_penalty: drop('the Responses API has none', 0),
  logit_bias: drop('the Responses API has none'),
  logprobs: drop(undefined, false),
  max_completion_tokens: OUTPUT_TOKENS,
  max_tokens: OUTPUT_TOKENS,
  modalities: refuse('the Responses API has text only', ['text']),
  n: refuse('the Responses API, which the request needs, returns one response', 1),
  prediction: drop('it affects latency only'),
  presence_penalty: drop('the Responses API has none', 0),
  response_format: emulate('as `text.format`', (value) => ({ body: { response_format: value } })),
  seed: drop('the Responses API has none'),
  stop: drop('the Responses API has none'),
  store: emulate('always `false`', (value) => ({ dropped: value !== false })),
  top_logprobs: drop(),
  verbosity: emulate('as `text.verbosity`', (value) => ({ body: { verbosity: value } })),
  web_search_options: refuse('only other models have the search of chat completions'),
});

/**
 * OpenAI's chat fields, except those with their own code (`model`, `messages`, `stream`, `stream_options`).
 * `dialect_fields` is for other formats.
 */
export const CHAT_FIELDS: ReadonlySet<string> = new Set(
  `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
  modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning_effort response_format safety_identifier seed service_tier stop store temperature tool_choice tools
  top_logprobs top_p user verbosity web_search_options`.split(/\s+/),
);

/** Body fields that control routing in other gateways and SDKs. Callers never choose host, key or headers here. */
export const ROUTING_FIELDS: ReadonlySet<string> = new Set(
  `api_base api_key api_type api_version base_url custom_llm_provider default_headers deployment_id extra_body
  extra_headers extra_query fallbacks headers organization project provider timeout`.split(/\s+/),
);

type Meaning = FinishReason | { readonly failure: FailureClass };

const BROKEN_OFF: Meaning = Object.freeze({ failure: 'broken_off' });

/**
 * Finish reasons seen on this wire, in lower case: of OpenAI, vLLM, SGLang, TGI, llama.cpp, Ollama, Z.ai
 * (https://docs.z.ai/api-reference/llm/chat-completion), Cohere, DeepSeek, Mistral and relays. Those that mean a
 * failure are errors. After an unknown reason, the response is kept as incomplete.
 */
export const FINISH_REASON = Object.freeze<Record<string, Meaning>>({
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  stop_string: 'stop',
  complete: 'stop',
  completed: 'stop',
  done: 'stop',
  end: 'stop',
  end_of_text: 'stop',
  end_of_turn: 'stop',
  eog: 'stop',
  eot: 'stop',
  finish: 'stop',
  finished: 'stop',
  stop_token: 'stop',
  word: 'stop',
  normal: 'stop',
  load: 'stop',
  unload: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  limit: 'length',
  max_length: 'length',
  max_new_tokens: 'length',
  context_length: 'length',
  context_length_exceeded: 'length',
  repetition: 'length',
  error_limit: 'length',
  pause_turn: 'length',
  compaction: 'length',
  continuation: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'function_call',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  safety: 'content_filter',
  refusal: 'content_filter',
  sensitive: 'content_filter',
  error_toxic: 'content_filter',
  guardrail_intervened: 'content_filter',
  recitation: 'content_filter',
  prohibited_content: 'content_filter',
  blocklist: 'content_filter',
  spii: 'content_filter',
  language: 'content_filter',
  error: BROKEN_OFF,
  abort: BROKEN_OFF,
  cancelled: BROKEN_OFF,
  user_cancel: BROKEN_OFF,
  network_error: BROKEN_OFF,
  timeout: { failure: 'timeout' },
  insufficient_system_resource: { failure: 'overloaded' },
});

/** Reasons without an exact equivalent at OpenAI that another format's clients know: Anthropic's, then Google's. */
const EXACT_ENDS: ReadonlySet<string> = new Set([
  ...['pause_turn', 'model_context_window_exceeded', 'compaction', 'refusal'],
  ...['continuation', 'recitation', 'prohibited_content', 'blocklist', 'spii', 'language'],
]);

/** Reasons that are no more exact than OpenAI's equivalent. */
export const USUAL_ENDS: ReadonlySet<string> = new Set(
  Object.keys(FINISH_REASON).filter((reason) => !EXACT_ENDS.has(reason)),
);
