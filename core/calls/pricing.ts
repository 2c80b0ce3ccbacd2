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

type Rates = Omit<Price, 'tiers' | 'service_tiers' | 'characters' | 'seconds'>;

/** A billion dollars: more than any call costs, so that sums of what a price or a caller makes up stay exact. */
const MAX_MICRO = 1_000_000_000_000_000;

/**
 * Whole micro-dollars of a call's usage; undefined when the price is not known. A tier's rates replace the base ones
 * for the whole call; cached and cache-write tokens cost as input where no rate of their own is known.
 */
export function costOf(usage: Usage, price: Price | undefined, serviceTier?: string): number | undefined {
  if (!price) return undefined;
  const rates = ratesFor(usage.prompt_tokens, ofServiceTier(price, serviceTier));
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
  const most = (each: Price): number => {
    const rates = ratesFor(units.prompt_tokens, each);
    const input = Math.max(rates.input, rates.cache_write ?? 0);
    return toMicro(units.prompt_tokens * pico(input) + units.completion_tokens * pico(rates.output));
  };
  // A cheaper tier may turn out not to be served.
  return { units, cost: Math.max(most(price), most(ofServiceTier(price, pricedTier(request, price)))) };
}

/** Tiers that are what everybody gets. */
const STANDARD: ReadonlySet<string> = new Set(['auto', 'default']);

/** The service tier that a request asks for beyond the standard one. */
export function requestedTier({ service_tier: tier }: ChatRequest): string | undefined {
  return typeof tier === 'string' && !STANDARD.has(tier) ? tier : undefined;
}

/** The requested tier, where it may be sent: a known price that does not name the tier would not hold for it. */
export function pricedTier(request: ChatRequest, price: Price | undefined): string | undefined {
  const tier = requestedTier(request);
  if (tier === undefined || !price) return tier;
  return Object.hasOwn(price.service_tiers ?? {}, tier) ? tier : undefined;
}

function ofServiceTier(price: Price, tier: string | undefined): Price {
  if (tier === undefined || !Object.hasOwn(price.service_tiers ?? {}, tier)) return price;
  return price.service_tiers?.[tier] ?? price;
}

/** The vendor's own figure of a call's cost, `usage.cost` in US dollars, as whole micro-dollars; undefined where it told none. */
export function toldCost({ cost }: Usage): number | undefined {
  if (typeof cost !== 'number' || !(cost >= 0 && cost <= MAX_TOLD_DOLLARS)) return undefined;
  return toMicro(Math.round(cost * PICO_PER_MICRO * MICRO_PER_DOLLAR));
}

const MICRO_PER_DOLLAR = 1_000_000;
/** A call that costs more is a vendor's mistake, and is charged by the table. */
const MAX_TOLD_DOLLARS = 5000;

/** Output tokens that a request may lead to, over all its choices, and those foretold, which are billed when they are not used. */
export function maxOutput(request: ChatRequest, model: ModelInfo | undefined): number {
  const { max_completion_tokens, max_tokens, n } = request;
  const most = model?.maxOutput ?? Number.POSITIVE_INFINITY;
  // Of two limits the larger one is sent; 0 and less mean "no limit", where they are taken.
  const limit = Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  const wanted = limit > 0 ? limit : (model?.maxOutput ?? DEFAULT_MAX_OUTPUT);
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
  return Math.min(Math.ceil(picoDollars / PICO_PER_MICRO), MAX_MICRO);
}
