import type { Price } from './provider.ts';
import type { Usage } from './types/chat.ts';

/**
 * The cost of a call in whole micro-dollars, rounded up so that nothing is free. A price is in US dollars per million
 * tokens, which is micro-dollars per token.
 */
export function costOf(usage: Usage, price: Price): number {
  const rates = tierOf(price, usage.prompt_tokens);
  const cached = Math.min(usage.prompt_tokens_details?.cached_tokens ?? 0, usage.prompt_tokens);
  const written = Math.min(usage.prompt_tokens_details?.cache_write_tokens ?? 0, usage.prompt_tokens - cached);
  const plain = usage.prompt_tokens - cached - written;
  const cost =
    plain * rates.input + cached * (rates.cached_input ?? rates.input) + written * (rates.cache_write ?? rates.input) + usage.completion_tokens * rates.output;
  return Math.ceil(cost - 1e-6);
}

function tierOf(price: Price, promptTokens: number): Omit<Price, 'tiers'> {
  const tiers = price.tiers ?? [];
  const reached = tiers.filter(({ input_tokens_above }) => promptTokens > input_tokens_above);
  return reached.reduce<Omit<Price, 'tiers'> & { input_tokens_above?: number }>((best, tier) => ((best.input_tokens_above ?? -1) < tier.input_tokens_above ? tier : best), price);
}
