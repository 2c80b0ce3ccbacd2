import { isObject, type JsonObject, readObject, type Usage } from '../../../core/index.ts';

/** How a vendor's usage differs from OpenAI's. */
export interface UsageRules {
  /** `outside`: reasoning tokens come on top of completion tokens. */
  readonly reasoningTokens?: 'inside' | 'outside';
  /** What the vendor says a call cost, in US dollars, where it is not simply `usage.cost`. */
  readonly usageCost?: (usage: JsonObject) => number | undefined;
}

/** Cached tokens under whatever name a vendor has for them; the first that is a count is taken. */
function cachedIn(value: Readonly<Record<string, unknown>>): number | undefined {
  return (
    count(readObject(value['prompt_tokens_details'])['cached_tokens']) ??
    count(readObject(value['prompt_token_details'])['cached_tokens']) ?? // Mistral, misspelt
    count(value['prompt_cache_hit_tokens']) ?? // DeepSeek
    count(value['cached_tokens']) ?? // Moonshot
    count(value['num_cached_tokens']) // Mistral
  );
}

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
 * for what is not usage (garbage is not billed). `reasoningTokens: 'outside'` adds reasoning tokens to the completion's.
 */
export function readUsage(value: unknown, rules: UsageRules = {}): Usage | undefined {
  if (!isObject(value)) return undefined;
  const promptTold = count(value['prompt_tokens']);
  const completionTold = count(value['completion_tokens']);
  const totalTold = count(value['total_tokens']);
  if (promptTold === undefined && completionTold === undefined && totalTold === undefined) return undefined;
  const cached = cachedIn(value);
  const reasoning = count(readObject(value['completion_tokens_details'])['reasoning_tokens']);
  let prompt = promptTold ?? Math.max((totalTold ?? 0) - (completionTold ?? 0), 0);
  let completion = completionTold ?? Math.max((totalTold ?? 0) - prompt, 0);
  if (cached !== undefined && cached > prompt) prompt += cached; // xAI: then cached ones are not among them
  const outside = rules.reasoningTokens === 'outside';
  if (reasoning && (outside || isOutside(reasoning, prompt, completion, totalTold))) completion += reasoning;
  const promptDetails = details(value['prompt_tokens_details'], cached);
  const completionDetails = details(value['completion_tokens_details'], undefined);
  const cost = rules.usageCost?.(value);
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } & JsonObject = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  if (promptDetails) usage.prompt_tokens_details = promptDetails;
  if (completionDetails) usage.completion_tokens_details = completionDetails;
  for (const key of Object.keys(value))
    if (!REWRITTEN.has(key) && value[key] !== null && key !== '__proto__') usage[key] = value[key];
  if (cost !== undefined) usage.cost = cost;
  return usage;
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

/** The counts among a usage's details, with the cached tokens wherever the vendor told them. */
function details(value: unknown, cached: number | undefined): Record<string, number> | undefined {
  let all: Record<string, number> | undefined;
  if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const tokens = count(value[key]);
      if (tokens === undefined) continue;
      all ??= {};
      all[key] = tokens;
    }
  }
  return cached === undefined ? all : { ...all, cached_tokens: cached };
}
