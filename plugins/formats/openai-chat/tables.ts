import type { ChatRequest, FailureClass, FinishReason } from '../../../core/index.ts';
import { MIN_OUTPUT_TOKENS } from '../openai-responses/tables.ts';
import type { CompatibleRule, CompatibleRules, Emulation } from './types.ts';

/** Sent as it is, or converted; undefined from `convert` leaves it out. */
export function pass(note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'passed', ...(note && { note }), ...(convert && { convert }) };
}

/** Sent as it is; a number outside the range is refused. */
export function within(min: number, max: number, note?: string): CompatibleRule {
  return { rule: 'passed', min, max, ...(note && { note }) };
}

/** Sent under another name. When the caller also gave that name itself, the caller's own wins. */
export function rename(to: string, note?: string, convert?: (value: unknown) => unknown): CompatibleRule {
  return { rule: 'renamed', to, ...(note && { note }), ...(convert && { convert }) };
}

/** Left out and told, except when it has a value that asks for nothing anyway. */
export function drop(note?: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'dropped', ...(note && { note }), ...(neutral.length > 0 && { neutral }) };
}

/** Refused with 400, except for a value that asks for nothing anyway. */
export function refuse(note: string, ...neutral: readonly unknown[]): CompatibleRule {
  return { rule: 'refused', note, ...(neutral.length > 0 && { neutral }) };
}

/** Replaced by something that comes to the same; the note says by what. */
export function emulate(
  note: string,
  apply: (value: unknown, request: ChatRequest) => Emulation = () => ({}),
): CompatibleRule {
  return { rule: 'emulated', note, apply };
}

/** A conversion that looks values up and keeps those the table does not have. */
export function mapped(table: Readonly<Record<string, unknown>>): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' && Object.hasOwn(table, value) ? table[value] : value);
}

/** Fields that only OpenAI has: hints are left out, what would change the response is refused. */
export const OPENAI_ONLY: CompatibleRules = Object.freeze({
  audio: refuse('no audio output'),
  metadata: drop(),
  modalities: refuse('text only', ['text']),
  moderation: drop(),
  prediction: drop('it would only save time'),
  prompt_cache_key: drop('it would only save time'),
  prompt_cache_options: drop('it would only save time'),
  prompt_cache_retention: drop('it would only save time'),
  safety_identifier: drop(),
  service_tier: drop(undefined, 'auto', 'default'),
  store: drop(undefined, false),
  verbosity: drop(undefined, 'medium'),
  web_search_options: refuse('no web search'),
});

const OUTPUT_TOKENS = rename('max_output_tokens', `${MIN_OUTPUT_TOKENS} at least`, (value) =>
  typeof value === 'number' ? Math.max(value, MIN_OUTPUT_TOKENS) : value,
);

/** For variants of the wire `responses`: what OpenAI's Responses API has otherwise than chat completions, or not at all. */
export const RESPONSES_API: CompatibleRules = Object.freeze({
  audio: refuse('the Responses API has no audio'),
  frequency_penalty: drop('the Responses API has none', 0),
  logit_bias: drop('the Responses API has none'),
  logprobs: drop(undefined, false),
  max_completion_tokens: OUTPUT_TOKENS,
  max_tokens: OUTPUT_TOKENS,
  modalities: refuse('the Responses API has text only', ['text']),
  n: refuse('the Responses API, by which the request has to go, gives one response', 1),
  prediction: drop('it would only save time'),
  presence_penalty: drop('the Responses API has none', 0),
  response_format: emulate('as `text.format`', (value) => ({ body: { response_format: value } })),
  seed: drop('the Responses API has none'),
  stop: drop('the Responses API has none'),
  store: emulate('always `false`', (value) => ({ dropped: value !== false })),
  top_logprobs: drop(),
  verbosity: emulate('as `text.verbosity`', (value) => ({ body: { verbosity: value } })),
  web_search_options: refuse('the search of chat completions belongs to other models'),
});

/** OpenAI's chat fields beside those with code of their own (`model`, `messages`, `stream`, `stream_options`; `dialect_fields` is for other formats). */
export const CHAT_FIELDS: ReadonlySet<string> = new Set(
  `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
  modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning_effort response_format safety_identifier seed service_tier stop store temperature tool_choice tools
  top_logprobs top_p user verbosity web_search_options`.split(/\s+/),
);

/** Names by which bodies steer other gateways and SDKs. A caller never chooses host, key or headers here. */
export const ROUTING_FIELDS: ReadonlySet<string> = new Set(
  `api_base api_key api_type api_version base_url custom_llm_provider default_headers deployment_id extra_body
  extra_headers extra_query fallbacks headers organization project provider timeout`.split(/\s+/),
);

type Meaning = FinishReason | { readonly failure: FailureClass };

/** Every finish reason that was seen on this wire, in lower case. What is not here ends a choice with `stop`. */
export const FINISH_REASON = Object.freeze<Record<string, Meaning>>({
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'function_call',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  safety: 'content_filter',
  refusal: 'content_filter',
  error: { failure: 'upstream_error' },
  abort: { failure: 'upstream_error' },
  cancelled: { failure: 'upstream_error' },
  timeout: { failure: 'timeout' },
  insufficient_system_resource: { failure: 'overloaded' },
});
