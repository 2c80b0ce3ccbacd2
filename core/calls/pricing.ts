import type { ChatRequest, EmbeddingRequest, Usage } from '../contract/chat.ts';
import type { ModelInfo, Price } from '../contract/provider.ts';
import { estimateInputTokens } from './tokens.ts';

/**
 * Dollars per million tokens are micro-dollars per token; a millionth of that is still whole for every list price, so
 * sums are exact (to 9,007 dollars a call) and rounded once, upwards: nothing is free.
 */
const PICO_PER_MICRO = 1_000_000;

/** What a cache write for an hour costs, by input tokens: https://docs.claude.com/en/docs/build-with-claude/prompt-caching */
const HOUR_WRITE_FACTOR = 2;

/** What a model may write when neither the caller nor the table bounds it. */
const DEFAULT_MAX_OUTPUT = 4096;

type Rates = Omit<Price, 'tiers' | 'characters'>;

/**
 * Whole micro-dollars of a call's usage; undefined when the price is not known. A tier's rates replace the base ones
 * for the whole call; cached and cache-write tokens cost as input where no rate of their own is known, those written for an hour twice that.
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
      hour * pico(rates.cache_write_1h ?? rates.input * HOUR_WRITE_FACTOR) +
      usage.completion_tokens * pico(rates.output),
  );
}

/** Whole micro-dollars of a text that is spoken; undefined when there is no price by character. */
export function costOfCharacters(characters: number, price: Price | undefined): number | undefined {
  return price?.characters === undefined ? undefined : toMicro(characters * pico(price.characters));
}

/**
 * The most a call may cost, in whole micro-dollars: the estimated prompt, and as much output as the caller allows or
 * the model can write. Undefined when the price is not known.
 */
export function estimate(
  request: ChatRequest | EmbeddingRequest,
  model: ModelInfo | undefined,
  price: Price | undefined = model?.price,
): number | undefined {
  if (!price) return undefined;
  const prompt = estimateInputTokens(request);
  const rates = ratesFor(prompt, price);
  const input = Math.max(rates.input, rates.cache_write ?? 0);
  return toMicro(prompt * pico(input) + maxOutput(request, model) * pico(rates.output));
}

/** Output tokens that a request may lead to, over all its choices; 0 for embeddings. */
export function maxOutput(request: ChatRequest | EmbeddingRequest, model: ModelInfo | undefined): number {
  if (!('messages' in request)) return 0;
  const { max_completion_tokens: limit, max_tokens: older, n } = request as ChatRequest;
  const most = model?.maxOutput ?? Number.POSITIVE_INFINITY;
  const wanted = limit ?? older ?? model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  return Math.min(wanted, most) * Math.max(n ?? 1, 1);
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
