import {
  type ChatResponse,
  type CodecCall,
  type FinishReason,
  isObject,
  type NativeFinish,
  readObject,
  readString,
  StreamFailure,
} from '../../../core/index.ts';
import { anthropicFailure } from './errors.ts';
import { readBlocks } from './response-blocks.ts';
import { anthropicUsage } from './usage.ts';

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

/** A message as a chat completion. Throws {@link StreamFailure} when a 200 holds none. */
export function anthropicResponse(body: unknown, call: CodecCall): ChatResponse {
  const message = readObject(body);
  if (message['type'] === 'error' || message['error']) throw new StreamFailure(anthropicFailure(200, body, {}));
  if (!Array.isArray(message['content'])) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent a message without content.' });
  }
  const { text, reasoning, details, calls, annotations, opaque, order } = readBlocks(message['content']);
  const reason = readString(message['stop_reason']) ?? 'end_turn';
  const refusal = refusalText(reason, message['stop_details']);
  const usage = anthropicUsage(message['usage']);
  return {
    id: readString(message['id']) ?? call.id,
    object: 'chat.completion',
    created: call.created,
    model: readString(message['model']) ?? call.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && (calls.length > 0 || refusal !== null) ? null : text,
          refusal,
          ...(reasoning !== '' && { reasoning_content: reasoning }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(calls.length > 0 && { tool_calls: calls }),
          ...(annotations.length > 0 && { annotations }),
          ...(opaque.length > 0 && { opaque }),
          ...(order && { order }),
        },
        finish_reason: finishReason(reason, calls.length > 0),
        finish: nativeFinish(reason, message['stop_sequence']),
        logprobs: null,
      },
    ],
    ...(usage && { usage }),
    ...(isObject(message['context_management']) && { context_management: message['context_management'] }),
  };
}
