import type { ChatChunk, ChatResponse } from '../contract/chat.ts';
import { usageChunk } from '../contract/chunks.ts';

/** A whole answer as the chunks of a stream: for vendors that answer a stream request with one JSON object. */
export function chunksOfResponse(response: ChatResponse): readonly ChatChunk[] {
  const { id, created, model, choices, usage } = response;
  const base = { id, object: 'chat.completion.chunk', created, model } as const;
  const chunks: ChatChunk[] = choices.map(({ index, message, finish_reason, logprobs }) => {
    const { role, content, refusal, reasoning_content, tool_calls } = message;
    return {
      ...base,
      choices: [
        {
          index,
          delta: {
            role,
            content,
            ...(refusal !== null && { refusal }),
            ...(reasoning_content !== undefined && { reasoning_content }),
            ...(tool_calls && { tool_calls: tool_calls.map((call, at) => ({ index: at, ...call })) }),
          },
          finish_reason,
          logprobs: logprobs ?? null,
        },
      ],
    };
  });
  return usage ? [...chunks, usageChunk(base, usage)] : chunks;
}

/** Whether a chunk holds something of the answer: text, thinking, a tool call, a refusal, or its end. */
export function hasContent(chunk: ChatChunk): boolean {
  return chunk.choices.some(
    ({ delta, finish_reason }) =>
      finish_reason !== null ||
      Boolean(delta.content) ||
      Boolean(delta.reasoning_content) ||
      delta.tool_calls !== undefined ||
      Boolean(delta.refusal),
  );
}
