import type { Usage } from '../../../core/index.ts';
import { isRecord } from './records.ts';

/** Spellings of cached tokens, the first that is a count is taken. */
const CACHED: readonly (readonly string[])[] = Object.freeze([
  ['prompt_tokens_details', 'cached_tokens'],
  ['prompt_token_details', 'cached_tokens'], // Mistral, misspelt
  ['prompt_cache_hit_tokens'], // DeepSeek
  ['cached_tokens'], // Moonshot
  ['num_cached_tokens'], // Mistral
]);

/** Fields that are rewritten, or that only repeat what stands elsewhere. */
const REWRITTEN = new Set([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_tokens_details',
  'completion_tokens_details',
  'prompt_token_details',
  'num_cached_tokens',
  'cached_tokens',
]);

/**
 * Usage in OpenAI's arithmetic: prompt includes cached, completion includes reasoning, total is their sum. Undefined
 * for what is not usage (garbage is not billed). `outside` adds reasoning tokens to the completion's.
 */
export function readUsage(value: unknown, reasoningTokens: 'inside' | 'outside' = 'inside'): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const told = [value['prompt_tokens'], value['completion_tokens'], value['total_tokens']].map(count);
  if (told.every((tokens) => tokens === undefined)) return undefined;
  const [promptTold, completionTold, totalTold] = told;
  const cached = CACHED.map((path) => count(at(value, path))).find((tokens) => tokens !== undefined);
  const reasoning = count(at(value, ['completion_tokens_details', 'reasoning_tokens']));
  let prompt = promptTold ?? Math.max((totalTold ?? 0) - (completionTold ?? 0), 0);
  let completion = completionTold ?? Math.max((totalTold ?? 0) - prompt, 0);
  if (cached !== undefined && cached > prompt) prompt += cached; // xAI: then cached ones are not among them
  if (reasoning && (reasoningTokens === 'outside' || isOutside(reasoning, prompt, completion, totalTold))) {
    completion += reasoning;
  }
  const promptDetails = details(value['prompt_tokens_details'], cached !== undefined ? { cached_tokens: cached } : {});
  const completionDetails = details(value['completion_tokens_details'], {});
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(promptDetails && { prompt_tokens_details: promptDetails }),
    ...(completionDetails && { completion_tokens_details: completionDetails }),
    ...Object.fromEntries(Object.entries(value).filter(([key, field]) => !REWRITTEN.has(key) && field !== null)),
  };
}

/** Whether the vendor's own total shows that reasoning is not among the completion tokens. */
function isOutside(reasoning: number, prompt: number, completion: number, total: number | undefined): boolean {
  return reasoning > completion || total === prompt + completion + reasoning;
}

/** No call has more tokens; a number beyond it is garbage. */
const MAX_COUNT = 1_000_000_000_000;

/** A count of tokens: a number that is finite and not negative, made whole. */
export function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= MAX_COUNT ? Math.round(value) : undefined;
}

function details(value: unknown, known: Readonly<Record<string, number>>): Record<string, number> | undefined {
  const entries = isRecord(value)
    ? Object.entries(value).flatMap(([key, tokens]) => {
        const whole = count(tokens);
        return whole === undefined ? [] : [[key, whole] as const];
      })
    : [];
  const all = { ...Object.fromEntries(entries), ...known };
  return Object.keys(all).length > 0 ? all : undefined;
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), value);
}
