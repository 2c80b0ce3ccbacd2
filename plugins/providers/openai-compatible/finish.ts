import { type FailureClass, type FinishReason, StreamFailure } from '../../../core/index.ts';
import type { Differences } from './spec.ts';

type Meaning = FinishReason | { readonly failure: FailureClass };

/** Every finish reason that was seen on this wire, in lower case. What is not here ends a choice with `stop`. */
export const FINISH_REASON = Object.freeze<Record<string, Meaning>>({
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'function_call',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  safety: 'content_filter',
  refusal: 'content_filter',
  error: { failure: 'upstream_error' },
  abort: { failure: 'upstream_error' },
  cancelled: { failure: 'upstream_error' },
  timeout: { failure: 'timeout' },
  insufficient_system_resource: { failure: 'overloaded' },
});

/**
 * A vendor's finish reason as OpenAI's. A reason that stands for a failure throws it as {@link StreamFailure}; a turn
 * that called tools ends with `tool_calls`, also where the vendor says `stop`.
 */
export function mapFinishReason(
  reason: string,
  calledTools: boolean,
  { finishReasons, keepsStop = false }: Pick<Differences, 'finishReasons' | 'keepsStop'>,
): FinishReason {
  const key = reason.toLowerCase();
  const own = finishReasons && Object.hasOwn(finishReasons, key) ? finishReasons[key] : undefined;
  const meaning = own ?? (Object.hasOwn(FINISH_REASON, key) ? FINISH_REASON[key] : undefined) ?? 'stop';
  if (typeof meaning === 'object') {
    throw new StreamFailure({
      class: meaning.failure,
      message: `The provider ended the answer with "${key.slice(0, 40)}".`,
    });
  }
  return meaning === 'stop' && calledTools && !keepsStop ? 'tool_calls' : meaning;
}
