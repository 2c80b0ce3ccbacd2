import type { FinishReason, NativeFinish, Usage } from '../../../core/index.ts';
import type { MessagesUsage } from './types.ts';

/** Reasons of this format's own provider that no other word says. */
const OWN_REASONS: ReadonlySet<string> = new Set([
  'pause_turn',
  'model_context_window_exceeded',
  'compaction',
  'refusal',
]);

/** What is known at the end of a message. */
export interface Ending {
  readonly finishReason: FinishReason | undefined;
  readonly finish: NativeFinish | undefined;
  readonly hasCalls: boolean;
  readonly isRefused: boolean;
}

/** Why the model stopped, and by which of the caller's stop sequences where the provider tells it. */
export function stopOf({ finishReason, finish = {}, hasCalls, isRefused }: Ending): {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
} {
  const { native, stop_sequence: sequence } = finish;
  const reason = (stop_reason: string) => ({ stop_reason, stop_sequence: null });
  if (native !== undefined && OWN_REASONS.has(native)) return reason(native);
  if (finishReason === 'length') return reason('max_tokens');
  if (finishReason === 'content_filter') return reason('refusal');
  // A client that is not told so never runs the tool, whatever the provider calls the end.
  if (hasCalls) return reason('tool_use');
  if (isRefused) return reason('refusal');
  if (sequence !== undefined) return { stop_reason: 'stop_sequence', stop_sequence: sequence };
  return reason('end_turn');
}

/** Counts of this format: what was cached or written to a cache is beside the input, not in it. */
export function usageOf(usage: Usage | null | undefined, estimatedInput: number): MessagesUsage {
  const { cached_tokens: cached = 0, cache_write_tokens: written = 0 } = usage?.prompt_tokens_details ?? {};
  const hour = usage?.prompt_tokens_details?.cache_write_1h_tokens ?? 0;
  return {
    input_tokens: usage ? Math.max(usage.prompt_tokens - cached - written, 0) : estimatedInput,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    ...(written > 0 && {
      cache_creation: { ephemeral_5m_input_tokens: Math.max(written - hour, 0), ephemeral_1h_input_tokens: hour },
    }),
    output_tokens: usage?.completion_tokens ?? 0,
  };
}
