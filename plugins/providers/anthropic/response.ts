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
  const answer = readObject(body);
  if (answer['type'] === 'error' || answer['error']) throw new StreamFailure(anthropicFailure(200, body, {}));
  if (!Array.isArray(answer['content'])) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider answered without content.' });
  }
  const { text, reasoning, calls } = readBlocks(answer['content']);
  const thinking = thinkingBlocksOf({ role: 'assistant', thinking_blocks: answer['content'] });
  const reason = readString(answer['stop_reason']) ?? 'end_turn';
  const refusal = refusalText(reason, answer['stop_details']);
  const usage = anthropicUsage(answer['usage']);
  return {
    id: readString(answer['id']) ?? call.id,
    object: 'chat.completion',
    created: call.created,
    model: readString(answer['model']) ?? call.model,
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
  };
}

function readBlocks(content: unknown): { text: string; reasoning: string; calls: readonly ToolCall[] } {
  let text = '';
  let answer: string | undefined;
  let reasoning = '';
  const calls: ToolCall[] = [];
  for (const block of readArray(content).filter(isObject)) {
    if (block['type'] === 'text') text += readString(block['text']) ?? '';
    if (block['type'] === 'thinking') reasoning += readString(block['thinking']) ?? '';
    if (block['type'] !== 'tool_use') continue;
    const { id, name, input } = block;
    const json = JSON.stringify(input ?? {});
    if (name === ANSWER_TOOL) answer = json;
    else if (typeof id === 'string' && typeof name === 'string') {
      calls.push({ id, type: 'function', function: { name, arguments: json } });
    }
  }
  // A formed answer is the whole content: words beside it would break its form.
  return { text: answer ?? text, reasoning, calls };
}
