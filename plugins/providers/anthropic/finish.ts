import { type FinishReason, type NativeFinish, readObject, readString } from '../../../core/index.ts';

const FINISH_REASON: Readonly<Record<string, FinishReason>> = Object.freeze({
  end_turn: 'stop',
  stop_sequence: 'stop',
  // A server tool's loop paused; the caller goes on by sending the answer back.
  pause_turn: 'stop',
  compaction: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
});

/** OpenAI's word for a stop reason. `called` is whether the caller's own tools were: a formed answer is a call too. */
export function finishReason(reason: string, called: boolean): FinishReason {
  const known = Object.hasOwn(FINISH_REASON, reason) ? FINISH_REASON[reason] : undefined;
  return known === 'tool_calls' && !called ? 'stop' : (known ?? 'stop');
}

/** The vendor's own word for it, and which stop sequence it was. */
export function nativeFinish(reason: string, sequence: unknown): NativeFinish {
  const stop = readString(sequence);
  return { native: reason, ...(stop !== undefined && { stop_sequence: stop }) };
}

/** What the vendor says of a refusal; null when there was none. */
export function refusalText(reason: string | undefined, details: unknown): string | null {
  if (reason !== 'refusal') return null;
  return readString(readObject(details)['explanation']) ?? 'The model refused to answer.';
}
