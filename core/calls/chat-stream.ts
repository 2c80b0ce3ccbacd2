import type { Target } from '../../contract/call.ts';
import type { ChatChunk, ChatResponse, Usage } from '../../contract/chat.ts';
import { laterUsage, usageChunk } from '../../contract/chunks.ts';
import { GatewayError } from '../../contract/errors.ts';
import { createEventReader } from '../../contract/event-reader.ts';
import type { SseEvent, StreamProgress } from '../../contract/events.ts';
import type { Answered } from '../../contract/hooks.ts';
import type { CodecCall, Endpoint, StreamDecoder } from '../../contract/provider.ts';
import { cutKey } from '../../contract/redaction.ts';
import { BYTES_PER_TOKEN } from '../../contract/units.ts';
import { MEMORY_PER_BYTE } from '../../egress/attempt.ts';
import { UpstreamError, type UpstreamResponse } from '../../egress/upstream.ts';
import type { ChunkTransform } from '../plugins/compile-hooks.ts';
import { forgetRefused, readFailedAttempt, readJson, readRejection, rememberRejected, sendAttempt } from './attempt.ts';
import { type Call, recordDropped } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { type ChatPlan, planChat, recordUnmappedFinish, takeDropped, takeHookResponse, writtenTokens } from './chat.ts';
import { chunksOfResponse, hasContent, isFinished, splitFinish, textLength, withoutUsage } from './chat-chunks.ts';
import { webPageError } from './error-marks.ts';
import { reportBroken, tryTargets } from './failover.ts';
import { JoinedResponse } from './join-stream.ts';
import { addUsage, meterChat } from './meter.ts';
import { isRequired, isUnforced, lacksCall, requestAgain, requiresCall } from './required-call.ts';
import { type ResumePoint, recordPrefix, resume, type StreamPrefix } from './resume.ts';
import { endWithError, hungUp, isShutdown, runCall } from './run-call.ts';

/** Target that has begun to respond. */
export type OpenedChat = Pick<ChatPlan, 'codec' | 'codecCall' | 'passesOn' | 'passesSame'> & {
  readonly call: Call;
  readonly upstreamResponse: UpstreamResponse;
  /** Endpoint with the key that was sent. */
  readonly endpoint?: Endpoint | undefined;
};

/**
 * Maximum number of chunks and events that are read before the first content. An error inside a 200 can still fail
 * over.
 */
const MAX_PEEKED = 64;

/** Stream of a target that has begun to respond. */
interface OpenStream {
  readonly target: Target | undefined;
  /** Batches that were read from the source already. */
  readonly first: readonly Batch[];
  readonly source: Pick<Batches, 'next'>;
  /** Text so far, if another target may resume the stream. */
  readonly prefix?: StreamPrefix | undefined;
  /** True if batches may have events that are equivalent to their chunks. */
  readonly passesSame?: boolean;
  /** Complete and metered response that lacks a call which the caller requires. */
  readonly withoutCall?: ChatResponse | undefined;
  /** Usage of an earlier request for the same response. */
  readonly before?: Usage | undefined;
  /** Closes the connection. */
  destroy?(): void;
}

/**
 * Sends the request to one target and reads up to the first content. After an earlier failure another target can be
 * tried.
 */
function openStream(deps: CallDeps, call: Call, target: Target): Promise<OpenStream> {
  return requiresCall(call) ? openForced(deps, call, target) : openTarget(deps, call, target);
}

/** Opens a stream that requires a tool call, and another one if it ends without one. */
async function openForced(deps: CallDeps, call: Call, target: Target): Promise<OpenStream> {
  const opened = await openTarget(deps, call, target);
  if (!opened.withoutCall) return opened;
  const before = call.record.usage;
  const hasCall = ({ withoutCall }: OpenStream): boolean => !withoutCall;
  const second = await requestAgain(deps, call, target, opened.withoutCall, openTarget, hasCall);
  return { ...second, before };
}

async function openTarget(deps: CallDeps, call: Call, target: Target): Promise<OpenStream> {
  const attempt = new AbortController();
  const abort = (): void => attempt.abort(call.signal.reason);
  if (call.signal.aborted) abort();
  call.signal.addEventListener('abort', abort, { once: true });
  call.record.attemptSignal = attempt.signal;
  const startedMs = performance.now();
  const planned = planChat(deps, call, target);
  const plan = 'then' in planned ? await planned : planned;
  const upstreamResponse = await sendAttempt(deps, call, target, plan.provider, plan.request);
  const prefix = call.record.rule?.resume ? recordPrefix(call) : undefined;
  // The vendor's events do not include text of a target that resumes the stream.
  const passesSame = plan.passesSame && !prefix;
  const endpoint = call.record.key?.endpoint ?? plan.provider;
  const { codec, codecCall } = plan;
  const opened = { call, codec, codecCall, upstreamResponse, endpoint, passesOn: plan.passesOn && !prefix, passesSame };
  const source = readChunks(opened);
  // The dialect writes the response if it does not consist of the vendor's events.
  if (plan.passesOn && (prefix || isWhole(opened))) call.record.lane = 'mixed';
  const first: Batch[] = [];
  let peeked = 0;
  let withoutCall: ChatResponse | undefined;
  const clock = startClock(call.record.timeouts?.firstTokenMs, startedMs, () => upstreamResponse.destroy());
  try {
    while (peeked < MAX_PEEKED) {
      const next = await source.next();
      clock.assertInTime();
      if (next.done) break;
      first.push(next.value);
      if (next.value.chunks.some(hasContent)) break;
      peeked += next.value.chunks.length + next.value.events.length;
    }
    clock.stop();
    if (isUnforced(call)) withoutCall = await readToCall(opened, target, first, source);
  } catch (error) {
    upstreamResponse.destroy();
    clock.assertInTime();
    forgetRefused(call, error);
    readRejection(deps, call, target, { request: plan.request, error });
    throw error;
  } finally {
    clock.stop();
  }
  rememberRejected(deps, call);
  call.record.firstTokenMs ??= call.elapsedMs;
  // From here on the stream itself closes the connection.
  if (!call.signal.aborted) call.signal.removeEventListener('abort', abort);
  call.record.providerHeaders = upstreamResponse.headers;
  call.record.goesOn = true;
  return { target, first, source, prefix, passesSame, withoutCall, destroy: () => upstreamResponse.destroy() };
}

/**
 * Reads a stream up to a call that the caller requires, and adds its batches to `first`. Returns the metered response if it
 * ends without one.
 */
async function readToCall(
  { call, codecCall, upstreamResponse }: OpenedChat,
  target: Target,
  first: Batch[],
  source: Batches,
): Promise<ChatResponse | undefined> {
  const joined = new JoinedResponse(codecCall);
  for (let at = 0; ; at += 1) {
    if (at === first.length) {
      const next = await source.next();
      if (next.done) break;
      first.push(next.value);
    }
    const { chunks = [] } = first[at] ?? {};
    if (chunks.some((chunk) => hasRequiredCall(call, chunk))) return undefined;
    for (const chunk of chunks) upstreamResponse.reserve(textLength(chunk) * MEMORY_PER_BYTE);
    joined.add(chunks);
  }
  const response = joined.response();
  if (!lacksCall(call, response)) return undefined;
  meterChat(call, target, response, () => writtenTokens(response));
  return response;
}

function hasRequiredCall(call: Call, { choices }: ChatChunk): boolean {
  return choices.some(({ delta }) => delta.tool_calls?.some((part) => isRequired(call, part.function?.name)));
}

/**
 * Starts the timeout of a stream's first content. At its end the connection is closed, and another target can be tried.
 */
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

/** Result of one read from a provider's socket. */
export interface Batch {
  readonly chunks: readonly ChatChunk[];
  /**
   * Vendor's events, if the caller gets those. For the canonical format these are events that are equivalent to all
   * chunks of the batch.
   */
  readonly events: readonly SseEvent[];
}

type Batches = AsyncGenerator<Batch, void, undefined>;

const NO_EVENTS: readonly SseEvent[] = Object.freeze([]);

/** Batch without events for the caller. */
function batchOf(chunks: readonly ChatChunk[]): Batch {
  return { chunks, events: NO_EVENTS };
}

/** Reads a provider's response in batches. Throws if it was interrupted. */
export function readChunks(opened: OpenedChat): Batches {
  return isWhole(opened) ? readWholeStream(opened) : readEventStream(opened);
}

/** Returns whether the response to a stream request is one JSON object: an error, or a non-streaming response. */
function isWhole({ upstreamResponse: { headers } }: OpenedChat): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
}

async function* readWholeStream(opened: OpenedChat): Batches {
  yield batchOf(await readWhole(opened));
}

async function readWhole(opened: OpenedChat): Promise<readonly ChatChunk[]> {
  const { call, upstreamResponse, codec, codecCall, endpoint } = opened;
  const response = codec.response(await readJson(upstreamResponse, undefined, endpoint), codecCall);
  return chunksOfResponse(response.dropped ? takeDropped(call, response, response.dropped) : response);
}

async function* readEventStream(opened: OpenedChat): Batches {
  const { upstreamResponse, codec, codecCall } = opened;
  const { body, headers } = upstreamResponse;
  const decoder = codec.stream(codecCall);
  const onGrowth = (more: number): void => upstreamResponse.reserve(more * MEMORY_PER_BYTE);
  const reader = codec.reader?.({ onGrowth }) ?? createEventReader({ onGrowth });
  // An object, since the compiler assumes that a variable which only `decode` sets never changes.
  const read: ReadSoFar = { hasBegun: false, progress: 'open' };
  const finished = decoder.progress ? undefined : new Set<number>();
  /**
   * Decodes events. Chunks before an error are returned first. Before any content the error is thrown, so that another
   * target can be tried.
   */
  const decode = (events: readonly SseEvent[]): Decoded => {
    const decoded = decodeEvents(decoder, events, opened);
    if (decoded.error !== undefined && !read.hasBegun) throw decoded.error;
    const hasMore = (!read.hasBegun || read.progress !== 'open') && decoded.batches.some(hasContents);
    read.hasBegun ||= hasMore;
    const progress = finished ? progressOf(finished, decoded.batches, codecCall) : (decoder.progress?.() ?? 'open');
    // Until the first content the timeout `firstToken` applies, and comments keep the stream alive.
    if (events.length > 0 && (read.hasBegun || progress !== 'open')) {
      if (hasMore && progress === read.progress) upstreamResponse.reportProgress('open');
      upstreamResponse.reportProgress(progress);
    }
    read.progress = progress;
    return decoded;
  };
  for await (const bytes of body) {
    const { batches, error } = decode(reader.push(bytes));
    for (const batch of batches) yield batch;
    if (error !== undefined) throw error;
    if (read.progress === 'complete') break;
  }
  const rest = read.progress === 'complete' ? NOTHING_READ : decode(reader.end());
  for (const batch of rest.batches) yield batch;
  if (rest.error !== undefined) throw rest.error;
  const { chunks, complete, dropped } = decoder.end();
  if (dropped) recordDropped(opened.call, dropped);
  const original = opened.passesSame ? decoder.original?.() : undefined;
  if (chunks.length > 0) yield { chunks, events: original ? [original] : NO_EVENTS };
  if (complete) return;
  throw !read.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

function hasContents({ chunks }: Batch): boolean {
  return chunks.some(hasContent);
}

/** State of an event stream. */
interface ReadSoFar {
  hasBegun: boolean;
  progress: StreamProgress;
}

/** Progress of a stream whose codec does not report it: finished once each requested choice has its finish reason. */
function progressOf(finished: Set<number>, batches: readonly Batch[], { request }: CodecCall): StreamProgress {
  for (const { chunks } of batches)
    for (const { choices } of chunks)
      for (const { index, finish_reason: reason } of choices) if (reason !== null) finished.add(index);
  return finished.size > 0 && finished.size >= (request?.n ?? 1) ? 'finished' : 'open';
}

interface Decoded {
  readonly batches: readonly Batch[];
  readonly error?: unknown;
}

const NOTHING_READ: Decoded = Object.freeze({ batches: Object.freeze([]) });

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[], opened: OpenedChat): Decoded {
  const { passesOn, passesSame, endpoint } = opened;
  const batches: OpenBatch[] = [];
  try {
    for (const sent of events) {
      const event = withoutKey(sent, endpoint);
      const chunks = decoder.push(event);
      const passed = passesOn ? event : passesSame ? decoder.original?.() : undefined;
      addToBatch(batches, chunks, passed, !passesOn && isApart(batches.at(-1), chunks, passed));
      if (decoder.progress?.() === 'complete') break;
    }
    return { batches };
  } catch (error) {
    return { batches, error };
  }
}

interface OpenBatch extends Batch {
  readonly chunks: ChatChunk[];
  readonly events: SseEvent[];
}

function addToBatch(
  batches: OpenBatch[],
  chunks: readonly ChatChunk[],
  event: SseEvent | undefined,
  isApart: boolean,
): void {
  if (chunks.length === 0 && !event) return;
  const last = batches.at(-1);
  if (!last || isApart) {
    batches.push({ chunks: [...chunks], events: event ? [event] : [] });
    return;
  }
  for (const chunk of chunks) last.chunks.push(chunk);
  if (event) last.events.push(event);
}

/**
 * Returns whether chunks need a separate batch. A batch is either forwarded or written as a whole. Usage is forwarded
 * separately, at the end.
 */
function isApart(batch: Batch | undefined, chunks: readonly ChatChunk[], event: SseEvent | undefined): boolean {
  if (!batch) return true;
  if (batch.events.length > 0 !== (event !== undefined)) return true;
  return event !== undefined && (chunks.some(hasUsage) || batch.chunks.some(hasUsage));
}

function hasUsage({ usage }: ChatChunk): boolean {
  return usage !== undefined;
}

/** Removes the operator's key from an event, since a vendor may repeat the request. */
function withoutKey(event: SseEvent, endpoint: Endpoint | undefined): SseEvent {
  const data = cutKey(event.data, endpoint);
  return data === event.data ? event : { ...event, data };
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider interrupted the response before its end. Try again.');
}

/** Stream whose first chunk with content has arrived, so that failover has ended. */
export interface ChatStream {
  /**
   * Batches for the caller, to be iterated once. The last one has a usage chunk. Throws the GatewayError that the
   * caller gets. The call ends with the iteration, even if that is stopped early.
   */
  readonly batches: AsyncIterable<Batch>;
  /** Ends the call of a stream that is not iterated to its end. Has no effect after the end. */
  close(): void;
}

/** Time for which a stream is read after its caller has disconnected, in milliseconds. */
const READ_ON_MS = 500;

/** Completes a chat as a stream. Rejects before the first byte if no target responds. */
export function streamChat(deps: CallDeps, call: Call): Promise<ChatStream> {
  return runCall(deps, call, respondStream);
}

/** Runs hooks on the stream and meters it. Ends the call when the stream ends, is interrupted or is abandoned. */
async function respondStream(deps: CallDeps, call: Call, early: Answered | undefined): Promise<ChatStream> {
  const opened = early ? openHookResponse(call, early) : await tryTargets(deps, call, openStream);
  let transform: ChunkTransform | undefined;
  try {
    transform = await call.hooks.stream?.(call);
  } catch (error) {
    opened.destroy?.();
    throw error;
  }
  if (transform?.changes && call.record.lane === 'native') call.record.lane = 'mixed';
  const running = new RunningStream(deps, call, opened, transform);
  return { batches: running.batches(), close: () => running.close('aborted') };
}

/** Opens the response of a hook as a stream. */
function openHookResponse(call: Call, early: Answered): OpenStream {
  const first = [batchOf(chunksOfResponse(takeHookResponse(call, early)))];
  return { target: call.targets[0], first, source: NONE };
}

const NONE: Pick<Batches, 'next'> = { next: async () => ({ done: true, value: undefined }) };

/** Reads the stream of a target that resumes another one, joined to the text so far. */
async function* joinAt(resumePoint: ResumePoint, { first, source }: OpenStream): Batches {
  const join = ({ chunks }: Batch): Batch =>
    batchOf(chunks.map((chunk) => resumePoint.push(chunk)).filter((chunk) => hasContent(chunk) || chunk.usage));
  for (const batch of first) yield join(batch);
  for (let next = await source.next(); !next.done; next = await source.next()) yield join(next.value);
}

/** Stream to the caller, with its usage, output and end. */
class RunningStream {
  readonly #deps: CallDeps;
  readonly #call: Call;
  readonly #prefix: StreamPrefix | undefined;
  readonly #transform: ChunkTransform | undefined;
  #opened: OpenStream;
  /** Join with the text of the previous targets. */
  #resumePoint: ResumePoint | undefined;
  /** Usage of the previous requests. */
  #before: Usage | undefined;
  #startedMs = performance.now();
  #usage: Usage | undefined;
  #tier: unknown;
  #writtenBytes = 0;
  #last: ChatChunk | undefined;
  /** Position in the batches that were read already. */
  #at = 0;
  /** Vendor's usage, which is sent at the end. */
  #counted: Batch | undefined;
  #isRead = false;
  #disconnectTimer: NodeJS.Timeout | undefined;

  constructor(deps: CallDeps, call: Call, opened: OpenStream, transform: ChunkTransform | undefined) {
    this.#deps = deps;
    this.#call = call;
    this.#opened = opened;
    this.#prefix = opened.prefix;
    this.#before = opened.before;
    this.#transform = transform;
    if (call.signal.aborted) this.#onLeave();
    else call.signal.addEventListener('abort', this.#onLeave, { once: true });
  }

  /**
   * Reads for a moment after the caller has disconnected, since the usage comes at the end of the stream. A shutdown
   * closes the stream at once.
   */
  readonly #onLeave = (): void => {
    if (isShutdown(this.#call.signal)) this.#opened.destroy?.();
    else this.#disconnectTimer ??= setTimeout(() => this.#opened.destroy?.(), READ_ON_MS);
  };

  /** Reads the next batch from the provider. */
  #read(): Promise<IteratorResult<Batch, void>> {
    const batch = this.#opened.first[this.#at];
    this.#at += 1;
    if (batch) return Promise.resolve({ value: batch });
    const next = this.#opened.source.next();
    return this.#prefix ? next.catch((thrown: unknown) => this.#resume(this.#prefix as StreamPrefix, thrown)) : next;
  }

  /** Resumes an interrupted stream at another target. */
  async #resume(prefix: StreamPrefix, thrown: unknown): Promise<IteratorResult<Batch, void>> {
    const { target, destroy } = this.#opened;
    if (!target || this.#call.signal.aborted) throw thrown;
    destroy?.();
    const meter = (): void => this.#meter();
    const broken = { prefix, target, thrown, meter, open: openStream };
    const { opened, resumePoint, before } = await resume(this.#deps, this.#call, broken);
    this.#opened = { ...opened, first: [], source: joinAt(resumePoint, opened) };
    this.#resumePoint = resumePoint;
    this.#before = before;
    this.#startedMs = performance.now();
    this.#usage = undefined;
    this.#tier = undefined;
    this.#writtenBytes = 0;
    return this.#read();
  }

  /** Returns the next batch. After the caller has disconnected, batches are only counted. */
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

  /** Reads for a moment after the reader has stopped. */
  async #drain(): Promise<void> {
    if (this.#isRead || this.#call.record.metered) return;
    this.#onLeave();
    try {
      for (let next = await this.#read(); !next.done; next = await this.#read())
        for (const chunk of next.value.chunks) this.#count(chunk);
    } catch {
      // Ignored: the chunks before the error are counted.
    }
  }

  async *batches(): Batches {
    try {
      if (this.#transform?.changes) yield* this.#transformed(this.#transform);
      // No `for await`: it would close the source when its reader stops.
      else
        for (let batch = await this.#next(); batch; batch = await this.#next()) {
          for (const chunk of batch.chunks) {
            this.#count(chunk);
            if (this.#transform?.observe) await this.#transform.observe(chunk);
          }
          if (!batch.chunks.some(hasUsage)) yield batch;
          else if (this.#opened.passesSame && batch.events.length > 0) this.#counted = batch;
          else yield { chunks: batch.chunks.flatMap(withoutUsage), events: batch.events };
        }
      this.#meter();
      const usage = this.#call.record.usage ?? this.#usage;
      if (this.#last && usage) yield this.#usageBatch(this.#last, usage);
      this.close('ok');
    } catch (thrown) {
      throw await this.#fail(thrown);
    } finally {
      await this.#drain();
      this.close('aborted');
    }
  }

  /** Usage batch, with the vendor's own event if that usage is charged. */
  #usageBatch(head: ChatChunk, usage: Usage): Batch {
    const counted = this.#counted?.chunks.at(-1)?.usage === usage ? this.#counted : undefined;
    return { chunks: [usageChunk(head, usage)], events: counted?.events ?? NO_EVENTS };
  }

  /** Holds back the end of a choice until the transforms have returned all their text. */
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
      // Text that a transform holds back when it stops the stream must not be sent.
      if (!isStopped && !this.#call.signal.aborted) yield batchOf(await transform.end());
      throw error;
    }
    yield batchOf(await transform.end());
    yield batchOf(finishing);
  }

  /** Records usage and text as the provider sent them. */
  #count(chunk: ChatChunk): void {
    if (chunk.usage) this.#usage = laterUsage(this.#usage, chunk.usage);
    this.#tier = chunk['service_tier'] ?? this.#tier;
    this.#writtenBytes += textLength(chunk);
    if (isFinished(chunk)) recordUnmappedFinish(this.#deps, this.#call, chunk.choices);
    this.#prefix?.record(chunk);
    this.#last = chunk;
  }

  #meter(): void {
    const { record } = this.#call;
    const { target } = this.#opened;
    if (record.metered || !target) return;
    record.upstreamMs += performance.now() - this.#startedMs;
    const writtenTokens = () => Math.ceil(this.#writtenBytes / BYTES_PER_TOKEN);
    // In a stream that was cut, usage reported on the way may be less than the output.
    const isReported = this.#isRead || (this.#usage?.completion_tokens ?? 0) >= writtenTokens();
    const model = this.#resumePoint ? this.#resumePoint.served : this.#last?.model;
    const reported = { usage: isReported ? this.#usage : undefined, model, service_tier: this.#tier };
    meterChat(this.#call, target, reported, writtenTokens);
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
        if (!this.#prefix || this.#prefix.reported !== thrown) reportBroken(this.#deps, this.#call, target, failed);
        ({ error } = failed);
      }
    } catch (other) {
      error = other;
    }
    return endWithError(this.#deps, this.#call, error);
  }

  close(status: 'ok' | 'aborted'): void {
    clearTimeout(this.#disconnectTimer);
    this.#call.signal.removeEventListener('abort', this.#onLeave);
    this.#opened.destroy?.();
    this.#meter();
    this.#call.finish(status);
  }
}
