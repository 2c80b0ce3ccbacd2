import type { Call, Target } from '../contract/call.ts';
import type { Usage } from '../contract/chat.ts';
import { findSpeechModel } from '../speech/check.ts';
import { estimateSpeech, speechPrice } from '../speech/price.ts';
import { countCharacters } from '../speech/split-text.ts';
import type { LiveCall } from './live-call.ts';
import { costOf, estimate } from './pricing.ts';
import type { PipelineDeps } from './run.ts';
import { estimateInputTokens } from './tokens.ts';

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not tell is estimated from the request
 * and `written` (its answer's tokens, estimated) and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: PipelineDeps,
  call: LiveCall<'chat'>,
  target: Target,
  usage: Usage | undefined,
  written: () => number,
): void {
  const counted = usage && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens) ? usage : undefined;
  call.measures.estimated = counted === undefined;
  call.measures.usage = counted ?? estimatedUsage(estimateInputTokens(call.request), written());
  price(deps, call, target);
}

/** The same for embeddings, which have input only. */
export function meterEmbeddings(
  deps: PipelineDeps,
  call: LiveCall<'embeddings'>,
  target: Target,
  usage: { readonly prompt_tokens: number } | undefined,
): void {
  const told = usage && isCount(usage.prompt_tokens) ? usage.prompt_tokens : undefined;
  call.measures.estimated = told === undefined;
  call.measures.usage = estimatedUsage(told ?? estimateInputTokens(call.request), 0);
  price(deps, call, target);
}

/** The most a call may cost, over all its targets, in micro-dollars; undefined when one of them has no known price. */
export function estimateCost(
  { catalog, speech }: Pick<PipelineDeps, 'catalog' | 'speech'>,
  call: Call,
): number | undefined {
  if (isSpoken(call)) return estimateSpoken(speech, call);
  if (!isWritten(call)) return undefined;
  const { request, targets } = call;
  let most = 0;
  for (const target of targets) {
    const model = catalog.find(target.provider, target.model);
    const cost = estimate(request, model, catalog.priceOf(target, model));
    if (cost === undefined) return undefined;
    most = Math.max(most, cost);
  }
  return most;
}

function estimateSpoken(
  vendors: PipelineDeps['speech'],
  { request, targets: [target] }: Call<'speech'>,
): number | undefined {
  const vendor = target && vendors.get(target.provider);
  if (!vendor) return undefined;
  const { info, name } = findSpeechModel(vendor, target.model);
  return estimateSpeech(countCharacters(request.text), request.speed ?? 1, speechPrice(vendor, name, info));
}

/**
 * What a call owes whose answer never came whole (the caller left, a clock ran out, the vendor broke off) although the
 * vendor may have worked on it: its prompt, estimated, once, at the price of the target that was sent it last. An error
 * status, or nothing sent, owes nothing. Speech meters itself: by the characters that were sent.
 */
export function meterUnanswered(deps: PipelineDeps, call: LiveCall): void {
  const { unanswered, usage } = call.measures;
  const target = unanswered.at(-1);
  if (usage || !target || !isWritten(call)) return;
  call.measures.target = target;
  call.measures.estimated = true;
  call.measures.usage = estimatedUsage(estimateInputTokens(call.request), 0);
  price(deps, call, target);
}

function isSpoken(call: Call): call is Call<'speech'> {
  return call.operation === 'speech';
}

function isWritten(call: Call): call is Call<'chat' | 'embeddings'> {
  return call.operation !== 'speech';
}

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function price(deps: PipelineDeps, call: LiveCall, target: Target): void {
  const { usage } = call.measures;
  call.measures.cost =
    usage && costOf(usage, deps.catalog.priceOf(target, deps.catalog.find(target.provider, target.model)));
}

/** More tokens than any call has, by far: a number beyond it is a vendor's mistake, which nobody is charged for. */
const MAX_TOKENS = 100_000_000;

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TOKENS;
}
