import type { Target } from '../../contract/call.ts';
import type { ChatChunk, Usage } from '../../contract/chat.ts';
import { laterUsage, usageChunk } from '../../contract/chunks.ts';
import { GatewayError } from '../../contract/errors.ts';
import { createEventReader } from '../../contract/event-reader.ts';
import type { SseEvent, StreamProgress } from '../../contract/events.ts';
import type { CodecCall, StreamDecoder } from '../../contract/provider.ts';
import { BYTES_PER_TOKEN } from '../../contract/units.ts';
import { MEMORY_PER_BYTE } from '../../egress/attempt.ts';
import { UpstreamError, type UpstreamResponse } from '../../egress/upstream.ts';
import type { ChunkTransform } from '../plugins/compile-hooks.ts';
import {
  forgetRefused,
  type ResponseNotes,
  readFailedAttempt,
  readJson,
  responseNotes,
  sendAttempt,
} from './attempt.ts';
import type { Call, CallInput } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { type ChatPlan, planChat, recordUnmappedFinish, responseOfHook } from './chat.ts';
import { chunksOfResponse, hasContent, isFinished, splitFinish, textLength, withoutUsage } from './chat-chunks.ts';
import { webPageError } from './error-marks.ts';
import { reportBroken, tryTargets } from './failover.ts';
import { meterChat } from './meter.ts';
import { addUsage, noteSaid, resume, type Said, type Seam } from './resume.ts';
import { endWithError, type Handlers, hungUp, isShutdown, runCall } from './run-call.ts';

/** A target that has begun to respond. */
export type OpenedChat = Pick<ChatPlan, 'codec' | 'codecCall' | 'passesOn'> & {
  readonly upstreamResponse: UpstreamResponse;
};

/** How much a stream may send before its first content, so that an error inside a 200 can still fail over. */
const MAX_PEEKED = 64;

/** A stream of a target that has begun to respond. */
interface OpenStream extends ResponseNotes {
  readonly target: Target | undefined;
  /** Its end, not its beginning, says whether the target works. */
  readonly isStreaming: true;
  /** What was read of the source already. */
  readonly first: Batch;
  readonly source: Pick<Batches, 'next'>;
  /** What it says, where another target may go on with it. */
  readonly said?: Said | undefined;
  /** Hangs up. */
  destroy?(): void;
}

/** Asks one target and reads up to the first content; a failure before that lets another target try. */
async function openStream(deps: CallDeps, call: Call, target: Target): Promise<OpenStream> {
  const attempt = new AbortController();
  const abort = (): void => attempt.abort(call.signal.reason);
  if (call.signal.aborted) abort();
  call.signal.addEventListener('abort', abort, { once: true });
  call.record.attemptSignal = attempt.signal;
  const startedMs = performance.now();
  const plan = planChat(deps, call, target);
  const { provider, dropped } = plan;
  const upstreamResponse = await sendAttempt(deps, call, target, provider, plan.request);
  const said = call.route.mayResume ? noteSaid(deps, call) : undefined;
  // What goes on elsewhere is not in the vendor's events.
  const opened = { ...plan, upstreamResponse, passesOn: plan.passesOn && !said };
  const source = readChunks(opened);
  // The dialect writes what does not come as the vendor's events.
  if (plan.passesOn && (said || isWhole(opened))) call.record.lane = 'mixed';
  const chunks: ChatChunk[] = [];
  const events: SseEvent[] = [];
  const clock = startClock(call.record.timeouts?.firstTokenMs, startedMs, () => upstreamResponse.destroy());
  try {
    while (!chunks.some(hasContent) && chunks.length + events.length < MAX_PEEKED) {
      const next = await source.next();
      clock.assertInTime();
      if (next.done) break;
      chunks.push(...next.value.chunks);
      events.push(...next.value.events);
    }
  } catch (error) {
    upstreamResponse.destroy();
    clock.assertInTime();
    forgetRefused(call, error);
    throw error;
  } finally {
    clock.stop();
  }
  call.record.firstTokenMs ??= call.elapsedMs;
  // From here on the stream itself decides when to hang up.
  if (!call.signal.aborted) call.signal.removeEventListener('abort', abort);
  const { headers } = responseNotes(call, target, { dropped, endpoint: provider, upstream: upstreamResponse.headers });
  const first = { chunks, events };
  return { call, headers, target, isStreaming: true, first, source, said, destroy: () => upstreamResponse.destroy() };
}

/** The timeout of a stream's first content: when it has passed the vendor is left, and another target may respond. */
function startClock(
  limitMs: number | undefined,
  startedMs: number,
  leave: () => void,
): { assertInTime(): void; stop(): void } {
  let hasExpired = false;
  const expire = (): void => {
    hasExpired = true;
    leave();
  };
  const leftMs = limitMs === undefined ? undefined : Math.max(limitMs - (performance.now() - startedMs), 0);
  const timer = leftMs === undefined ? undefined : setTimeout(expire, leftMs);
  return {
    assertInTime() {
      if (!hasExpired) return;
      const message = `the provider sent no content within ${limitMs} ms`;
      throw new UpstreamError(message, { failure: 'timeout', phase: 'firstByte', sent: true });
    },
    stop: () => clearTimeout(timer),
  };
}

/** What came with one read of a provider's socket. */
export interface Batch {
  readonly chunks: readonly ChatChunk[];
  /** The vendor's events that the chunks were read from, where the caller gets those. */
  readonly events: readonly SseEvent[];
}

type Batches = AsyncGenerator<Batch, void, undefined>;

const NO_EVENTS: readonly SseEvent[] = Object.freeze([]);

/** Chunks that were read from no events that the caller gets. */
function batchOf(chunks: readonly ChatChunk[]): Batch {
  return { chunks, events: NO_EVENTS };
}

/** One provider's response in batches. Throws when it broke off. */
export function readChunks(opened: OpenedChat): Batches {
  return isWhole(opened) ? readWholeStream(opened) : readEventStream(opened);
}

/** Some vendors answer a stream request with one JSON object: an error, or a non-streaming response. */
function isWhole({ upstreamResponse: { headers } }: OpenedChat): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
}

async function* readWholeStream(opened: OpenedChat): Batches {
  yield batchOf(await readWhole(opened));
}

async function readWhole({ upstreamResponse, codec, codecCall }: OpenedChat): Promise<readonly ChatChunk[]> {
  return chunksOfResponse(codec.response(await readJson(upstreamResponse), codecCall));
}

async function* readEventStream({ upstreamResponse, codec, codecCall, passesOn }: OpenedChat): Batches {
  const { body, headers } = upstreamResponse;
  const decoder = codec.stream(codecCall);
  const onGrowth = (more: number): void => upstreamResponse.reserve(more * MEMORY_PER_BYTE);
  const reader = codec.reader?.({ onGrowth }) ?? createEventReader({ onGrowth });
  // A property, since the compiler takes a variable that only `decode` sets for one that never changes.
  const read: ReadSoFar = { hasBegun: false, progress: 'open' };
  const finished = decoder.progress ? undefined : new Set<number>();
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = (events: readonly SseEvent[]): Decoded => {
    const decoded = decodeEvents(decoder, events, passesOn);
    if (decoded.error !== undefined && !read.hasBegun) throw decoded.error;
    const hasMore = (!read.hasBegun || read.progress !== 'open') && decoded.chunks.some(hasContent);
    read.hasBegun ||= hasMore;
    const progress = finished ? progressOf(finished, decoded.chunks, codecCall) : (decoder.progress?.() ?? 'open');
    // Until the first content the timeout `firstToken` holds, and comments keep the stream alive.
    if (events.length > 0 && (read.hasBegun || progress !== 'open')) {
      if (hasMore && progress === read.progress) upstreamResponse.reportProgress('open');
      upstreamResponse.reportProgress(progress);
    }
    read.progress = progress;
    return decoded;
  };
  for await (const bytes of body) {
    const batch = decode(reader.push(bytes));
    if (batch.chunks.length > 0 || batch.events.length > 0) yield batch;
    if (batch.error !== undefined) throw batch.error;
    if (read.progress === 'complete') break;
  }
  const rest = read.progress === 'complete' ? NOTHING_READ : decode(reader.end());
  if (rest.chunks.length > 0 || rest.events.length > 0) yield rest;
  if (rest.error !== undefined) throw rest.error;
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield batchOf(chunks);
  if (complete) return;
  throw !read.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

/** What was read of an event stream. */
interface ReadSoFar {
  hasBegun: boolean;
  progress: StreamProgress;
}

/** The progress of a stream whose codec does not declare it: finished once each choice that was asked for has its finish reason. */
function progressOf(finished: Set<number>, chunks: readonly ChatChunk[], { request }: CodecCall): StreamProgress {
  for (const { choices } of chunks)
    for (const { index, finish_reason: reason } of choices) if (reason !== null) finished.add(index);
  return finished.size > 0 && finished.size >= (request?.n ?? 1) ? 'finished' : 'open';
}

interface Decoded extends Batch {
  readonly error?: unknown;
}

const NOTHING_READ: Decoded = Object.freeze({ chunks: Object.freeze([]), events: NO_EVENTS });

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[], passesOn: boolean): Decoded {
  const chunks: ChatChunk[] = [];
  const passed: SseEvent[] = [];
  try {
    for (const event of events) {
      chunks.push(...decoder.push(event));
      if (passesOn) passed.push(event);
      if (decoder.progress?.() === 'complete') break;
    }
    return { chunks, events: passed };
  } catch (error) {
    return { chunks, events: passed, error };
  }
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider interrupted the response before its end.');
}

/** A stream that has begun: its first chunk with content has arrived, so no other target can take over. */
export interface ChatStream extends ResponseNotes {
  /**
   * To be iterated once: what goes to the caller, as it came; its last batch has a usage chunk. Throws the GatewayError that the
   * caller gets; the call ends when the iteration does, also when it is left before its end.
   */
  readonly batches: AsyncIterable<Batch>;
  /** Ends the call of a stream that is not iterated to its end. Harmless after it. */
  close(): void;
}

/** How long a stream is read on after its caller has left, in milliseconds. */
const READ_ON_MS = 500;

/** A chat completion as a stream. Rejects before the first byte when no target responds. */
export function streamChat(deps: CallDeps, input: CallInput<'chat'>): Promise<ChatStream> {
  return runCall(deps, input, STREAM);
}

const STREAM: Handlers<OpenStream, ChatStream> = {
  respondEarly(call, answered) {
    const { response, ...notes } = responseOfHook(call, answered);
    const first = batchOf(chunksOfResponse(response));
    return { ...notes, target: call.targets[0], isStreaming: true, first, source: NONE };
  },
  callTargets: (deps, call) => tryTargets(deps, call, openStream),
  /** Lets hooks change what comes, meters it, and ends the call when it ends, breaks off or is left. */
  async respond(deps, call, opened) {
    let transform: ChunkTransform | undefined;
    try {
      transform = await call.hooks.stream?.(call);
    } catch (error) {
      opened.destroy?.();
      throw error;
    }
    if (transform?.changes && call.record.lane === 'native') call.record.lane = 'mixed';
    const running = new RunningStream(deps, call, opened, transform);
    return { call, headers: opened.headers, batches: running.batches(), close: () => running.close('aborted') };
  },
};

const NONE: Pick<Batches, 'next'> = { next: async () => ({ done: true, value: undefined }) };

/** What another target goes on with, behind the seam. */
async function* joinAt(seam: Seam, { first, source }: OpenStream): Batches {
  const join = ({ chunks }: Batch): Batch =>
    batchOf(chunks.map((chunk) => seam.push(chunk)).filter((chunk) => hasContent(chunk) || chunk.usage));
  yield join(first);
  for (let next = await source.next(); !next.done; next = await source.next()) yield join(next.value);
}

/** One stream on its way out: usage, what was written, and the way it ends. */
class RunningStream {
  readonly #deps: CallDeps;
  readonly #call: Call;
  readonly #said: Said | undefined;
  readonly #transform: ChunkTransform | undefined;
  #opened: OpenStream;
  /** Where another target goes on, and what those before it have used. */
  #seam: Seam | undefined;
  #before: Usage | undefined;
  #startedMs = performance.now();
  #usage: Usage | undefined;
  #tier: unknown;
  #writtenBytes = 0;
  #last: ChatChunk | undefined;
  #isFirst = true;
  #isRead = false;
  #hangUp: NodeJS.Timeout | undefined;

  constructor(deps: CallDeps, call: Call, opened: OpenStream, transform: ChunkTransform | undefined) {
    this.#deps = deps;
    this.#call = call;
    this.#opened = opened;
    this.#said = opened.said;
    this.#transform = transform;
    if (call.signal.aborted) this.#onLeave();
    else call.signal.addEventListener('abort', this.#onLeave, { once: true });
  }

  /** The caller has left: what still comes within a moment is read for what it costs, such as the usage at its end. */
  readonly #onLeave = (): void => {
    if (isShutdown(this.#call.signal)) this.#opened.destroy?.();
    else this.#hangUp ??= setTimeout(() => this.#opened.destroy?.(), READ_ON_MS);
  };

  /** What comes next from the provider. */
  #read(): Promise<IteratorResult<Batch, void>> {
    if (!this.#isFirst) {
      const next = this.#opened.source.next();
      return this.#said ? next.catch((thrown: unknown) => this.#goOn(this.#said as Said, thrown)) : next;
    }
    this.#isFirst = false;
    return Promise.resolve({ value: this.#opened.first });
  }

  /** Lets another target say the rest of what its vendor broke off. */
  async #goOn(said: Said, thrown: unknown): Promise<IteratorResult<Batch, void>> {
    const { target, destroy } = this.#opened;
    if (!target || this.#call.signal.aborted) throw thrown;
    destroy?.();
    const meter = (): void => this.#meter();
    const broken = { said, target, thrown, meter, open: openStream };
    const { opened, seam, before } = await resume(this.#deps, this.#call, broken);
    this.#opened = { ...opened, source: joinAt(seam, opened) };
    this.#seam = seam;
    this.#before = before;
    this.#startedMs = performance.now();
    this.#usage = undefined;
    this.#tier = undefined;
    this.#writtenBytes = 0;
    return this.#read();
  }

  /** The next batch, which is not passed on once the caller has left. */
  async #next(): Promise<Batch | undefined> {
    for (;;) {
      const { done, value } = await this.#read();
      if (done && !this.#isRead) this.#call.record.lastTokenMs = this.#call.elapsedMs;
      this.#isRead ||= done === true;
      if (!this.#call.signal.aborted) return done ? undefined : value;
      if (done) throw hungUp();
      for (const chunk of value.chunks) this.#count(chunk);
    }
  }

  /** Reads on for a moment after the reader wants no more. */
  async #readOn(): Promise<void> {
    if (this.#isRead || this.#call.record.metered) return;
    this.#onLeave();
    try {
      for (let next = await this.#read(); !next.done; next = await this.#read())
        for (const chunk of next.value.chunks) this.#count(chunk);
    } catch {
      // Whatever went wrong with it: what came is counted.
    }
  }

  async *batches(): Batches {
    try {
      if (this.#transform?.changes) yield* this.#transformed(this.#transform);
      // Not `for await`: that would hang up where its reader stops.
      else
        for (let batch = await this.#next(); batch; batch = await this.#next()) {
          const chunks: ChatChunk[] = [];
          for (const chunk of batch.chunks) {
            this.#count(chunk);
            if (this.#transform?.observe) await this.#transform.observe(chunk);
            if (chunk.usage === undefined) chunks.push(chunk);
            else chunks.push(...withoutUsage(chunk));
          }
          if (chunks.length > 0 || batch.events.length > 0) yield { chunks, events: batch.events };
        }
      this.#meter();
      const usage = this.#call.record.usage ?? this.#usage;
      if (this.#last && usage) yield batchOf([usageChunk(this.#last, usage)]);
      this.close('ok');
    } catch (thrown) {
      throw await this.#fail(thrown);
    } finally {
      await this.#readOn();
      this.close('aborted');
    }
  }

  /** What finishes a choice is kept back until the transforms have given all that they hold. */
  async *#transformed(transform: ChunkTransform): Batches {
    const finishing: ChatChunk[] = [];
    let isStopped = false;
    try {
      for (let batch = await this.#next(); batch; batch = await this.#next())
        for (const chunk of batch.chunks) {
          isStopped = true;
          const changed: ChatChunk[] = [];
          for (const { content, finish } of withoutUsage(chunk).map(splitFinish)) {
            if (finish) finishing.push(finish);
            if (!content) continue;
            const pushed = transform.push(content);
            changed.push(...(pushed instanceof Promise ? await pushed : pushed));
          }
          isStopped = false;
          this.#count(chunk);
          if (transform.observe) await transform.observe(chunk);
          if (changed.length > 0) yield batchOf(changed);
        }
    } catch (error) {
      // What a transform holds back when it ends the stream must not come out after all.
      if (!isStopped && !this.#call.signal.aborted) yield batchOf(await transform.end());
      throw error;
    }
    yield batchOf(await transform.end());
    yield batchOf(finishing);
  }

  /** Notes usage and text as the provider sent them. */
  #count(chunk: ChatChunk): void {
    if (chunk.usage) this.#usage = laterUsage(this.#usage, chunk.usage);
    this.#tier = chunk['service_tier'] ?? this.#tier;
    this.#writtenBytes += textLength(chunk);
    if (isFinished(chunk)) recordUnmappedFinish(this.#deps, this.#call, chunk.choices);
    this.#said?.note(chunk);
    this.#last = chunk;
  }

  #meter(): void {
    const { record } = this.#call;
    const { target } = this.#opened;
    if (record.metered || !target) return;
    record.upstreamMs += performance.now() - this.#startedMs;
    const writtenTokens = () => Math.ceil(this.#writtenBytes / BYTES_PER_TOKEN);
    // Of a stream that was cut, what the vendor reported on its way may be less than what it has written.
    const isTold = this.#isRead || (this.#usage?.completion_tokens ?? 0) >= writtenTokens();
    const model = this.#seam ? this.#seam.served : this.#last?.model;
    const told = { usage: isTold ? this.#usage : undefined, model, service_tier: this.#tier };
    meterChat(this.#deps, this.#call, target, told, writtenTokens);
    if (this.#before) record.usage = addUsage(this.#before, record.usage);
  }

  async #fail(thrown: unknown): Promise<GatewayError> {
    this.#opened.destroy?.();
    let error = thrown;
    try {
      this.#meter();
      const { target } = this.#opened;
      if (!this.#call.signal.aborted && target) {
        const failed = readFailedAttempt(thrown, target, this.#deps.partsOf('chat').offers.get(target.provider));
        if (!this.#said || this.#said.reported !== thrown) reportBroken(this.#deps, this.#call, target, failed);
        ({ error } = failed);
      }
    } catch (other) {
      error = other;
    }
    return endWithError(this.#deps, this.#call, error);
  }

  close(status: 'ok' | 'aborted'): void {
    clearTimeout(this.#hangUp);
    this.#call.signal.removeEventListener('abort', this.#onLeave);
    this.#opened.destroy?.();
    this.#meter();
    this.#call.finish(status);
  }
}
