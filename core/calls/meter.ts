import type { Call as CallView, Target } from '../contract/call.ts';
import type { ChatRequest, Usage } from '../contract/chat.ts';
import { deepFreeze, readObject } from '../contract/json.ts';
import type { Metered } from '../contract/operation.ts';
import type { ModelInfo, Price } from '../contract/provider.ts';
import { estimateTextTokens } from '../contract/units.ts';
import { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { factsOf } from './facts.ts';

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not report is estimated from the request
 * and `writtenTokens` (what its response has, estimated) and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: CallDeps,
  call: Call,
  target: Target,
  usage: Usage | undefined,
  writtenTokens: () => number,
): void {
  const isReported = usage !== undefined && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens);
  const counted = isReported ? usage : estimateWritten(deps, call, target, writtenTokens());
  noteUsage(deps, call, target, counted, !isReported);
}

/** An estimate never counts more than was reserved: a vendor does not write more than it was allowed to. */
function estimateWritten(deps: CallDeps, call: Call, { provider, model }: Target, written: number): Usage {
  const request = call.request as ChatRequest;
  const most = maxOutput(request, deps.partsOf(call.operation).catalog.find(provider, model));
  return estimatedUsage(factsOf(request).inputTokens, Math.min(written, most));
}

/**
 * What a call owes whose response never came to its end (the caller left, a timeout passed, the vendor broke off) although the vendor
 * may have worked on it: what was to be sent, estimated, once, at the price of the target that was sent it last. An error
 * status, or nothing sent, owes nothing.
 */
export function meterUnfinished(deps: CallDeps, call: Call): void {
  const target = call.record.sentTo.at(-1);
  if (call.record.metered || !target) return;
  call.record.target = target;
  if (call.operation === 'chat')
    noteUsage(deps, call, target, estimatedUsage(factsOf(call.request as ChatRequest).inputTokens, 0), true);
  else call.record.metered = { ...estimateAt(deps, call, target), estimated: true };
}

const ESTIMATE = Symbol('estimate');

/** What was estimated of a call, as long as it has the same request and targets. */
interface Estimate extends Pick<CallView, 'request' | 'targets'> {
  readonly most: Metered;
}

/** The most a call may come to, over all its targets; its cost is undefined when one of them has no known price. Several policies ask for it. */
export function estimateCall(deps: CallDeps, call: CallView): Metered {
  const { request, targets } = call;
  const known = call.state.get(ESTIMATE) as Estimate | undefined;
  if (known?.request === request && known.targets === targets) return known.most;
  const [only] = targets;
  const most = deepFreeze(only && targets.length === 1 ? estimateAt(deps, call, only) : estimateMost(deps, call));
  call.state.set(ESTIMATE, { request, targets, most });
  return most;
}

function estimateMost(deps: CallDeps, call: CallView): Metered {
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
  const isReported = !estimated && usage['cost'] !== undefined && !catalog.hasOwnPrice(target);
  const cost = (isReported ? reportedCost(usage) : undefined) ?? costOf(usage, price, call.record.serviceTier);
  call.record.usage = usage;
  call.record.metered = { units: { prompt_tokens, completion_tokens }, cost, estimated };
}

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** More tokens than any call has, by far: a number beyond it is a vendor's mistake, which is not charged. */
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

/** A billion dollars: more than any call costs, so that sums of what a price or a caller makes up stay exact. */
const MAX_MICRO = 1_000_000_000_000_000;

/**
 * Whole micro-dollars of a call's usage; undefined when the price is not known. A tier's rates replace the base ones
 * for all of the call; cached and cache-write tokens cost as input where no rate of their own is known.
 */
export function costOf(usage: Usage, price: Price | undefined, serviceTier?: string): number | undefined {
  if (!price) return undefined;
  const { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: details } = usage;
  const cached = shareOf(prompt, details?.cached_tokens);
  const written = shareOf(prompt - cached, details?.cache_write_tokens);
  const hour = shareOf(written, details?.cache_write_1h_tokens);
  const base = rateTables.get(price) ?? compileRates(price);
  const table = (serviceTier !== undefined && base.services.get(serviceTier)) || base;
  const rates = table.tiers.find(({ above }) => prompt > above)?.rates ?? table.rates;
  const pico =
    (prompt - cached - written) * rates.input +
    cached * rates.cached +
    (written - hour) * rates.written +
    hour * rates.hour +
    completion * rates.output;
  return Math.min(Math.ceil(pico / PICO_PER_MICRO), MAX_MICRO);
}

/** Whole pico-dollars per token. */
interface Rates {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly hour: number;
  readonly output: number;
}

/** The rates of one price: for long prompts those of the highest tier that they reach, which come first. */
interface RateTable {
  readonly rates: Rates;
  readonly tiers: readonly { readonly above: number; readonly rates: Rates }[];
  readonly services: ReadonlyMap<string, RateTable>;
}

/** Made once for each price of the catalogue. */
const rateTables = new WeakMap<object, RateTable>();

function compileRates(price: Price): RateTable {
  const { tiers = [], service_tiers = {} } = price;
  const pico = (dollarsPerMillion: number): number => Math.round(dollarsPerMillion * PICO_PER_MICRO);
  const ratesOf = ({ input, output, cached_input, cache_write = input, cache_write_1h }: Price): Rates => ({
    ...{ input: pico(input), output: pico(output), cached: pico(cached_input ?? input) },
    ...{ written: pico(cache_write), hour: pico(cache_write_1h ?? cache_write) },
  });
  const rows = tiers.map((tier) => ({ above: tier.input_tokens_above, rates: ratesOf(tier) }));
  const table = {
    rates: ratesOf(price),
    tiers: rows.sort((a, b) => b.above - a.above),
    services: new Map(Object.entries(service_tiers).map(([name, each]) => [name, compileRates(each)])),
  };
  rateTables.set(price, table);
  return table;
}

/**
 * The most a chat may come to: the estimated prompt, and as much output as the caller allows or the model can write. Its cost
 * is undefined when the price is not known.
 */
export function estimateChat(request: ChatRequest, model: ModelInfo | undefined, price: Price | undefined): Metered {
  const usage = estimatedUsage(factsOf(request).inputTokens, maxOutput(request, model));
  const { prompt_tokens, completion_tokens } = usage;
  const units = { prompt_tokens, completion_tokens };
  if (!price) return { units, cost: undefined };
  const isWritten = { ...usage, prompt_tokens_details: { cache_write_tokens: prompt_tokens } };
  const tier = requestedTier(request) && pricedTier(request, price);
  let cost = 0;
  // All of the prompt may be written to a cache, and a cheaper tier may turn out not to be served.
  for (const each of tier === undefined ? [undefined] : [undefined, tier])
    cost = Math.max(cost, costOf(usage, price, each) ?? 0, costOf(isWritten, price, each) ?? 0);
  return { units, cost };
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

/** The vendor's own figure of a call's cost, `usage.cost` in US dollars, as whole micro-dollars; undefined where it sent none. */
export function reportedCost({ cost }: Usage): number | undefined {
  if (typeof cost !== 'number' || !(cost >= 0 && cost <= MAX_REPORTED_DOLLARS)) return undefined;
  return Math.ceil(Math.round(cost * PICO_PER_MICRO * MICRO_PER_DOLLAR) / PICO_PER_MICRO);
}

const MICRO_PER_DOLLAR = 1_000_000;
/** A call that costs more is a vendor's mistake, and is charged by the table. */
const MAX_REPORTED_DOLLARS = 5000;

/**
 * Fields by which vendors of one kind or another let a model write more than the two limits of this format say: another limit,
 * thinking that is counted apart from it, or how many responses are written for one; with the object that holds a field.
 */
const OUTPUT_FIELDS = Object.freeze([
  ...['max_output_tokens', 'max_new_tokens', 'min_tokens', 'num_predict', 'n_predict'].map(
    (name) => ['limit', name] as const,
  ),
  ...([
    ['limit', 'num_predict', 'options'],
    ['limit', 'n_predict', 'options'],
  ] as const),
  ...([
    ['thinking', 'max_tokens', 'reasoning'],
    ['thinking', 'budget_tokens', 'thinking'],
  ] as const),
  ...['n', 'best_of', 'num_return_sequences'].map((name) => ['factor', name] as const),
]);

/** Output tokens that a request may lead to, over all its choices, and those foretold, which are billed when they are not used. */
function maxOutput(request: ChatRequest, model: ModelInfo | undefined): number {
  const { max_completion_tokens, max_tokens, prediction, extra_body } = request;
  const ofModel = model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  // Of two limits the larger one is sent; 0 and less mean "no limit", where they are taken.
  const limit = Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  const most = { limit: limit > 0 ? limit : ofModel, thinking: 0, factor: 1 };
  for (const fields of extra_body === undefined ? [request] : [request, readObject(extra_body)])
    for (const [kind, name, holder] of OUTPUT_FIELDS) {
      const value = holder === undefined ? fields[name] : readObject(fields[holder])[name];
      const amount = value === undefined ? undefined : numberOf(value);
      if (amount !== undefined) most[kind] = Math.max(most[kind], kind === 'limit' && amount <= 0 ? ofModel : amount);
    }
  const foretold = prediction === undefined || prediction === null ? 0 : estimateTextTokens(JSON.stringify(prediction));
  return (Math.min(most.limit + most.thinking, model?.maxOutput ?? MAX_TOKENS) + foretold) * most.factor;
}

/** The number that a caller may have written, which no schema has checked. */
function numberOf(value: unknown): number | undefined {
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? Math.min(number, MAX_TOKENS) : undefined;
}

/** A part of some tokens: never more than there are, and none where a vendor says less than nothing. */
function shareOf(tokens: number, part: number | undefined): number {
  return part !== undefined && part > 0 ? Math.min(part, tokens) : 0;
}
