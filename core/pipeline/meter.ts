import { costOf } from '../pricing.ts';
import { estimateInputTokens, estimateTextTokens } from '../tokens.ts';
import type { Call, Target } from '../types/call.ts';
import type { ChatRequest, EmbeddingRequest, Usage } from '../types/chat.ts';
import type { LiveCall } from './live-call.ts';
import type { PipelineDeps } from './run.ts';

/**
 * Notes what a chat call used and what that costs. Usage that the provider did not tell is estimated from the request
 * and `text` and marked so: it is never zero and never skipped.
 */
export function meterChat(
  deps: PipelineDeps,
  call: LiveCall<'chat'>,
  target: Target,
  usage: Usage | undefined,
  text: () => string,
): void {
  const counted = usage && isCount(usage.prompt_tokens) && isCount(usage.completion_tokens) ? usage : undefined;
  call.measures.estimated = counted === undefined;
  call.measures.usage = counted ?? estimatedUsage(estimateInputTokens(call.request), estimateTextTokens(text()));
  price(deps, call as unknown as LiveCall, target);
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
  call.measures.usage = estimatedUsage(told ?? estimateInputTokens(call.request as EmbeddingRequest | ChatRequest), 0);
  price(deps, call as unknown as LiveCall, target);
}

/** The most a call may cost, over all its targets, in micro-dollars; undefined when one of them has no known price. */
export function estimateCost(deps: Pick<PipelineDeps, 'catalog'>, call: Call): number | undefined {
  if (call.operation === 'speech') return undefined;
  const { request, targets } = call as Call<'chat' | 'embeddings'>;
  const input = estimateInputTokens(request);
  let most = 0;
  for (const { provider, model } of targets) {
    const known = deps.catalog.priceOf(provider, model);
    if (!known) return undefined;
    most = Math.max(most, costOf(estimatedUsage(input, outputLimit(request, deps.catalog.find(provider, model)?.maxOutput)), known));
  }
  return most;
}

/** How many tokens an answer may have: what the caller allows, else what the model can, within reason for a reservation. */
function outputLimit(request: ChatRequest | EmbeddingRequest, modelLimit: number | undefined): number {
  if (!('messages' in request)) return 0;
  const { max_completion_tokens, max_tokens, n } = request as ChatRequest;
  const asked = max_completion_tokens ?? max_tokens;
  const each = asked ?? Math.min(modelLimit ?? DEFAULT_OUTPUT_TOKENS, DEFAULT_OUTPUT_TOKENS);
  return each * (n ?? 1);
}

/** Reserved for an answer whose caller set no limit; the true cost is settled afterwards. */
const DEFAULT_OUTPUT_TOKENS = 4096;

function estimatedUsage(prompt: number, completion: number): Usage {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function price(deps: PipelineDeps, call: LiveCall, target: Target): void {
  const known = deps.catalog.priceOf(target.provider, target.model);
  call.measures.cost = known && call.measures.usage ? costOf(call.measures.usage, known) : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
