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

/** What a response says of itself, by which it is charged: what was asked for may not be what was served. */
export interface Told {
  readonly usage?: Usage | undefined;
  readonly model?: string | undefined;
  readonly service_tier?: unknown;
}

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not report, or told as nothing beside content, is
 * estimated from the request and `writtenTokens` (what its response has, estimated) and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: CallDeps,
  call: Call,
  target: Target,
  { usage, model, service_tier: tier = usage?.service_tier }: Told,
  writtenTokens: () => number,
): void {
  if (typeof tier === 'string') call.record.serviceTier = tier;
  const told = usage && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens) ? usage : undefined;
  if (told && ((told.prompt_tokens > 0 && told.completion_tokens > 0) || told.by_model?.length === 0)) {
    noteUsage(deps, call, target, told, false, model);
    return;
  }
  const { by_model: _, ...rest } = told ?? NOTHING;
  const guess = estimateWritten(deps, call, target, writtenTokens());
  const prompt = rest.prompt_tokens || guess.prompt_tokens;
  const completion = rest.completion_tokens || guess.completion_tokens;
  const isTold = told !== undefined && prompt === told.prompt_tokens && completion === told.completion_tokens;
  const counted = isTold ? told : { ...rest, ...estimatedUsage(prompt, completion) };
  noteUsage(deps, call, target, counted, !isTold, model);
}

const NOTHING: Usage = Object.freeze({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

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
export function estimateCall(deps: CallDeps, call: CallView, limit?: number): Metered {
  const { request, targets } = call;
  if (limit !== undefined) return estimateMost(deps, call, limit);
  const known = call.state.get(ESTIMATE) as Estimate | undefined;
  if (known?.request === request && known.targets === targets) return known.most;
  const [only] = targets;
  const most = deepFreeze(only && targets.length === 1 ? estimateAt(deps, call, only) : estimateMost(deps, call));
  call.state.set(ESTIMATE, { request, targets, most });
  return most;
}

function estimateMost(deps: CallDeps, call: CallView, limit?: number): Metered {
  const each = call.targets.map((target) => estimateAt(deps, call, target, limit));
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

/** Sets how many tokens a call may write, a chat or another with such a limit: in `max_tokens`, the name that every codec knows. */
export function limitOutput(call: CallView, tokens: number): void {
  if (!(call instanceof Call) || (call.operation !== 'chat' && !('max_tokens' in call.request))) return;
  const { max_completion_tokens: _other, ...rest } = call.request as ChatRequest;
  call.replaceRequest({ ...rest, max_tokens: tokens });
}

/** More than a call lasts: what it may come to is the dearest price until then. */
const HOUR_MS = 3_600_000;

/** The most a call may come to at one target; `limit` stands for the request's own limit of output. */
export function estimateAt(deps: CallDeps, call: CallView, target: Target, limit?: number): Metered {
  const { catalog, offers, definition } = deps.partsOf(call.operation);
  const model = catalog.find(target.provider, target.model);
  const offer = offers.get(target.provider);
  const price = catalog.priceOf(target, model);
  const later = catalog.priceOf(target, model, Date.now() + HOUR_MS);
  const own = call instanceof Call ? call : undefined;
  const tools = own?.client?.needs.filter(
    ({ kind, param }) => kind === 'server tool' && !own.route.without.includes(param),
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

function noteUsage(
  deps: CallDeps,
  call: Call,
  target: Target,
  usage: Usage,
  estimated: boolean,
  served = target.model,
): void {
  const { catalog } = deps.partsOf(call.operation);
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
  const requested = catalog.priceOf(target, catalog.find(target.provider, target.model));
  const priceOf = (model: string): Price | undefined =>
    model === target.model
      ? requested
      : catalog.priceOf({ provider: target.provider, model }, catalog.find(target.provider, model));
  // What the vendor charges is what the call costs, unless the operator has a price of their own.
  const hasOwnPrice = catalog.hasOwnPrice(target);
  const told = hasOwnPrice || (estimated && usage.cost === 0) ? undefined : reportedCost(usage);
  // A server may answer under any name: one without a price says nothing, nor does one that stands for the operator's own.
  const price = (hasOwnPrice ? undefined : priceOf(served)) ?? requested;
  const shares = by_model?.map((each): Share => [each, priceOf(each.model)]);
  const parts: CostPart[] = told === undefined ? [] : [{ unit: 'vendor_charge', quantity: 1, usd: usage.cost ?? 0 }];
  const cost = told ?? costOf(usage, price, call.record.serviceTier, shares, parts);
  call.record.usage = usage;
  call.record.metered = { units: { prompt_tokens, completion_tokens, ...units }, cost, parts, estimated };
}

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** What a model may write when neither the caller nor the table bounds it. */
const DEFAULT_MAX_OUTPUT = 4096;

/**
 * The most a chat may come to: the estimated prompt, and as much output as the caller allows or the model can write. Its cost
 * is undefined when the price is not known.
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
 * Fields by which vendors of one kind or another let a model write more than the two limits of this format say: another limit,
 * thinking that is counted apart from it, or how many responses are written for one; with the object that holds a field.
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

/** Output tokens that a request may lead to, over all its choices, and those foretold, which are billed when they are not used. */
function maxOutput(request: ChatRequest, model: ModelInfo | undefined, own?: number): number {
  const { max_completion_tokens, max_tokens, prediction, extra_body } = request;
  const ofModel = model?.maxOutput ?? DEFAULT_MAX_OUTPUT;
  // Of two limits the larger one is sent; 0 and less mean "no limit", where they are taken.
  const limit = own ?? Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
  const most = { limit: limit > 0 ? limit : ofModel, thinking: 0, factor: 1 };
  for (const fields of extra_body === undefined ? [request] : [request, readObject(extra_body)])
    for (const { kind, name, holder } of OUTPUT_FIELDS) {
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
