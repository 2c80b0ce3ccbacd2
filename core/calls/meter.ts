import type { Call as CallView, Target } from '../contract/call.ts';
import type { ChatRequest, Usage } from '../contract/chat.ts';
import { deepFreeze, readObject } from '../contract/json.ts';
import type { Metered } from '../contract/operation.ts';
import type { ModelInfo, Price } from '../contract/provider.ts';
import { estimateTextTokens } from '../contract/units.ts';
import { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { estimateInputTokens } from './facts.ts';

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not tell is estimated from the request
 * and `writtenTokens` (what its response has, estimated) and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: CallDeps,
  call: Call,
  target: Target,
  usage: Usage | undefined,
  writtenTokens: () => number,
): void {
  const isTold = usage !== undefined && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens);
  const counted = isTold ? usage : estimateWritten(deps, call, target, writtenTokens());
  noteUsage(deps, call, target, counted, !isTold);
}

/** An estimate never counts more than was reserved: a vendor does not write more than it was allowed to. */
function estimateWritten(deps: CallDeps, call: Call, { provider, model }: Target, written: number): Usage {
  const request = call.request as ChatRequest;
  const most = maxOutput(request, deps.partsOf(call.operation).catalog.find(provider, model));
  return estimatedUsage(estimateInputTokens(request), Math.min(written, most));
}

/**
 * What a call owes whose response never came whole (the caller left, a clock ran out, the vendor broke off) although the vendor
 * may have worked on it: what was to be sent, estimated, once, at the price of the target that was sent it last. An error
 * status, or nothing sent, owes nothing.
 */
export function meterUnfinished(deps: CallDeps, call: Call): void {
  const target = call.record.sentTo.at(-1);
  if (call.record.metered || !target) return;
  call.record.target = target;
  if (call.operation === 'chat')
    noteUsage(deps, call, target, estimatedUsage(estimateInputTokens(call.request as ChatRequest), 0), true);
  else call.record.metered = { ...estimateAt(deps, call, target), estimated: true };
}

/** What was estimated of a call, as long as it has the same request and targets. */
interface Estimate {
  readonly request: CallView['request'];
  readonly targets: CallView['targets'];
  readonly most: Metered;
}

const ESTIMATE = Symbol('estimate');

/** The most a call may come to, over all its targets; its cost is undefined when one of them has no known price. Several policies ask for it. */
export function estimateCall(deps: CallDeps, call: CallView): Metered {
  const { request, targets } = call;
  const known = call.state.get(ESTIMATE) as Estimate | undefined;
  if (known?.request === request && known.targets === targets) return known.most;
  const most = deepFreeze(estimateMost(deps, call));
  call.state.set(ESTIMATE, { request, targets, most });
  return most;
}

function estimateMost(deps: CallDeps, call: CallView): Metered {
  const [only] = call.targets;
  if (only && call.targets.length === 1) return estimateAt(deps, call, only);
  const each = call.targets.map((target) => estimateAt(deps, call, target));
  const units: Record<string, number> = {};
  for (const { units: some } of each)
    for (const [unit, amount] of Object.entries(some)) units[unit] = Math.max(units[unit] ?? 0, amount);
  const costs = each.map(({ cost }) => cost).filter((cost) => cost !== undefined);
  if (costs.length < each.length) return { units, cost: undefined };
  // Where two may be asked at the same time, both are owed.
  const isTwice = call instanceof Call && call.route.hedge !== undefined;
  const [most = 0, next = 0] = costs.sort((a, b) => b - a);
  return { units, cost: isTwice ? most + next : most };
}

/** The most a call may come to at one target. */
export function estimateAt(deps: CallDeps, call: CallView, target: Target): Metered {
  const { catalog, offers, definition } = deps.partsOf(call.operation);
  const model = catalog.find(target.provider, target.model);
  const price = catalog.priceOf(target, model);
  const offer = offers.get(target.provider);
  if (definition && offer) return definition.estimate(call.request, { target, offer, model, price } as never);
  return estimateChat(call.request as ChatRequest, model, price);
}

function noteUsage(deps: CallDeps, call: Call, target: Target, usage: Usage, estimated: boolean): void {
  const { catalog } = deps.partsOf(call.operation);
  const price = catalog.priceOf(target, catalog.find(target.provider, target.model));
  const { prompt_tokens, completion_tokens } = usage;
  // What the vendor charges is what the call costs, unless the operator has a price of their own.
  const told = estimated || catalog.hasOwnPrice(target) ? undefined : toldCost(usage);
  const cost = told ?? costOf(usage, price, call.record.serviceTier);
  call.record.usage = usage;
  call.record.metered = { units: { prompt_tokens, completion_tokens }, cost, estimated };
}

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** More tokens than any call has, by far: a number beyond it is a vendor's mistake, which nobody is charged for. */
const MAX_TOKENS = 100_000_000;

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS;
}

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

/** Fields by which vendors of one kind or another let a model write more than the two limits of this format say. */
const LIMITS = Object.freeze(['max_output_tokens', 'max_new_tokens', 'min_tokens', 'num_predict', 'n_predict']);
const NESTED_LIMITS = Object.freeze([
  ['options', 'num_predict'],
  ['options', 'n_predict'],
] as const);

/** Thinking that some vendors count apart from the limit. */
const BUDGETS = Object.freeze([
  ['reasoning', 'max_tokens'],
  ['thinking', 'budget_tokens'],
] as const);

/** How many responses are written for one. */
const FACTORS = Object.freeze(['n', 'best_of', 'num_return_sequences']);

/** Output tokens that a request may lead to, over all its choices, and those foretold, which are billed when they are not used. */
function maxOutput(request: ChatRequest, model: ModelInfo | undefined): number {
  const { max_completion_tokens, max_tokens, prediction } = request;
  const ofModel = model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  // Of two limits the larger one is sent; 0 and less mean "no limit", where they are taken.
  const limit = Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  const fields = [request, readObject(request['extra_body'])];
  const named = (names: readonly string[]) => fields.flatMap((each) => names.map((name) => each[name]));
  const nested = (places: readonly (readonly [string, string])[]) =>
    fields.flatMap((each) => places.map(([holder, name]) => readObject(each[holder])[name]));
  const limits = numbersOf([...named(LIMITS), ...nested(NESTED_LIMITS)]).map((most) => (most > 0 ? most : ofModel));
  const thinking = Math.max(0, ...numbersOf(nested(BUDGETS)));
  const wanted = Math.max(limit > 0 ? limit : ofModel, ...limits) + thinking;
  const foretold = prediction === undefined || prediction === null ? 0 : estimateTextTokens(JSON.stringify(prediction));
  const most = Math.min(wanted, model?.maxOutput ?? MAX_TOKENS);
  return (most + foretold) * Math.max(1, ...numbersOf(named(FACTORS)));
}

/** The numbers among what a caller may have written, which no schema has checked. */
function numbersOf(values: readonly unknown[]): readonly number[] {
  return values
    .filter((value) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== ''))
    .map(Number)
    .filter(Number.isFinite)
    .map((value) => Math.min(value, MAX_TOKENS));
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
