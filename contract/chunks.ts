import type { ChatChunk, ChatDelta, FinishReason, Usage } from './chat.ts';
import type { CodecCall } from './provider.ts';

/** What every chunk of one stream repeats. */
export interface ChunkHead {
  readonly id: string;
  readonly model: string;
  readonly created: number;
}

/** The head of a stream whose vendor has told nothing yet. */
export function chunkHead(call: CodecCall): ChunkHead {
  return { id: call.id, model: call.model, created: call.created };
}

/** A chunk with one choice. */
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

/** What a stream has used, with what a later event says of it: counts are of all so far, and never fall. */
export function laterUsage(before: Usage | undefined, now: Usage): Usage {
  if (!before || (now.prompt_tokens >= before.prompt_tokens && now.completion_tokens >= before.completion_tokens))
    return before?.units && !now.units ? { ...now, units: before.units } : now;
  const { prompt_tokens, prompt_tokens_details } = now.prompt_tokens < before.prompt_tokens ? before : now;
  const { completion_tokens, completion_tokens_details } =
    now.completion_tokens < before.completion_tokens ? before : now;
  return {
    ...before,
    ...now,
    ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    ...(prompt_tokens_details && { prompt_tokens_details }),
    ...(completion_tokens_details && { completion_tokens_details }),
    ...(before.cost !== undefined && { cost: Math.max(before.cost, now.cost ?? 0) }),
  };
}

/** The chunk that ends a stream's counting: no choices, the whole call's usage. */
export function usageChunk(head: ChunkHead, usage: Usage): ChatChunk {
  return { id: head.id, object: 'chat.completion.chunk', created: head.created, model: head.model, choices: [], usage };
}
