import type { Call, Target } from '../contract/call.ts';
import type { ChatRequest, Usage } from '../contract/chat.ts';
import { deepFreeze } from '../contract/json.ts';
import type { Metered } from '../contract/operation.ts';
import type { CallDeps } from './call-deps.ts';
import { LiveCall } from './live-call.ts';
import { costOf, estimateChat, maxOutput, toldCost } from './pricing.ts';
import { estimateInputTokens } from './tokens.ts';

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not tell is estimated from the request
 * and `writtenTokens` (what its response has, estimated) and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: CallDeps,
  call: LiveCall,
  target: Target,
  usage: Usage | undefined,
  writtenTokens: () => number,
): void {
  const isTold = usage !== undefined && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens);
  const counted = isTold ? usage : estimateWritten(deps, call, target, writtenTokens());
  noteUsage(deps, call, target, counted, !isTold);
}

/** An estimate never counts more than was reserved: a vendor does not write more than it was allowed to. */
function estimateWritten(deps: CallDeps, call: LiveCall, { provider, model }: Target, written: number): Usage {
  const request = call.request as ChatRequest;
  const most = maxOutput(request, deps.partsOf(call.operation).catalog.find(provider, model));
  return estimatedUsage(estimateInputTokens(request), Math.min(written, most));
}

/**
 * What a call owes whose response never came whole (the caller left, a clock ran out, the vendor broke off) although the vendor
 * may have worked on it: what was to be sent, estimated, once, at the price of the target that was sent it last. An error
 * status, or nothing sent, owes nothing.
 */
export function meterUnfinished(deps: CallDeps, call: LiveCall): void {
  const target = call.record.sentTo.at(-1);
  if (call.record.metered || !target) return;
  call.record.target = target;
  if (call.operation === 'chat')
    noteUsage(deps, call, target, estimatedUsage(estimateInputTokens(call.request as ChatRequest), 0), true);
  else call.record.metered = { ...estimateAt(deps, call, target), estimated: true };
}

/** What was estimated of a call, as long as it has the same request and targets. */
interface Estimate {
  readonly request: Call['request'];
  readonly targets: Call['targets'];
  readonly most: Metered;
}

const ESTIMATE = Symbol('estimate');

/** The most a call may come to, over all its targets; its cost is undefined when one of them has no known price. Several policies ask for it. */
export function estimateCall(deps: CallDeps, call: Call): Metered {
  const { request, targets } = call;
  const known = call.state.get(ESTIMATE) as Estimate | undefined;
  if (known?.request === request && known.targets === targets) return known.most;
  const most = deepFreeze(estimateMost(deps, call));
  call.state.set(ESTIMATE, { request, targets, most });
  return most;
}

function estimateMost(deps: CallDeps, call: Call): Metered {
  const [only] = call.targets;
  if (only && call.targets.length === 1) return estimateAt(deps, call, only);
  const each = call.targets.map((target) => estimateAt(deps, call, target));
  const units: Record<string, number> = {};
  for (const { units: some } of each)
    for (const [unit, amount] of Object.entries(some)) units[unit] = Math.max(units[unit] ?? 0, amount);
  const costs = each.map(({ cost }) => cost).filter((cost) => cost !== undefined);
  if (costs.length < each.length) return { units, cost: undefined };
  // Where two may be asked at the same time, both are owed.
  const isTwice = call instanceof LiveCall && call.hedge !== undefined;
  const [most = 0, next = 0] = costs.sort((a, b) => b - a);
  return { units, cost: isTwice ? most + next : most };
}

/** The most a call may come to at one target. */
export function estimateAt(deps: CallDeps, call: Call, target: Target): Metered {
  const { catalog, offers, definition } = deps.partsOf(call.operation);
  const model = catalog.find(target.provider, target.model);
  const price = catalog.priceOf(target, model);
  const offer = offers.get(target.provider);
  if (definition && offer) return definition.estimate(call.request, { target, offer, model, price } as never);
  return estimateChat(call.request as ChatRequest, model, price);
}

function noteUsage(deps: CallDeps, call: LiveCall, target: Target, usage: Usage, estimated: boolean): void {
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
