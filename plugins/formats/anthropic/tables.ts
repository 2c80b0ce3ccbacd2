import {
  type CacheControl,
  type FieldTable,
  type FinishReason,
  isObject,
  type NativeFinish,
  type ProviderEffects,
  readObject,
} from '../../../contract/index.ts';
import { LEGACY_FUNCTIONS, type Leniency, RESPONSE_FIELDS, toolCallId } from '../kit/index.ts';

/** Types of `thinking`: with an effort, with a token budget, only short notes between tool calls, or disabled. */
export type ThinkingType = 'adaptive' | 'enabled' | 'between_tools' | 'disabled';

/** All types, from most thinking to none. */
export const THINKING_TYPES: readonly ThinkingType[] = Object.freeze([
  'adaptive',
  'enabled',
  'between_tools',
  'disabled',
]);

/**
 * Capabilities of Claude models, which differ by release; the vendor responds 400 to unsupported ones. Source: models
 * overview, thinking and migration guides of https://platform.claude.com/docs, and the model catalogue of
 * @ai-sdk/anthropic 4.0.105.
 */
export interface AnthropicTraits {
  /** Default `max_tokens`: the vendor requires it, OpenAI's default is the model's limit. */
  readonly maxOutput: number;
  /** True if `temperature`, `top_p` and `top_k` are supported. */
  readonly sampling: boolean;
  /** True if `temperature` and `top_p` are allowed together. */
  readonly temperatureWithTopP: boolean;
  /** Supported types of `thinking`; the first is used for an effort. */
  readonly thinking: readonly ThinkingType[];
  /** Type with the least thinking that the model supports. */
  readonly leastThinking: ThinkingType;
  /** True if there is an effort between `high` and `max`. */
  readonly xhigh: boolean;
  /** True if a tool call can be forced. */
  readonly forcedTools: boolean;
  /** True if `output_config.format` and strict tools are supported. */
  readonly jsonSchema: boolean;
  /** True if a final assistant message is continued; otherwise it is rejected. */
  readonly prefill: boolean;
  /** True if thinking is accepted back only after the same system prompt, tools and messages. */
  readonly preservedThinking: boolean;
}

/** Claude 3 and earlier. */
const CLAUDE_3: AnthropicTraits = {
  maxOutput: 4096,
  sampling: true,
  temperatureWithTopP: true,
  thinking: [],
  leastThinking: 'disabled',
  xhigh: false,
  forcedTools: true,
  jsonSchema: false,
  prefill: true,
  preservedThinking: false,
};
const CLAUDE_4: AnthropicTraits = { ...CLAUDE_3, maxOutput: 64_000, thinking: ['enabled', 'disabled'] };
const CLAUDE_4_1: AnthropicTraits = { ...CLAUDE_4, maxOutput: 32_000, temperatureWithTopP: false, jsonSchema: true };
const CLAUDE_4_5: AnthropicTraits = { ...CLAUDE_4_1, maxOutput: 64_000 };
const CLAUDE_4_6: AnthropicTraits = {
  ...CLAUDE_4_5,
  maxOutput: 128_000,
  thinking: ['adaptive', 'enabled', 'disabled'],
  prefill: false,
};
const CLAUDE_4_7: AnthropicTraits = { ...CLAUDE_4_6, sampling: false, thinking: ['adaptive', 'disabled'], xhigh: true };
const ALWAYS_THINKING: AnthropicTraits = { ...CLAUDE_4_7, thinking: ['adaptive'], leastThinking: 'adaptive' };
const CLAUDE_5_5: AnthropicTraits = { ...ALWAYS_THINKING, forcedTools: false, preservedThinking: true };

/** First matching pattern wins; names may be prefixed (`anthropic.claude-…`). */
const TRAITS: readonly (readonly [RegExp, AnthropicTraits])[] = Object.freeze([
  [
    /claude-sonnet-5-5/,
    {
      ...CLAUDE_5_5,
      thinking: ['adaptive', 'between_tools'],
      leastThinking: 'between_tools',
    } satisfies AnthropicTraits,
  ],
  [/claude-opus-5-5|claude-(fable|mythos)-5-[12]/, CLAUDE_5_5],
  [/claude-haiku-5-5/, { ...CLAUDE_4_7, preservedThinking: true }],
  [/claude-(fable|mythos)-5(?!-\d\b)/, ALWAYS_THINKING],
  [/claude-(opus|sonnet)-5(?!-\d\b)|claude-opus-4-[78]/, CLAUDE_4_7],
  [/claude-(opus|sonnet)-4-6/, CLAUDE_4_6],
  [/claude-(opus|sonnet|haiku)-4-5/, CLAUDE_4_5],
  [/claude-opus-4-1/, CLAUDE_4_1],
  [/claude-opus-4(-0|-2\d{7}|@|$)/, { ...CLAUDE_4, maxOutput: 32_000 }],
  [/claude-sonnet-4(-0|-2\d{7}|@|$)|claude-3-7/, CLAUDE_4],
  [/claude-3-5/, { ...CLAUDE_3, maxOutput: 8192 }],
  [/claude-(3|v?2|instant)/, CLAUDE_3],
  // An unknown Claude is a new one. It gets the narrowest request, and any `thinking` of its caller.
  [/claude-/, { ...CLAUDE_5_5, maxOutput: 64_000, thinking: THINKING_TYPES, preservedThinking: false }],
]);

/** Another vendor's model behind Anthropic's API, with that vendor's options. */
const OTHER: AnthropicTraits = {
  ...CLAUDE_4,
  maxOutput: 8192,
  thinking: ['enabled', 'adaptive', 'between_tools', 'disabled'],
};

/** Traits of a model by its name. */
export function anthropicTraits(model: string): AnthropicTraits {
  return TRAITS.find(([pattern]) => pattern.test(model.toLowerCase()))?.[1] ?? OTHER;
}

/**
 * Finish reasons by stop reason. A paused or compacted message could be continued, but OpenAI's shape cannot express
 * that, so it counts as cut off.
 */
const FINISH_REASON: Readonly<Record<string, FinishReason>> = Object.freeze({
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  pause_turn: 'length',
  compaction: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
});

/**
 * OpenAI's finish reason for a stop reason; undefined for an unknown one. `called` is true if a tool of the caller
 * was called: a formatted response is also a call.
 */
export function readFinish(reason: string, called: boolean): FinishReason | undefined {
  const known = Object.hasOwn(FINISH_REASON, reason) ? FINISH_REASON[reason] : undefined;
  return known === 'tool_calls' && !called ? 'stop' : known;
}

/** Reasons without an exact equivalent at OpenAI. */
const OWN_REASONS: ReadonlySet<string> = new Set([
  ...['pause_turn', 'model_context_window_exceeded', 'compaction', 'refusal'],
]);

/** State at the end of a message. */
export interface Ending {
  readonly finishReason: FinishReason | undefined;
  readonly finish: NativeFinish | undefined;
  readonly hasCalls: boolean;
  readonly isRefused: boolean;
}

/** Stop reason, with the matched stop sequence if the provider sends it. */
export function writeFinish({ finishReason, finish = {}, hasCalls, isRefused }: Ending): {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
} {
  const { native, stop_sequence: sequence } = finish;
  const reason = (stop_reason: string) => ({ stop_reason, stop_sequence: null });
  if (native !== undefined && OWN_REASONS.has(native)) return reason(native);
  if (finishReason === 'length') return reason('max_tokens');
  if (finishReason === 'content_filter') return reason('refusal');
  // Clients run a tool only after this reason, whatever the provider's reason is.
  if (hasCalls) return reason('tool_use');
  if (isRefused) return reason('refusal');
  if (sequence !== undefined) return { stop_reason: 'stop_sequence', stop_sequence: sequence };
  return reason('end_turn');
}

const KINDS: readonly string[] = Object.freeze(['reasoning', 'content', 'opaque', 'tool']);

/**
 * Returns true if the blocks of a message (`reasoning:0`, `tool:1`) are in default order: reasoning, content, calls.
 */
export function isUsualOrder(order: readonly string[]): boolean {
  const ranks = [...new Set(order)].map((entry) => KINDS.indexOf(entry.split(':')[0] ?? ''));
  return ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] ?? 0));
}

/** Call id in the form that the vendor accepts. */
export function anthropicCallId(id: string): string {
  return toolCallId(id, 64);
}

/** Valid `cache_control` of a block, message or tool; an invalid one is dropped. */
export function cacheControlOf(source: unknown): { readonly cache_control?: CacheControl } {
  const { type, ttl } = readObject(readObject(source)['cache_control']);
  if (type !== 'ephemeral') return {};
  return { cache_control: { type, ...((ttl === '5m' || ttl === '1h') && { ttl }) } };
}

/** Wraps a block, tool or citation that only this format knows. */
export function opaqueOf(value: object): {
  readonly type: 'opaque';
  readonly dialect: 'messages';
  readonly value: object;
} {
  return { type: 'opaque', dialect: 'messages', value };
}

/** Value wrapped by {@link opaqueOf}; undefined for another format, or without a type. */
export function valueOfOpaque(
  thing: unknown,
): { readonly type: string; readonly [field: string]: unknown } | undefined {
  const { dialect, value } = readObject(thing);
  if (dialect !== 'messages' || !isObject(value) || typeof value['type'] !== 'string') return undefined;
  return { ...value, type: value['type'] };
}

/**
 * Effects of a request at the vendor. Source: https://platform.claude.com/docs/en/api/messages and the pages of its
 * tools.
 */
export const ANTHROPIC_EFFECTS: ProviderEffects = Object.freeze({
  tools: [
    {
      does: 'tool',
      at: '[].type',
      values: /^(?!(?:custom|(?:bash|text_editor|memory)_\d+)$)/,
      note: 'every tool except the caller’s own, `bash`, `text_editor` and `memory`',
    },
    { does: 'model', at: '[].model', note: 'an adviser' },
  ],
  mcp_servers: [{ does: 'tool', at: '[]', name: 'mcp' }],
  fallbacks: [
    { does: 'model', at: '[].model' },
    { does: 'model', name: '*', values: /^\w[\w-]*$/, note: '`default`: models that the vendor chooses' },
  ],
  service_tier: [{ does: 'price', note: 'only tiers with a known price are sent' }],
  speed: [{ does: 'price', values: /^fast$/, note: 'not sent: its price is unknown' }],
  inference_geo: [{ does: 'residency' }, { does: 'price', note: 'Charged as the response reports.' }],
});

/** Names below the top level of a chat request: those of this format, and message fields that it has no place for. */
export const ANTHROPIC_INNER: Pick<Leniency, 'dialect' | 'innerFields' | 'lacksFields'> = Object.freeze({
  dialect: 'messages',
  innerFields: Object.freeze(['tools.eager_input_streaming']),
  lacksFields: Object.freeze(['audio', 'name', ...RESPONSE_FIELDS]),
});

/** Rules for each field of a chat request; `docs/providers/anthropic.md` shows this table. */
export const ANTHROPIC_FIELDS: FieldTable = {
  unknown: 'dropped',
  extras: [
    ...['top_k', 'thinking', 'cache_control', 'betas', 'context_management', 'inference_geo', 'output_config'],
    'stop_sequences',
  ],
  lacks: { 'log probabilities': 'the vendor returns none' },
  variants: [
    {
      when: 'models after Opus 4.6, which have no sampling fields',
      example: { model: 'claude-opus-4-7' },
      fields: { temperature: { rule: 'dropped', neutral: [1] }, top_p: { rule: 'dropped', neutral: [1] } },
    },
    {
      when: 'models without extended thinking (Claude 3.5 and before)',
      example: { model: 'claude-3-5-haiku-latest' },
      fields: { reasoning_effort: { rule: 'dropped', neutral: ['none'] } },
    },
  ],
  fields: {
    model: { rule: 'passed' },
    messages: {
      rule: 'emulated',
      to: 'messages, system',
      note: 'Leading system and developer messages are the system prompt; later ones go into user turns, in place. Results of tools go before the user’s words.',
    },
    stream: { rule: 'passed' },
    stream_options: { rule: 'emulated', note: 'The vendor always reports usage.' },
    max_tokens: { rule: 'passed', note: 'Required by the vendor. Default: the model’s limit.' },
    max_completion_tokens: { rule: 'renamed', to: 'max_tokens', note: 'Overrides `max_tokens`.' },
    temperature: {
      rule: 'passed',
      note: 'Values above 1 become 1. Dropped while the model thinks.',
      neutral: [1],
    },
    top_p: {
      rule: 'passed',
      note: 'Dropped while the model thinks. From Opus 4.1 on also dropped next to `temperature`, since the vendor accepts only one of the two.',
      neutral: [1],
    },
    top_k: { rule: 'passed', note: 'Dropped in the same cases as `temperature`.' },
    stop: {
      rule: 'renamed',
      to: 'stop_sequences',
      note: 'Whitespace-only values are dropped, since the vendor rejects them.',
    },
    n: { rule: 'refused', note: 'one response per request.', neutral: [1] },
    logprobs: { rule: 'dropped', note: 'The vendor returns no probabilities.', neutral: [false] },
    top_logprobs: { rule: 'dropped', note: 'The vendor returns no probabilities.', neutral: [0] },
    response_format: {
      rule: 'emulated',
      to: 'output_config.format',
      note: 'A schema is native from Opus 4.1 on. Older models, and schemas that the vendor cannot enforce (recursive ones, maps), get a forced tool whose input is the response. `json_object`, models that cannot be forced and models that bind thinking to tools (5.5) get an instruction at the end of the user’s last turn.',
    },
    tools: { rule: 'passed', note: '`parameters` becomes `input_schema`, `cache_control` is kept.' },
    tool_choice: {
      rule: 'passed',
      note: 'Models that cannot be forced (Opus 5.5, Sonnet 5.5, Fable 5.1 and later; from 4.6 on also while they think) get an instruction at the end of the user’s last turn, and the field is reported as dropped. A response without the call is requested once more, then 400. With a named tool the other tools are still sent.',
    },
    parallel_tool_calls: { rule: 'renamed', to: 'tool_choice.disable_parallel_tool_use', neutral: [true] },
    reasoning_effort: {
      rule: 'renamed',
      to: 'output_config.effort, thinking',
      note: 'Adaptive thinking with an effort from 4.6 on, a token budget before. For models that always think, `none` becomes their lowest effort.',
    },
    thinking: {
      rule: 'passed',
      note: 'The vendor’s own field; overrides `reasoning_effort`. A value that the model rejects becomes the nearest that it accepts, and the field is reported as dropped.',
    },
    output_config: {
      rule: 'passed',
      note: 'The vendor’s own field; overrides `reasoning_effort` and `response_format`.',
    },
    context_management: { rule: 'passed', note: 'The vendor’s own field; needs a beta.' },
    betas: { rule: 'renamed', to: 'anthropic-beta', note: 'A list of names, sent as the header.' },
    stop_sequences: { rule: 'passed', note: 'The vendor’s own name; added to `stop`.' },
    extra_body: {
      rule: 'emulated',
      note: 'Its fields of the vendor are used like top-level fields; others are reported as dropped.',
    },
    cache_control: { rule: 'passed', note: 'Here, on messages, on content parts and on tools.' },
    user: { rule: 'renamed', to: 'metadata.user_id' },
    safety_identifier: { rule: 'renamed', to: 'metadata.user_id', note: 'Overrides `user`.' },
    seed: { rule: 'dropped' },
    frequency_penalty: { rule: 'dropped', neutral: [0] },
    presence_penalty: { rule: 'dropped', neutral: [0] },
    logit_bias: { rule: 'refused', note: 'token ids are specific to a tokenizer.', neutral: [{}] },
    moderation: { rule: 'dropped' },
    metadata: { rule: 'dropped', note: 'Use `user`.', neutral: [{}] },
    store: { rule: 'dropped', neutral: [false] },
    service_tier: { rule: 'dropped', note: 'Its values differ from OpenAI’s.', neutral: ['auto', 'default'] },
    speed: { rule: 'dropped', note: 'The price of fast responses is unknown.', neutral: ['standard'] },
    inference_geo: { rule: 'passed', note: 'The vendor’s own field, at the price of its region.' },
    container: { rule: 'dropped', note: 'Containers belong to the operator’s account, which all callers share.' },
    mcp_servers: { rule: 'dropped', note: 'The vendor would connect to servers that a caller names.' },
    prediction: { rule: 'dropped' },
    prompt_cache_key: { rule: 'dropped', note: 'Use `cache_control`.' },
    prompt_cache_options: { rule: 'dropped', note: 'Use `cache_control`.' },
    prompt_cache_retention: { rule: 'dropped', note: 'Use `cache_control`.' },
    verbosity: { rule: 'dropped', neutral: ['medium'] },
    modalities: { rule: 'refused', note: 'the vendor returns text only.', neutral: [['text']] },
    audio: { rule: 'refused', note: 'speech is at `POST /{vendor}/tts`.' },
    web_search_options: { rule: 'refused', note: 'this gateway does not offer the vendor’s search tool.' },
    ...LEGACY_FUNCTIONS,
  },
};

/**
 * Returns true for an OAuth token of a Claude subscription (Claude Code, claude.ai). API keys begin with
 * `sk-ant-api`.
 */
export function isClaudeToken(text: string): boolean {
  return /^sk-ant-oat\d/.test(text);
}
