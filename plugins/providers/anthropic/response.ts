import {
  type ChatResponse,
  type CodecCall,
  isObject,
  readObject,
  readString,
  StreamFailure,
} from '../../../core/index.ts';
import { anthropicFailure } from './errors.ts';
import { finishReason, nativeFinish, refusalText } from './finish.ts';
import { readBlocks } from './response-blocks.ts';
import { anthropicUsage } from './usage.ts';

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
