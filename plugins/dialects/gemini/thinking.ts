import { type JsonObject, readString } from '../../../core/index.ts';
import { fieldOf } from './spelling.ts';

/** The most thinking tokens of an effort, lowest first; those of Google's own OpenAI endpoint. */
const BUDGETS: readonly (readonly [effort: string, tokens: number])[] = Object.freeze([
  ['none', 0],
  ['low', 1024],
  ['medium', 8192],
  ['high', 24_576],
  ['xhigh', Number.POSITIVE_INFINITY],
]);

const LEVELS: ReadonlySet<string> = new Set(['minimal', 'low', 'medium', 'high', 'xhigh']);

/** How much a `thinkingConfig` lets the model think; undefined leaves the model its default. */
export function effortOf(thinking: JsonObject): string | undefined {
  const level = readString(fieldOf(thinking, 'thinkingLevel'))?.toLowerCase();
  if (level !== undefined && LEVELS.has(level)) return level;
  const budget = fieldOf(thinking, 'thinkingBudget');
  // -1 lets the model choose.
  if (typeof budget !== 'number' || budget < 0) return undefined;
  return BUDGETS.find(([, tokens]) => budget <= tokens)?.[0];
}

/** The `thinkingConfig` for another effort; `undefined` leaves the model its default. */
export function withEffort(thinking: JsonObject, effort: string | null | undefined): JsonObject {
  const include = fieldOf(thinking, 'includeThoughts');
  const kept = include === undefined ? {} : { includeThoughts: include };
  if (effort === undefined || effort === null) return kept;
  if (fieldOf(thinking, 'thinkingLevel') !== undefined && LEVELS.has(effort)) return { ...kept, thinkingLevel: effort };
  const tokens = BUDGETS.find(([name]) => name === effort)?.[1] ?? 1024;
  return { ...kept, thinkingBudget: Math.min(tokens, 32_768) };
}
