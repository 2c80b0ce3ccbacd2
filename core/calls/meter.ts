import type { Call as CallView, CostPart, Target } from '../../contract/call.ts';
import type { ChatRequest, Usage } from '../../contract/chat.ts';
import { factsOf } from '../../contract/facts.ts';
import { deepFreeze, readObject } from '../../contract/json.ts';
import type { Metered } from '../../contract/operation.ts';
import {
  costOf,
  type HostedTool,
  isCount,
  MAX_TOKENS,
  mostOf,
  reportedCost,
  type Share,
} from '../../contract/prices.ts';
import type { ModelInfo, Price } from '../../contract/provider.ts';
import { estimateTextTokens } from '../../contract/units.ts';
import { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';

/**
 * Usage, model and service tier as reported by a response. They determine the charge, since they may differ from the
 * request.
 */
export interface ReportedUsage {
  readonly usage?: Usage | undefined;
  readonly model?: string | undefined;
  readonly service_tier?: unknown;
}

/**
 * Records the usage and cost of a chat call. Usage that the provider did not report, or reported as zero, is estimated
 * from the request and `writtenTokens` (estimated tokens of the response) and marked as estimated. It is never zero and
 * never skipped.
 */
export function meterChat(
  call: Call,
  target: Target,
  { usage, model, service_tier: tier = usage?.service_tier }: ReportedUsage,
  writtenTokens: () => number,
): void {
  if (typeof tier === 'string') call.record.serviceTier = tier;
  const reported = usage && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens) ? usage : undefined;
  if (reported && ((reported.prompt_tokens > 0 && reported.completion_tokens > 0) || reported.by_model?.length === 0)) {
    recordUsage(call, target, reported, false, model);
    return;
  }
  const { by_model: _, ...rest } = reported ?? NOTHING;
  const guess = estimateWritten(call, target, writtenTokens());
  const prompt = rest.prompt_tokens || guess.prompt_tokens;
  const completion = rest.completion_tokens || guess.completion_tokens;
  const isReported =
    reported !== undefined && prompt === reported.prompt_tokens && completion === reported.completion_tokens;
  const counted = isReported ? reported : { ...rest, ...estimatedUsage(prompt, completion) };
  recordUsage(call, target, counted, !isReported, model);
}

const NOTHING: Usage = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

/**
 * Estimates the usage of a response. It is never more than was reserved, since a vendor does not exceed the output
 * limit.
 */
function estimateWritten(call: Call, target: Target, written: number): Usage {
  const request = call.request as ChatRequest;
  const most = maxOutput(request, call.at(target).model);
  return estimatedUsage(factsOf(request).inputTokens, Math.min(written, most));
}

/**
 * Meters a call without a complete response that the vendor may have worked on: the caller disconnected, a timeout
 * passed, or the vendor interrupted it. The estimate of the request is owed once, at the price of the last target that
 * was sent it. An error status, or nothing sent, owes nothing.
 */
export function meterUnfinished(deps: CallDeps, call: Call): void {
  const target = call.record.sentTo.at(-1);
  if (call.record.metered || !target) return;
  call.record.target = target;
  if (call.operation === 'chat')
    recordUsage(call, target, estimatedUsage(factsOf(call.request as ChatRequest).inputTokens, 0), true);
  else call.record.metered = { ...estimateAt(deps, call, target), estimated: true };
}

/**
 * Estimates the maximum cost of a call over all its targets. The cost is undefined if the price of a target is unknown.
 * Cached, since several policies request it.
 */
export function estimateCall(deps: CallDeps, call: CallView, limit?: number): Metered {
  if (limit !== undefined) return estimateMost(deps, call, limit);
  const record = call instanceof Call ? call.record : undefined;
  if (record?.estimate) return record.estimate;
  const [only] = call.targets;
  const most = deepFreeze(only && call.targets.length === 1 ? estimateAt(deps, call, only) : estimateMost(deps, call));
  if (record) record.estimate = most;
  return most;
}

function estimateMost(deps: CallDeps, call: CallView, limit?: number): Metered {
  const each = call.targets.map((target) => estimateAt(deps, call, target, limit));
  const units: Record<string, number> = {};
  for (const { units: some } of each)
    for (const [unit, amount] of Object.entries(some)) units[unit] = Math.max(units[unit] ?? 0, amount);
  const costs = each.map(({ cost }) => cost).filter((cost) => cost !== undefined);
  if (costs.length < each.length) return { units, cost: undefined };
  // Both targets of a hedged call are owed.
  const isTwice = call instanceof Call && call.record.hedge !== undefined;
  const [most = 0, next = 0] = costs.sort((a, b) => b - a);
  return { units, cost: isTwice ? most + next : most };
}

/**
 * Sets the output limit of a chat, or of another call with such a limit, in `max_tokens`: every codec knows this name.
 */
export function limitOutput(call: CallView, tokens: number): void {
  if (!(call instanceof Call) || (call.operation !== 'chat' && !('max_tokens' in call.request))) return;
  const { max_completion_tokens: _other, ...rest } = call.request as ChatRequest;
  call.replaceRequest({ ...rest, max_tokens: tokens });
}

/** Longer than a call lasts. An estimate uses the highest price until then. */
const HOUR_MS = 3_600_000;

/** Estimates the maximum cost of a call at one target. `limit` replaces the request's own output limit. */
export function estimateAt(deps: CallDeps, call: CallView, target: Target, limit?: number): Metered {
  const { routes, definition } = deps.partsOf(call.operation);
  const place = routes.at(target);
  const { model, offer } = place;
  const price = place.priceAt();
  const later = place.priceAt(Date.now() + HOUR_MS);
  const own = call instanceof Call ? call : undefined;
  const tools = own?.client?.needs.filter(
    ({ kind, param }) => kind === 'server tool' && !own.record.without.includes(param),
  );
  const request = limit === undefined ? call.request : { ...call.request, max_tokens: limit };
  const estimate = (at: Price | undefined): Metered =>
    definition && offer
      ? definition.estimate(request, { target, offer, model, price: at })
      : estimateChat(call.request as ChatRequest, model, at, limit, tools);
  let most = estimate(price);
  if (later !== price && most.cost !== undefined) {
    const other = estimate(later);
    if (other.cost === undefined || other.cost >= most.cost) most = other;
  }
  return call.client?.ownSubscription ? { ...most, cost: 0 } : most;
}

function recordUsage(call: Call, target: Target, usage: Usage, estimated: boolean, served = target.model): void {
  const { routes } = call.parts;
  const { prompt_tokens, completion_tokens, by_model, units } = usage;
  if (call.client?.ownSubscription) {
    call.record.usage = usage;
    const used = { prompt_tokens, completion_tokens, ...units };
    call.record.metered = {
      units: used,
      cost: 0,
      parts: [{ unit: 'own_subscription', quantity: 1, usd: 0 }],
      estimated,
    };
    return;
  }
  const { provider } = target;
  const place = routes.at(target);
  const { hasOwnPrice } = place;
  const requested = place.priceAt();
  const priceOf = (model: string): Price | undefined =>
    model === target.model ? requested : routes.at({ provider, model }).priceAt();
  // The vendor's charge is the cost, unless the operator set a price.
  const reported = hasOwnPrice || (estimated && usage.cost === 0) ? undefined : reportedCost(usage);
  // A server may report any model name. It is ignored without a price, or if the operator set a price.
  const price = (hasOwnPrice ? undefined : priceOf(served)) ?? requested;
  const shares = by_model?.map((each): Share => [each, priceOf(each.model)]);
  const parts: CostPart[] =
    reported === undefined ? [] : [{ unit: 'vendor_charge', quantity: 1, usd: usage.cost ?? 0 }];
  const cost = reported ?? costOf(usage, price, call.record.serviceTier, shares, parts);
  call.record.usage = usage;
  call.record.metered = { units: { prompt_tokens, completion_tokens, ...units }, cost, parts, estimated };
}

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Maximum output of a model if neither the caller nor the table limits it. */
const DEFAULT_MAX_OUTPUT = 4096;

/**
 * Estimates the maximum cost of a chat: the estimated prompt, and as much output as the caller allows or the model can
 * write. The cost is undefined if the price is unknown.
 */
export function estimateChat(
  request: ChatRequest,
  model: ModelInfo | undefined,
  price: Price | undefined,
  limit?: number,
  tools?: readonly HostedTool[],
): Metered {
  const units = {
    prompt_tokens: factsOf(request).inputTokens,
    completion_tokens: maxOutput(request, model, limit),
  };
  if (!price) return { units, cost: undefined };
  return { units, cost: mostOf(request, units, price, tools) };
}

/**
 * Fields by which vendors let a model write more than the two limits of this format: another limit, a separate limit
 * for reasoning, or the number of responses. `holder`: the object that contains the field.
 */
const OUTPUT_FIELDS: readonly OutputField[] = Object.freeze([
  { kind: 'limit', name: 'max_output_tokens' },
  { kind: 'limit', name: 'max_new_tokens' },
  { kind: 'limit', name: 'min_tokens' },
  { kind: 'limit', name: 'num_predict' },
  { kind: 'limit', name: 'n_predict' },
  { kind: 'limit', name: 'num_predict', holder: 'options' },
  { kind: 'limit', name: 'n_predict', holder: 'options' },
  { kind: 'thinking', name: 'max_tokens', holder: 'reasoning' },
  { kind: 'thinking', name: 'budget_tokens', holder: 'thinking' },
  { kind: 'factor', name: 'n' },
  { kind: 'factor', name: 'best_of' },
  { kind: 'factor', name: 'num_return_sequences' },
]);

interface OutputField {
  readonly kind: 'limit' | 'thinking' | 'factor';
  readonly name: string;
  readonly holder?: string;
}

/**
 * Maximum output tokens of a request over all its choices. Predicted tokens are included, since unused ones are billed
 * too.
 */
function maxOutput(request: ChatRequest, model: ModelInfo | undefined, own?: number): number {
  const { max_completion_tokens, max_tokens, prediction, extra_body } = request;
  const ofModel = model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  // The larger of the two limits is sent. Zero and less mean "no limit" at vendors that accept them.
  const limit = own ?? Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  const most = { limit: limit > 0 ? limit : ofModel, thinking: 0, factor: 1 };
  for (const fields of extra_body === undefined ? [request] : [request, readObject(extra_body)])
    for (const { kind, name, holder } of OUTPUT_FIELDS) {
      const value = holder === undefined ? fields[name] : readObject(fields[holder])[name];
      const amount = value === undefined ? undefined : numberOf(value);
      if (amount !== undefined) most[kind] = Math.max(most[kind], kind === 'limit' && amount <= 0 ? ofModel : amount);
    }
  const predicted =
    prediction === undefined || prediction === null ? 0 : estimateTextTokens(JSON.stringify(prediction));
  return (Math.min(most.limit + most.thinking, model?.maxOutput ?? MAX_TOKENS) + predicted) * most.factor;
}

/** Reads a number of the caller that no schema has checked. */
function numberOf(value: unknown): number | undefined {
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? Math.min(number, MAX_TOKENS) : undefined;
}

/** Adds the usage of two requests. */
export function addUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (!one || !other) return one ?? other;
  const sum = (a: unknown, b: unknown): Record<string, number> => {
    const sums = { ...readObject(a) } as Record<string, number>;
    for (const [name, amount] of Object.entries(readObject(b)))
      if (typeof amount === 'number') sums[name] = (sums[name] ?? 0) + amount;
    return sums;
  };
  return {
    prompt_tokens: one.prompt_tokens + other.prompt_tokens,
    completion_tokens: one.completion_tokens + other.completion_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
    prompt_tokens_details: sum(one.prompt_tokens_details, other.prompt_tokens_details),
    completion_tokens_details: sum(one.completion_tokens_details, other.completion_tokens_details),
  };
}
