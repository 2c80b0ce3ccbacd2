import {
  type ChatResponse,
  type CodecCall,
  isObject,
  readArray,
  readObject,
  readString,
  StreamFailure,
  type ToolCall,
} from '../../../core/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';
import { anthropicFailure } from './errors.ts';
import { finishReason, refusalText } from './finish.ts';
import { thinkingBlocksOf } from './messages.ts';
import { anthropicUsage } from './usage.ts';

/** A message as a chat completion. Throws {@link StreamFailure} when a 200 holds none. */
export function anthropicResponse(body: unknown, call: CodecCall): ChatResponse {
  const message = readObject(body);
  if (message['type'] === 'error' || message['error']) throw new StreamFailure(anthropicFailure(200, body, {}));
  if (!Array.isArray(message['content'])) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent a message without content.' });
  }
  const { text, reasoning, calls } = readBlocks(message['content']);
  const thinking = thinkingBlocksOf({ role: 'assistant', thinking_blocks: message['content'] });
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
          ...(thinking.length > 0 && { thinking_blocks: thinking }),
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        finish_reason: finishReason(reason, calls.length > 0),
        logprobs: null,
      },
    ],
    ...(usage && { usage }),
    ...(isObject(message['context_management']) && { context_management: message['context_management'] }),
  };
}

function readBlocks(content: unknown): { text: string; reasoning: string; calls: readonly ToolCall[] } {
  let text = '';
  let formed: string | undefined;
  let reasoning = '';
  const calls: ToolCall[] = [];
  for (const block of readArray(content).filter(isObject)) {
    if (block['type'] === 'text') text += readString(block['text']) ?? '';
    if (block['type'] === 'thinking') reasoning += readString(block['thinking']) ?? '';
    if (block['type'] !== 'tool_use') continue;
    const { id, name, input } = block;
    const json = JSON.stringify(input ?? {});
    if (name === ANSWER_TOOL) formed = json;
    else if (typeof id === 'string' && typeof name === 'string') {
      calls.push({ id, type: 'function', function: { name, arguments: json } });
    }
  }
  // A formed answer is the whole content: words beside it would break its form.
  return { text: formed ?? text, reasoning, calls };
}
