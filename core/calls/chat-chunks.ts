import type { ChatChunk, ChatResponse } from '../contract/chat.ts';
import { usageChunk } from '../contract/chunks.ts';

/** A whole answer as the chunks of a stream: for vendors that answer a stream request with one JSON object. */
export function chunksOfResponse(response: ChatResponse): readonly ChatChunk[] {
  const { id, created, model, choices, usage } = response;
  const base = { id, object: 'chat.completion.chunk', created, model } as const;
  const chunks: ChatChunk[] = choices.map(({ index, message, finish_reason, logprobs }) => {
    const { role, content, refusal, reasoning_content, tool_calls, order: _order, ...others } = message;
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
            ...others,
          },
          finish_reason,
          logprobs: logprobs ?? null,
        },
      ],
    };
  });
  return usage ? [...chunks, usageChunk(base, usage)] : chunks;
}

/** Whether a chunk holds something of the answer, of whatever kind, or its end. */
export function hasContent(chunk: ChatChunk): boolean {
  return chunk.choices.some(
    ({ delta, finish_reason }) => finish_reason !== null || delta.tool_calls !== undefined || writtenBytes(delta) > 0,
  );
}

/** Whether a chunk tells why a choice has ended. */
export function isFinished({ choices }: ChatChunk): boolean {
  return choices.some(({ finish_reason }) => finish_reason !== null);
}

/** What goes out of a chunk while a stream runs: usage goes out once, at the end. */
export function withoutUsage(chunk: ChatChunk): readonly ChatChunk[] {
  if (chunk.usage === undefined) return [chunk];
  const { usage: _, ...rest } = chunk;
  return chunk.choices.length > 0 ? [rest] : [];
}

/** A chunk apart: what it adds, and what ends a choice; both where it does both. */
export function splitFinish(chunk: ChatChunk): { readonly content?: ChatChunk; readonly finish?: ChatChunk } {
  if (!isFinished(chunk)) return { content: chunk };
  if (!chunk.choices.some(({ delta }) => Object.keys(delta).length > 0)) return { finish: chunk };
  return {
    content: { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, finish_reason: null })) },
    finish: { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, delta: {} })) },
  };
}

/** UTF-8 bytes of what the model wrote in a chunk, for an estimate when no usage comes. */
export function textLength(chunk: ChatChunk): number {
  let bytes = 0;
  for (const { delta } of chunk.choices) bytes += writtenBytes(delta);
  return bytes;
}

/** What a model did not write, or what says again what another field says. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  ...['role', 'id', 'type', 'index', 'expires_at', 'format', 'annotations', 'reasoning', 'reasoning_details'],
]);

/** Characters of coded sound that count as one byte of text: about a thousand a token. */
const SOUND_PER_BYTE = 250;

/** UTF-8 bytes of whatever a model wrote in a message or a delta: text, thinking, refusals, tool calls, sound, and kinds to come. */
export function writtenBytes(written: object): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(written)) {
    if (UNCOUNTED.has(name)) continue;
    if (typeof value === 'string') bytes += name === 'data' ? value.length / SOUND_PER_BYTE : Buffer.byteLength(value);
    else if (typeof value === 'object' && value !== null) bytes += writtenBytes(value);
  }
  return bytes;
}
