import type { Call, Target } from '../contract/call.ts';
import type { ChatChunk, Usage } from '../contract/chat.ts';
import { usageChunk } from '../contract/chunks.ts';
import { type GatewayError, toGatewayError } from '../contract/errors.ts';
import { NOT_YET, next, type Pull } from '../upstream/pull.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { failedAttempt, noteRefusal } from './attempt.ts';
import type { AnswerNotes, OpenedChat } from './chat.ts';
import { hasContent } from './chat-chunks.ts';
import { type ChatBatch, type ChatSource, createChatSource } from './chat-source.ts';
import type { LiveCall } from './live-call.ts';
import { meterChat } from './meter.ts';
import { endWithError, finishBeside, type PipelineDeps } from './run.ts';
import { BYTES_PER_TOKEN } from './tokens.ts';

/** A stream that has begun: its first chunk with something in it has arrived, so no other target can take over. */
export interface ChatStream extends AnswerNotes, Pull<ChatBatch> {
  /** What comes next. Throws the GatewayError that the caller is told in an error frame. */
  read(): ChatBatch | undefined | typeof NOT_YET;
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
  const peeked: ChatChunk[] = [];
  let source: ChatSource;
  try {
    source = await createChatSource(opened);
    while (!peeked.some(hasContent) && peeked.length < MAX_PEEK_CHUNKS) {
      const batch = await next(source);
      if (!batch) break;
      peeked.push(...batch);
    }
  } catch (error) {
    upstreamResponse.destroy();
    noteRefusal(call as unknown as LiveCall, error);
    throw error;
  }
  const live = new LiveStream(deps, call, target, { upstream: upstreamResponse, source, peeked });
  return {
    call: call as unknown as LiveCall,
    target,
    dropped,
    rateLimits,
    read: () => live.read(),
    whenReadable: (listener) => live.whenReadable(listener),
    close: () => live.close(),
  };
}

interface Begun {
  readonly upstream: UpstreamResponse;
  readonly source: ChatSource;
  readonly peeked: readonly ChatChunk[];
}

/** One running stream: hooks, usage and the way it ends. */
class LiveStream {
  #usage: Usage | undefined;
  #textBytes = 0;
  #ended = false;
  /** The end of a stream that failed, with the error that `read` throws then. */
  #failing: Promise<void> | undefined;
  #error: GatewayError | undefined;
  #last: ChatChunk | undefined;
  readonly #deps: PipelineDeps;
  readonly #call: LiveCall<'chat'>;
  readonly #target: Target;
  readonly #upstream: UpstreamResponse;
  readonly #source: ChatSource;
  readonly #started = performance.now();
  /** What was read before the stream was known to have begun. */
  #peeked: readonly ChatChunk[] | undefined;

  constructor(deps: PipelineDeps, call: LiveCall<'chat'>, target: Target, begun: Begun) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#upstream = begun.upstream;
    this.#source = begun.source;
    this.#peeked = begun.peeked;
  }

  read(): ChatBatch | undefined | typeof NOT_YET {
    if (this.#error) throw this.#error;
    if (this.#ended) return undefined;
    if (this.#failing) return NOT_YET;
    try {
      for (;;) {
        const batch = this.#peeked ?? this.#source.read();
        this.#peeked = undefined;
        if (batch === NOT_YET) return NOT_YET;
        if (!batch) return this.#end();
        const chunks = this.#outward(batch);
        if (chunks.length > 0) return chunks;
      }
    } catch (thrown) {
      this.#upstream.destroy();
      this.#failing = this.#fail(thrown).catch((other: unknown) => {
        this.#error = toGatewayError(other);
      });
      return NOT_YET;
    }
  }

  whenReadable(listener: () => void): void {
    if (this.#failing) void this.#failing.then(listener);
    else this.#source.whenReadable(listener);
  }

  #end(): ChatBatch | undefined {
    this.#ended = true;
    const usage = this.#usageChunk();
    return usage && [usage];
  }

  close(): void {
    this.#upstream.destroy();
    this.#meter();
    finishBeside(this.#deps, this.#call as unknown as LiveCall, this.#ended ? 'ok' : 'aborted');
  }

  /** Runs the chunk hooks, notes usage, and takes out what the caller did not ask for. */
  #outward(batch: readonly ChatChunk[]): readonly ChatChunk[] {
    const { chunk: hook } = this.#deps.hooks.chat;
    const out: ChatChunk[] = [];
    for (const chunk of batch) {
      if (chunk.usage) this.#usage = chunk.usage;
      const changed = hook ? hook(this.#call as unknown as Call<'chat'>, chunk) : chunk;
      if (changed === null) continue;
      const kept = changed ?? chunk;
      this.#last = kept;
      this.#textBytes += textLength(kept);
      if (kept.usage === undefined) out.push(kept);
      else if (kept.choices.length > 0) out.push(withoutUsage(kept));
    }
    return out;
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
    this.#call.measures.upstreamMs += performance.now() - this.#started;
    meterChat(this.#deps, this.#call, this.#target, this.#usage, () => Math.ceil(this.#textBytes / BYTES_PER_TOKEN));
  }

  async #fail(thrown: unknown): Promise<void> {
    const call = this.#call as unknown as LiveCall;
    let error = thrown;
    try {
      this.#meter();
      if (!call.signal.aborted) ({ error } = failedAttempt(thrown, this.#target));
    } catch (other) {
      error = other;
    }
    this.#error = await endWithError(this.#deps, call, error);
  }
}

function withoutUsage(chunk: ChatChunk): ChatChunk {
  const { usage: _, ...rest } = chunk;
  return rest as ChatChunk;
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
