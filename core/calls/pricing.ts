import type { ChatRequest, Usage } from '../contract/chat.ts';
import type { Metered } from '../contract/operation.ts';
import type { ModelInfo, Price } from '../contract/provider.ts';
import { estimateInputTokens, estimatePrediction } from './tokens.ts';

/**
 * Dollars per million tokens are micro-dollars per token; a millionth of that is still whole for every list price, so
 * sums are exact (to 9,007 dollars a call) and rounded once, upwards: nothing is free.
 */
const PICO_PER_MICRO = 1_000_000;

/** What a model may write when neither the caller nor the table bounds it. */
const DEFAULT_MAX_OUTPUT = 4096;

type Rates = Omit<Price, 'tiers' | 'characters' | 'seconds'>;

/**
 * Whole micro-dollars of a call's usage; undefined when the price is not known. A tier's rates replace the base ones
 * for the whole call; cached and cache-write tokens cost as input where no rate of their own is known.
 */
export function costOf(usage: Usage, price: Price | undefined): number | undefined {
  if (!price) return undefined;
  const rates = ratesFor(usage.prompt_tokens, price);
  const details = usage.prompt_tokens_details;
  const cached = shareOf(usage.prompt_tokens, details?.cached_tokens);
  const written = shareOf(usage.prompt_tokens - cached, details?.cache_write_tokens);
  const hour = shareOf(written, details?.cache_write_1h_tokens);
  return toMicro(
    (usage.prompt_tokens - cached - written) * pico(rates.input) +
      cached * pico(rates.cached_input ?? rates.input) +
      (written - hour) * pico(rates.cache_write ?? rates.input) +
      hour * pico(rates.cache_write_1h ?? rates.cache_write ?? rates.input) +
      usage.completion_tokens * pico(rates.output),
  );
}

/**
 * The most a chat may come to: the estimated prompt, and as much output as the caller allows or the model can write. Its cost
 * is undefined when the price is not known.
 */
export function estimateChat(request: ChatRequest, model: ModelInfo | undefined, price: Price | undefined): Metered {
  const units = { prompt_tokens: estimateInputTokens(request), completion_tokens: maxOutput(request, model) };
  if (!price) return { units, cost: undefined };
  const rates = ratesFor(units.prompt_tokens, price);
  const input = Math.max(rates.input, rates.cache_write ?? 0);
  return { units, cost: toMicro(units.prompt_tokens * pico(input) + units.completion_tokens * pico(rates.output)) };
}

/** Output tokens that a request may lead to, over all its choices, and those foretold, which are billed when they are not used. */
export function maxOutput(request: ChatRequest, model: ModelInfo | undefined): number {
  const { max_completion_tokens, max_tokens, n } = request;
  const most = model?.maxOutput ?? Number.POSITIVE_INFINITY;
  const wanted = max_completion_tokens ?? max_tokens ?? model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  return (Math.min(wanted, most) + estimatePrediction(request)) * Math.max(n ?? 1, 1);
}

function ratesFor(promptTokens: number, price: Price): Rates {
  if (!price.tiers) return price;
  const { tiers, ...base } = price;
  const reached = tiers.filter((tier) => promptTokens > tier.input_tokens_above);
  return reached.reduce<Rates & { readonly input_tokens_above?: number }>(
    (highest, tier) => (tier.input_tokens_above > (highest.input_tokens_above ?? 0) ? tier : highest),
    base,
  );
}

/** A part of some tokens: never more than there are, and none where a vendor says less than nothing. */
function shareOf(tokens: number, part: number | undefined): number {
  return part !== undefined && part > 0 ? Math.min(part, tokens) : 0;
}

function pico(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * PICO_PER_MICRO);
}

function toMicro(picoDollars: number): number {
  return Math.ceil(picoDollars / PICO_PER_MICRO);
}
