import type { ChatChunk, ChatDelta, FinishReason, Usage } from './chat.ts';
import type { CodecCall } from './provider.ts';

/** Fields that every chunk of a stream repeats. */
export interface ChunkHead {
  readonly id: string;
  readonly model: string;
  readonly created: number;
}

/** Returns the head of a stream before the first event of the vendor. */
export function chunkHead(call: CodecCall): ChunkHead {
  return { id: call.id, model: call.model, created: call.created };
}

/** Creates a chunk with one choice. */
export function deltaChunk(
  head: ChunkHead,
  delta: ChatDelta,
  options: { readonly index?: number; readonly finish?: FinishReason; readonly logprobs?: unknown } = {},
): ChatChunk {
  const { index = 0, finish = null, logprobs = null } = options;
  return {
    id: head.id,
    object: 'chat.completion.chunk',
    created: head.created,
    model: head.model,
    choices: [{ index, delta, finish_reason: finish, logprobs }],
  };
}

/** Merges usage with that of a later event: counts are totals so far and never decrease. */
export function laterUsage(before: Usage | undefined, now: Usage): Usage {
  if (!before || (now.prompt_tokens >= before.prompt_tokens && now.completion_tokens >= before.completion_tokens))
    return before?.units && !now.units ? { ...now, units: before.units } : now;
  const { prompt_tokens, prompt_tokens_details } = now.prompt_tokens < before.prompt_tokens ? before : now;
  const { completion_tokens, completion_tokens_details } =
    now.completion_tokens < before.completion_tokens ? before : now;
  return {
    ...before,
    ...now,
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    ...(prompt_tokens_details && { prompt_tokens_details }),
    ...(completion_tokens_details && { completion_tokens_details }),
    ...(before.cost !== undefined && { cost: Math.max(before.cost, now.cost ?? 0) }),
  };
}

/** Creates the final usage chunk of a stream: no choices, usage of the whole call. */
export function usageChunk(head: ChunkHead, usage: Usage): ChatChunk {
  return { id: head.id, object: 'chat.completion.chunk', created: head.created, model: head.model, choices: [], usage };
}
