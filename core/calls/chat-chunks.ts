import type { AssistantMessage, ChatChunk, ChatDelta, ChatResponse } from '../../contract/chat.ts';
import { usageChunk } from '../../contract/chunks.ts';

/** Converts a non-streaming response to chunks, for vendors that return one JSON object for a stream request. */
export function chunksOfResponse(response: ChatResponse): readonly ChatChunk[] {
  const { id, created, model, choices, usage } = response;
  const base = { id, object: 'chat.completion.chunk', created, model } as const;
  const chunks = choices.flatMap(({ index, message, finish_reason, finish, logprobs }): readonly ChatChunk[] => {
    const chunkOf = (delta: ChatDelta): ChatChunk => ({
      ...base,
      choices: [{ index, delta, finish_reason: null, logprobs: null }],
    });
    const deltas = deltasOf(message);
    const last = { index, delta: deltas.at(-1) ?? {}, finish_reason, ...(finish && { finish }), logprobs };
    return [...deltas.slice(0, -1).map(chunkOf), { ...base, choices: [{ ...last, logprobs: logprobs ?? null }] }];
  });
  return usage ? [...chunks, usageChunk(base, usage)] : chunks;
}

/**
 * Converts a message to deltas: one for most messages, one for each block if the message has the order of its blocks.
 */
function deltasOf({ order = [], ...message }: AssistantMessage): readonly ChatDelta[] {
  const { role, content, refusal, reasoning_content, reasoning_details = [], tool_calls = [], ...rest } = message;
  const calls = tool_calls.map((call, at) => ({ index: at, ...call }));
  const reasoning = reasoning_content === undefined ? {} : { reasoning_content };
  const others = { ...rest, ...(refusal !== null && { refusal }) };
  if (order.length < 2) {
    const details = reasoning_details.length > 0 && { reasoning_details };
    return [{ role, content, ...reasoning, ...details, ...(calls.length > 0 && { tool_calls: calls }), ...others }];
  }
  const blocks = order.flatMap((block): readonly ChatDelta[] => {
    const [kind, at] = block.split(':');
    const index = Number(at);
    const [call, detail] = [calls[index], reasoning_details[index]];
    if (kind === 'content' && index === 0) return [{ content }];
    if (kind === 'tool' && call) return [{ tool_calls: [call] }];
    if (kind !== 'reasoning') return [];
    if (!detail) return index === 0 ? [reasoning] : [];
    return [{ ...(detail.text !== undefined && { reasoning_content: detail.text }), reasoning_details: [detail] }];
  });
  return [{ role, ...blocks[0] }, ...blocks.slice(1), ...(Object.keys(others).length > 0 ? [others] : [])];
}

/** Returns whether a chunk holds any part of the response, or its end. */
export function hasContent(chunk: ChatChunk): boolean {
  return chunk.choices.some(
    ({ delta, finish_reason }) => finish_reason !== null || delta.tool_calls !== undefined || writtenBytes(delta) > 0,
  );
}

/** Returns whether a chunk has the finish reason of a choice. */
export function isFinished({ choices }: ChatChunk): boolean {
  return choices.some(({ finish_reason }) => finish_reason !== null);
}

/** Removes the usage, which is sent once, at the end of the stream. Returns no chunk if nothing is left. */
export function withoutUsage(chunk: ChatChunk): readonly ChatChunk[] {
  if (chunk.usage === undefined) return [chunk];
  const { usage: _, ...rest } = chunk;
  return chunk.choices.length > 0 ? [rest] : [];
}

/** Splits a chunk into its content and the end of a choice. Returns both if it has both. */
export function splitFinish(chunk: ChatChunk): { readonly content?: ChatChunk; readonly finish?: ChatChunk } {
  if (!isFinished(chunk)) return { content: chunk };
  if (!chunk.choices.some(({ delta }) => Object.keys(delta).length > 0)) return { finish: chunk };
  return {
    content: { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, finish_reason: null })) },
    finish: { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, delta: {} })) },
  };
}

/** UTF-8 bytes of the model's output in a chunk, for an estimate if no usage is reported. */
export function textLength(chunk: ChatChunk): number {
  let bytes = 0;
  for (const { delta } of chunk.choices) bytes += writtenBytes(delta);
  return bytes;
}

/** Fields that a model did not write, or that repeat another field. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  ...['role', 'id', 'type', 'index', 'expires_at', 'format', 'annotations', 'reasoning', 'reasoning_details'],
]);

/** Characters of encoded audio that count as one byte of text: about a thousand a token. */
const SOUND_PER_BYTE = 250;

/**
 * UTF-8 bytes of a model's output in a message or a delta: text, reasoning, refusals, tool calls, audio and future
 * kinds.
 */
export function writtenBytes(written: object): number {
  const fields = written as Readonly<Record<string, unknown>>;
  let bytes = 0;
  for (const name in fields) {
    if (UNCOUNTED.has(name)) continue;
    const value = fields[name];
    if (typeof value === 'string') bytes += name === 'data' ? value.length / SOUND_PER_BYTE : Buffer.byteLength(value);
    else if (typeof value === 'object' && value !== null) bytes += writtenBytes(value);
  }
  return bytes;
}
