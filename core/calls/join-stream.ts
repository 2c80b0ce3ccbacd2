import type { ChatChoice, ChatChunk, ChatResponse, ToolCallDelta, Usage } from '../../contract/chat.ts';
import { laterUsage } from '../../contract/chunks.ts';
import { GatewayError } from '../../contract/errors.ts';
import { createEventReader } from '../../contract/event-reader.ts';
import type { SseEvent } from '../../contract/events.ts';
import { type JsonObject, readObject } from '../../contract/json.ts';
import type { ChatCodec, CodecCall, Endpoint } from '../../contract/provider.ts';
import { cutKey } from '../../contract/redaction.ts';
import { MEMORY_PER_BYTE } from '../../egress/attempt.ts';
import type { UpstreamResponse } from '../../egress/upstream.ts';
import { MAX_RESPONSE_BYTES } from './attempt.ts';

/** Reads a stream to its end and returns it as a whole response, for vendors that stream without a request for it. */
export async function joinStream(
  response: UpstreamResponse,
  codec: Pick<ChatCodec, 'stream' | 'reader'>,
  codecCall: CodecCall,
  endpoint: Endpoint,
): Promise<ChatResponse> {
  const decoder = codec.stream(codecCall);
  const onGrowth = (more: number): void => response.reserve(more * MEMORY_PER_BYTE);
  const reader = codec.reader?.({ onGrowth }) ?? createEventReader({ onGrowth });
  const joined = new JoinedResponse(codecCall);
  let size = 0;
  const read = (events: readonly SseEvent[]): void => {
    for (const event of events)
      if (decoder.progress?.() !== 'complete')
        joined.add(decoder.push({ ...event, data: cutKey(event.data, endpoint) }));
  };
  for await (const bytes of response.body) {
    size += bytes.length;
    if (size > MAX_RESPONSE_BYTES)
      throw new GatewayError('provider_invalid_response', 'The provider returned a stream that is too long.');
    response.reserve(bytes.length * MEMORY_PER_BYTE);
    read(reader.push(bytes));
    const progress = decoder.progress?.() ?? 'open';
    response.reportProgress(progress);
    if (progress === 'complete') break;
  }
  read(reader.end());
  const { chunks, complete, dropped } = decoder.end();
  joined.add(chunks);
  if (!complete)
    throw new GatewayError('provider_unavailable', 'The provider interrupted the response before its end. Try again.');
  return { ...joined.response(), ...(dropped && { dropped }) };
}

/** Choice of a stream so far. */
interface OpenChoice {
  readonly message: JsonObject;
  readonly calls: Map<number, JsonObject>;
  /** Fields of the last chunk: the finish reason. */
  last: JsonObject;
  logprobs: JsonObject | null;
}

/** Whole response from the chunks of a stream. */
export class JoinedResponse {
  readonly #choices = new Map<number, OpenChoice>();
  #head: JsonObject;
  #usage: Usage | undefined;

  constructor({ id, created, model }: Pick<CodecCall, 'id' | 'created' | 'model'>) {
    this.#head = { id, created, model };
  }

  add(chunks: readonly ChatChunk[]): void {
    for (const { choices, usage, object: _object, ...head } of chunks) {
      this.#head = { ...this.#head, ...head };
      if (usage) this.#usage = laterUsage(this.#usage, usage);
      for (const { index, delta, logprobs, ...last } of choices) {
        const choice = this.#choices.get(index) ?? { message: {}, calls: new Map(), last: {}, logprobs: null };
        this.#choices.set(index, choice);
        const { tool_calls: calls = [], ...fields } = delta;
        append(choice.message, fields);
        for (const call of calls) addCall(choice.calls, call);
        if (last.finish_reason !== null) choice.last = last;
        if (logprobs) {
          choice.logprobs ??= {};
          append(choice.logprobs, logprobs);
        }
      }
    }
  }

  response(): ChatResponse {
    const choices = [...this.#choices].map(([index, { message, calls, last, logprobs }]) => ({
      index,
      message: {
        role: 'assistant',
        content: null,
        refusal: null,
        ...message,
        ...(calls.size > 0 && { tool_calls: [...calls.values()] }),
      },
      logprobs,
      finish_reason: 'stop',
      ...last,
    })) as readonly unknown[] as readonly ChatChoice[];
    const head = this.#head as Pick<ChatResponse, 'id' | 'created' | 'model'>;
    return { ...head, object: 'chat.completion', choices, ...(this.#usage && { usage: this.#usage }) };
  }
}

function addCall(calls: Map<number, JsonObject>, { index, id, ...call }: ToolCallDelta): void {
  const known = calls.get(index) ?? {};
  calls.set(index, known);
  if (id !== undefined) known['id'] = id;
  for (const [name, value] of Object.entries(call))
    if (typeof value === 'object' && value !== null) {
      const before = readObject(known[name]);
      known[name] = before;
      append(before, value);
    } else known[name] = value;
}

/** Fields of a delta that replace the earlier value. Other texts continue it. */
const REPLACED: ReadonlySet<string> = new Set(['role', 'name', 'id', 'type']);

/** Adds a delta: texts and lists continue the earlier ones. */
function append(target: JsonObject, delta: object): void {
  for (const [name, value] of Object.entries(delta)) {
    const before = target[name];
    if (value === null || value === undefined) target[name] ??= value;
    else if (typeof before === 'string' && typeof value === 'string' && !REPLACED.has(name))
      target[name] = before + value;
    else if (Array.isArray(before) && Array.isArray(value)) for (const item of value as unknown[]) before.push(item);
    // A list of its own, which later deltas extend.
    else target[name] = Array.isArray(value) ? [...(value as unknown[])] : value;
  }
}
