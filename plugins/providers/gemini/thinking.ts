import { type ChatRequest, isObject } from '../../../core/index.ts';
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

/** The thinking part of `generationConfig`; undefined leaves the model its default. Adds what it cannot do to `dropped`. */
export function geminiThinking(
  input: ChatRequest,
  traits: GeminiTraits,
  dropped: string[],
): GeminiThinking | undefined {
  const native = nativeThinking(input);
  if (native) return native;
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
