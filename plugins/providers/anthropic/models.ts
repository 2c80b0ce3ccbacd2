/**
 * What Claude models take differs by release, and the vendor responds 400 to what one does not. Source: models overview and
 * migration guides of https://platform.claude.com/docs, and the model catalogue of @ai-sdk/anthropic 4.0.105.
 */
export interface AnthropicTraits {
  /** `max_tokens` when the caller gives none: the vendor demands one, OpenAI's default is the model's limit. */
  readonly maxOutput: number;
  /** Whether `temperature`, `top_p` and `top_k` exist. */
  readonly sampling: boolean;
  /** Whether `temperature` and `top_p` may stand together. */
  readonly temperatureWithTopP: boolean;
  /** Adaptive thinking with an effort; else, where `budget` is true, thinking by a number of tokens. */
  readonly adaptive: boolean;
  readonly budget: boolean;
  /** Whether there is an effort above `high` and below `max`. */
  readonly xhigh: boolean;
  /** How little the model can think: not at all, in short notes between tool calls, or always as it sees fit. */
  readonly leastThinking: 'disabled' | 'between_tools' | 'adaptive';
  /** Whether a tool call can be forced. */
  readonly forcedTools: boolean;
  /** Whether `output_config.format` and strict tools exist. */
  readonly jsonSchema: boolean;
  /** Whether a last assistant message is continued; else it is refused. */
  readonly prefill: boolean;
}

/** Claude 3 and before. */
const CLAUDE_3: AnthropicTraits = {
  maxOutput: 4096,
  sampling: true,
  temperatureWithTopP: true,
  adaptive: false,
  budget: false,
  xhigh: false,
  leastThinking: 'disabled',
  forcedTools: true,
  jsonSchema: false,
  prefill: true,
};
const CLAUDE_4: AnthropicTraits = { ...CLAUDE_3, maxOutput: 64_000, budget: true };
const CLAUDE_4_1: AnthropicTraits = { ...CLAUDE_4, maxOutput: 32_000, temperatureWithTopP: false, jsonSchema: true };
const CLAUDE_4_5: AnthropicTraits = { ...CLAUDE_4_1, maxOutput: 64_000 };
const CLAUDE_4_6: AnthropicTraits = { ...CLAUDE_4_5, maxOutput: 128_000, adaptive: true, prefill: false };
const CLAUDE_4_7: AnthropicTraits = { ...CLAUDE_4_6, sampling: false, xhigh: true };
const ALWAYS_THINKING: AnthropicTraits = { ...CLAUDE_4_7, budget: false, leastThinking: 'adaptive' };
const NO_FORCED_TOOLS: AnthropicTraits = { ...ALWAYS_THINKING, forcedTools: false };

/** The first row whose pattern matches wins; names may be prefixed (`anthropic.claude-…`). */
const TRAITS: readonly (readonly [RegExp, AnthropicTraits])[] = Object.freeze([
  [/claude-sonnet-5-5/, { ...NO_FORCED_TOOLS, leastThinking: 'between_tools' }],
  [/claude-opus-5-5|claude-fable-5-[12]/, NO_FORCED_TOOLS],
  [/claude-haiku-5-5/, { ...CLAUDE_4_7, budget: false }],
  [/claude-fable-5(?!-\d\b)/, ALWAYS_THINKING],
  [/claude-(opus|sonnet)-5(?!-\d\b)|claude-opus-4-[78]/, CLAUDE_4_7],
  [/claude-(opus|sonnet)-4-6/, CLAUDE_4_6],
  [/claude-(opus|sonnet|haiku)-4-5/, CLAUDE_4_5],
  [/claude-opus-4-1/, CLAUDE_4_1],
  [/claude-opus-4(-0|-2\d{7}|@|$)/, { ...CLAUDE_4, maxOutput: 32_000 }],
  [/claude-sonnet-4(-0|-2\d{7}|@|$)|claude-3-7/, CLAUDE_4],
  [/claude-3-5/, { ...CLAUDE_3, maxOutput: 8192 }],
  [/claude-(3|v?2|instant)/, CLAUDE_3],
  // A Claude that nobody here has heard of is a new one: it gets the narrowest request.
  [/claude-/, { ...NO_FORCED_TOOLS, maxOutput: 64_000 }],
]);

/** Another vendor's model behind Anthropic's API. */
const OTHER: AnthropicTraits = { ...CLAUDE_4, maxOutput: 8192 };

/** The traits of a model by its name. */
export function anthropicTraits(model: string): AnthropicTraits {
  return TRAITS.find(([pattern]) => pattern.test(model.toLowerCase()))?.[1] ?? OTHER;
}
