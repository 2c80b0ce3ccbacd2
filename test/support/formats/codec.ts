import { readFileSync } from 'node:fs';
import { createEventReader } from '../../../contract/event-reader.ts';
import type {
  ChatChunk,
  ChatMessage,
  ChatRequest,
  CodecCall,
  SseEvent,
  StreamDecoder,
} from '../../../contract/index.ts';

/** Call as a codec sees it, with some fields replaced. */
export function codecCall(fields: Partial<CodecCall> = {}): CodecCall {
  return { model: 'test-model', stream: false, created: 1_790_000_000, id: 'chatcmpl-test', ...fields };
}

/** Request with one user message, and the test's fields. */
export function chatRequest(fields: Partial<ChatRequest> = {}): ChatRequest {
  return { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], ...fields };
}

/** Fixture of a vendor, as bytes. */
export function fixture(path: string): Buffer {
  return readFileSync(new URL(`../../fixtures/${path}`, import.meta.url));
}

/** JSON fixture of a vendor. */
export function jsonFixture(path: string): unknown {
  return JSON.parse(fixture(path).toString('utf8'));
}

/** Server-sent events of a complete stream. */
export function readSse(bytes: Uint8Array): readonly SseEvent[] {
  const reader = createEventReader();
  return [...reader.push(bytes), ...reader.end()];
}

export interface Decoded {
  readonly chunks: readonly ChatChunk[];
  readonly complete: boolean;
}

/** All chunks that a decoder returns for these events. */
export function decode(decoder: StreamDecoder, events: Iterable<SseEvent>): Decoded {
  const chunks: ChatChunk[] = [];
  for (const event of events) chunks.push(...decoder.push(event));
  const { chunks: last, complete } = decoder.end();
  return { chunks: [...chunks, ...last], complete };
}

/** Combined chunks of one choice, as a client sees them. */
export interface Collected {
  content: string;
  reasoning: string;
  refusal: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string[];
  roles: number;
}

/** Combines the deltas of one choice as OpenAI's SDKs do: texts in order, tool calls by index. */
export function collect(chunks: readonly ChatChunk[], index = 0): Collected {
  const whole: Collected = { content: '', reasoning: '', refusal: '', calls: [], finish: [], roles: 0 };
  for (const choice of chunks.flatMap(({ choices }) => choices).filter((item) => item.index === index)) {
    const { delta, finish_reason } = choice;
    if (delta.role) whole.roles += 1;
    whole.content += delta.content ?? '';
    whole.reasoning += delta.reasoning_content ?? '';
    whole.refusal += delta.refusal ?? '';
    for (const call of delta.tool_calls ?? []) {
      const known = whole.calls[call.index] ?? { id: '', name: '', arguments: '' };
      whole.calls[call.index] = known;
      known.id ||= call.id ?? '';
      known.name += call.function?.name ?? '';
      known.arguments += call.function?.arguments ?? '';
    }
    if (finish_reason) whole.finish.push(finish_reason);
  }
  return whole;
}

/** User message. */
export const user = (content: ChatMessage['content'] = null): ChatMessage => ({ role: 'user', content });

/** Assistant message that calls `do_<id>` for each id. */
export const called = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: `do_${id}`, arguments: '{"a":1}' } })),
});

/** Tool message. */
export const result = (id: string, content: ChatMessage['content'] = null): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
