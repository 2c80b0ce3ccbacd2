import { GatewayError } from '../errors.ts';
import type { StreamDecoder } from '../provider.ts';
import { readEvents } from '../sse.ts';
import { BYTES_PER_TOKEN } from '../tokens.ts';
import type { Call, Target } from '../types/call.ts';
import type { ChatChunk, Usage } from '../types/chat.ts';
import type { UpstreamResponse } from '../upstream.ts';
import { failedAttempt, noteRefusal, PageError } from './attempt.ts';
import type { AnswerNotes, OpenedChat } from './chat.ts';
import { MAX_RESPONSE_BYTES, parseAnswer } from './chat.ts';
import { chunksOfResponse } from './chunks.ts';
import type { LiveCall } from './live-call.ts';
import { meterChat } from './meter.ts';
import { endWithError, finishBeside, type PipelineDeps } from './run.ts';

/** A stream that has begun: its first chunk with something in it has arrived, so no other target can take over. */
export interface ChatStream extends AnswerNotes {
  /** Batches of chunks as they arrive. Throws the GatewayError that the caller is told in an error frame. */
  readonly batches: AsyncGenerator<readonly ChatChunk[], void>;
  /** Ends the call, once: after the last byte, after an error, or when the caller left. */
  close(): void;
}

type Batch = readonly ChatChunk[];

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
  const source = decode(opened);
  const peeked: ChatChunk[] = [];
  try {
    while (!peeked.some(hasContent) && peeked.length < MAX_PEEK_CHUNKS) {
      const next = await source.next();
      if (next.done) break;
      peeked.push(...next.value);
    }
  } catch (error) {
    upstreamResponse.destroy();
    noteRefusal(call as unknown as LiveCall, error);
    throw error;
  }
  const live = new LiveStream(deps, call, target, upstreamResponse);
  return {
    call: call as unknown as LiveCall,
    target,
    dropped,
    rateLimits,
    batches: live.run(peeked, source),
    close: () => live.close(),
  };
}

function hasContent(chunk: ChatChunk): boolean {
  return chunk.choices.some(
    ({ delta, finish_reason }) =>
      finish_reason !== null ||
      Boolean(delta.content) ||
      Boolean(delta.reasoning_content) ||
      delta.tool_calls !== undefined ||
      Boolean(delta.refusal),
  );
}

/** The decoded chunks of an upstream answer; throws when it broke off, that is ended without a terminal sign. */
async function* decode(opened: OpenedChat): AsyncGenerator<Batch, void> {
  const { upstreamResponse, codec, codecInfo } = opened;
  if (isJson(upstreamResponse)) {
    yield chunksOfResponse(codec.response(parseAnswer(await upstreamResponse.readAll(MAX_RESPONSE_BYTES)), codecInfo));
    return;
  }
  const decoder = codec.stream(codecInfo);
  let begun = false;
  for await (const events of readEvents(upstreamResponse.body)) {
    const { chunks, error } = decodeEvents(decoder, events);
    // What came with an error is passed on before it; but while nothing was, another target may still answer.
    if (chunks.length > 0 && (begun || !error)) yield chunks;
    if (error) throw error;
    begun ||= chunks.some(hasContent);
  }
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield chunks;
  if (complete) return;
  if (!begun && upstreamResponse.headers['content-type']?.startsWith('text/html')) throw new PageError();
  throw new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}

function decodeEvents(
  decoder: StreamDecoder,
  events: readonly { readonly event?: string | undefined; readonly data: string }[],
): { readonly chunks: Batch; readonly error?: unknown } {
  const [only] = events;
  if (events.length === 1 && only) return { chunks: decoder.push(only) };
  const chunks: ChatChunk[] = [];
  try {
    for (const event of events) chunks.push(...decoder.push(event));
    return { chunks };
  } catch (error) {
    return { chunks, error };
  }
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole answer. */
function isJson(response: UpstreamResponse): boolean {
  return response.headers['content-type']?.startsWith('application/json') ?? false;
}

/** One running stream: hooks, usage and the way it ends. */
class LiveStream {
  #usage: Usage | undefined;
  #textBytes = 0;
  #ended = false;
  #last: ChatChunk | undefined;
  readonly #deps: PipelineDeps;
  readonly #call: LiveCall<'chat'>;
  readonly #target: Target;
  readonly #upstream: UpstreamResponse;
  readonly #started = performance.now();

  constructor(deps: PipelineDeps, call: LiveCall<'chat'>, target: Target, upstream: UpstreamResponse) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#upstream = upstream;
  }

  async *run(peeked: Batch, source: AsyncGenerator<Batch, void>): AsyncGenerator<Batch, void> {
    try {
      const first = this.#outward(peeked);
      if (first.length > 0) yield first;
      for await (const batch of source) {
        const chunks = this.#outward(batch);
        if (chunks.length > 0) yield chunks;
      }
      this.#ended = true;
      const usage = this.#usageChunk();
      if (usage) yield [usage];
    } catch (thrown) {
      throw await this.#fail(thrown);
    } finally {
      this.#upstream.destroy();
    }
  }

  close(): void {
    this.#upstream.destroy();
    this.#meter();
    finishBeside(this.#deps, this.#call as unknown as LiveCall, this.#ended ? 'ok' : 'aborted');
  }

  /** Runs the chunk hooks, notes usage, and takes out what the caller did not ask for. */
  #outward(batch: Batch): Batch {
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
    const { id, created, model } = this.#last;
    return { id, object: 'chat.completion.chunk', created, model, choices: [], usage };
  }

  #meter(): void {
    if (this.#call.measures.usage) return;
    this.#call.measures.upstreamMs += performance.now() - this.#started;
    meterChat(this.#deps, this.#call, this.#target, this.#usage, () => Math.ceil(this.#textBytes / BYTES_PER_TOKEN));
  }

  async #fail(thrown: unknown): Promise<GatewayError> {
    this.#meter();
    const call = this.#call as unknown as LiveCall;
    let error = thrown;
    if (!call.signal.aborted) {
      try {
        ({ error } = failedAttempt(thrown, this.#target));
      } catch (other) {
        error = other;
      }
    }
    return endWithError(this.#deps, call, error);
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
