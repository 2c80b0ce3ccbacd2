import type { Target } from '../contract/call.ts';
import type { ChatChunk, Usage } from '../contract/chat.ts';
import { usageChunk } from '../contract/chunks.ts';
import type { GatewayError } from '../contract/errors.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { failedAttempt, noteRefusal } from './attempt.ts';
import { hasContent } from './chat-chunks.ts';
import type { LiveCall } from './live-call.ts';
import { meterChat } from './meter.ts';
import type { AnswerNotes, OpenedChat } from './open-chat.ts';
import { type ChatBatch, readChunks } from './read-chunks.ts';
import { endWithError, finishBeside, type PipelineDeps } from './run.ts';
import { BYTES_PER_TOKEN } from './tokens.ts';

/** A stream that has begun: its first chunk with something in it has arrived, so no other target can take over. */
export interface ChatStream extends AnswerNotes {
  /** What the caller gets, read once. Throws the GatewayError that the caller is told in an error frame. */
  readonly chunks: AsyncIterable<ChatChunk>;
  /** Ends the call, once: after the last byte, after an error, or when the caller left. */
  close(): void;
}

/** How much a stream may send before its first content, so that an error inside a 200 can still fail over. */
const MAX_PEEK_CHUNKS = 64;

/** Reads up to the first content and answers the stream from there; a failure before that lets another target try. */
export async function openStream(
  deps: PipelineDeps,
  call: LiveCall<'chat'>,
  target: Target,
  opened: OpenedChat,
): Promise<ChatStream> {
  const { upstreamResponse, dropped, rateLimits } = opened;
  const source = readChunks(opened);
  const peeked: ChatChunk[] = [];
  try {
    while (!peeked.some(hasContent) && peeked.length < MAX_PEEK_CHUNKS) {
      const { done, value } = await source.next();
      if (done) break;
      peeked.push(...value);
    }
  } catch (error) {
    upstreamResponse.destroy();
    noteRefusal(call, error);
    throw error;
  }
  const running = new RunningStream(deps, call, target, upstreamResponse);
  return {
    call,
    target,
    dropped,
    rateLimits,
    chunks: running.relay(peeked, source),
    close: () => running.close(),
  };
}

/** One stream on its way to the caller: hooks, usage and the way it ends. */
class RunningStream {
  #usage: Usage | undefined;
  #textBytes = 0;
  #isComplete = false;
  #last: ChatChunk | undefined;
  readonly #deps: PipelineDeps;
  readonly #call: LiveCall<'chat'>;
  readonly #target: Target;
  readonly #upstream: UpstreamResponse;
  readonly #startedAt = performance.now();

  constructor(deps: PipelineDeps, call: LiveCall<'chat'>, target: Target, upstream: UpstreamResponse) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#upstream = upstream;
  }

  /** `peeked` was read before the stream was known to have begun; `source` has the rest. */
  async *relay(peeked: ChatBatch, source: AsyncIterable<ChatBatch>): AsyncGenerator<ChatChunk> {
    try {
      yield* this.#outward(peeked);
      for await (const batch of source) yield* this.#outward(batch);
      this.#isComplete = true;
      const usage = this.#usageChunk();
      if (usage) yield usage;
    } catch (thrown) {
      throw await this.#fail(thrown);
    }
  }

  close(): void {
    this.#upstream.destroy();
    this.#meter();
    finishBeside(this.#deps, this.#call, this.#isComplete ? 'ok' : 'aborted');
  }

  /** Runs the chunk hooks, notes usage, and takes out what the caller did not ask for. */
  *#outward(batch: ChatBatch): Generator<ChatChunk> {
    const { chunk: hook } = this.#deps.hooks.chat;
    for (const chunk of batch) {
      if (chunk.usage) this.#usage = chunk.usage;
      const changed = hook ? hook(this.#call, chunk) : chunk;
      if (changed === null) continue;
      const kept = changed ?? chunk;
      this.#last = kept;
      this.#textBytes += textLength(kept);
      if (kept.usage === undefined) yield kept;
      else if (kept.choices.length > 0) yield withoutUsage(kept);
    }
  }

  /** The one usage chunk at the end, for a caller who asked for it. */
  #usageChunk(): ChatChunk | undefined {
    this.#meter();
    const { usage } = this.#call.measures;
    if (this.#call.request.stream_options?.include_usage !== true || !usage || !this.#last) return undefined;
    return usageChunk(this.#last, usage);
  }

  #meter(): void {
    if (this.#call.measures.usage) return;
    this.#call.measures.upstreamMs += performance.now() - this.#startedAt;
    meterChat(this.#deps, this.#call, this.#target, this.#usage, () => Math.ceil(this.#textBytes / BYTES_PER_TOKEN));
  }

  /** Ends the call that failed; answers the error as the `error` hooks leave it. */
  #fail(thrown: unknown): Promise<GatewayError> {
    this.#upstream.destroy();
    const call = this.#call;
    let error = thrown;
    try {
      this.#meter();
      if (!call.signal.aborted) ({ error } = failedAttempt(thrown, this.#target));
    } catch (other) {
      error = other;
    }
    return endWithError(this.#deps, call, error);
  }
}

function withoutUsage(chunk: ChatChunk): ChatChunk {
  const { usage: _, ...rest } = chunk;
  return rest;
}

/** UTF-8 bytes of what the model wrote in a chunk, for an estimate when no usage comes. */
function textLength(chunk: ChatChunk): number {
  let bytes = 0;
  for (const { delta } of chunk.choices) {
    if (delta.content) bytes += Buffer.byteLength(delta.content);
    if (delta.reasoning_content) bytes += Buffer.byteLength(delta.reasoning_content);
    if (delta.tool_calls)
      for (const call of delta.tool_calls) bytes += Buffer.byteLength(call.function?.arguments ?? '');
  }
  return bytes;
}
