import { type ChatRequest, isObject, type JsonObject } from '../../../core/index.ts';
import { invalid } from '../kit/index.ts';
import type { GeminiTraits, ThinkingLevel } from './models.ts';
import type { GeminiThinking } from './types.ts';

/** Lowest first. */
const LEVELS: readonly ThinkingLevel[] = ['minimal', 'low', 'medium', 'high', 'xhigh'];

interface Effort {
  readonly level: ThinkingLevel;
  /** Thinking tokens for models that count them; the numbers are those of Google's OpenAI endpoint. */
  readonly budget: number;
}

const EFFORT: Readonly<Record<string, Effort>> = Object.freeze({
  none: { level: 'minimal', budget: 0 },
  minimal: { level: 'minimal', budget: 1024 },
  low: { level: 'low', budget: 1024 },
  medium: { level: 'medium', budget: 8192 },
  high: { level: 'high', budget: 24_576 },
  xhigh: { level: 'xhigh', budget: 32_768 },
  max: { level: 'xhigh', budget: 32_768 },
});

/**
 * The thinking part of `generationConfig`; undefined leaves the model its default. Adds what it cannot do to `dropped`. `own` is what a
 * caller of Gemini's format wrote: it goes out as it is, unless a hook set another effort since.
 */
export function geminiThinking(
  input: ChatRequest,
  traits: GeminiTraits,
  dropped: string[],
  own?: JsonObject,
): GeminiThinking | undefined {
  const native = nativeThinking(input);
  if (native) return native;
  if (!own) return effortThinking(input, traits, dropped);
  if (effortOf(own) === (input.reasoning_effort ?? undefined)) return own;
  const include = own['includeThoughts'] ?? own['include_thoughts'];
  const thinking = effortThinking(input, traits, dropped);
  return { ...thinking, ...(typeof include === 'boolean' && { includeThoughts: include }) };
}

/** The effort that a `thinkingConfig` stands for, as the dialect reads it. */
function effortOf(own: JsonObject): string | undefined {
  const level = own['thinkingLevel'] ?? own['thinking_level'];
  if (typeof level === 'string' && LEVELS.some((each) => each === level.toLowerCase())) return level.toLowerCase();
  const budget = own['thinkingBudget'] ?? own['thinking_budget'];
  if (typeof budget !== 'number' || budget < 0) return undefined;
  if (budget === 0) return 'none';
  return (['low', 'medium', 'high'] as const).find((name) => budget <= (EFFORT[name]?.budget ?? 0)) ?? 'xhigh';
}

function effortThinking(input: ChatRequest, traits: GeminiTraits, dropped: string[]): GeminiThinking | undefined {
  const name = input.reasoning_effort;
  if (name === undefined || name === null) return undefined;
  const effort = Object.hasOwn(EFFORT, name) ? EFFORT[name] : undefined;
  if (!effort) throw invalid('reasoning_effort', `must be one of ${Object.keys(EFFORT).join(', ')}`);
  const includeThoughts = name !== 'none';
  const { thinking } = traits;
  if (thinking.kind === 'budget') {
    return { thinkingBudget: Math.min(Math.max(effort.budget, thinking.min), thinking.max), includeThoughts };
  }
  if (thinking.kind === 'level') return { thinkingLevel: nearest(effort.level, thinking.levels), includeThoughts };
  if (name !== 'none') dropped.push('reasoning_effort');
  return undefined;
}

function nearest(wanted: ThinkingLevel, levels: readonly ThinkingLevel[]): ThinkingLevel {
  if (levels.includes(wanted)) return wanted;
  const lowest = levels[0] ?? wanted;
  return LEVELS.indexOf(wanted) < LEVELS.indexOf(lowest) ? lowest : (levels.at(-1) ?? wanted);
}

/** The vendor's own `thinking_config`; Google's OpenAI endpoint takes it in `extra_body.google`. */
function nativeThinking(input: ChatRequest): GeminiThinking | undefined {
  const config = input['thinking_config'];
  if (!isObject(config)) return undefined;
  const { thinking_level: level, thinking_budget: budget, include_thoughts: include } = config;
  return {
    ...(typeof level === 'string' && { thinkingLevel: level }),
    ...(typeof budget === 'number' && { thinkingBudget: budget }),
    ...(typeof include === 'boolean' && { includeThoughts: include }),
  };
}
