import type { Target } from '../contract/call.ts';
import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { UpstreamError } from '../upstream/upstream.ts';
import { forgetRefused, readJson } from './attempt.ts';
import type { CallDeps } from './call-deps.ts';
import { type OpenedChat, openChat } from './chat.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';
import { webPageError } from './error-marks.ts';
import type { LiveCall } from './live-call.ts';
import type { ResponseNotes } from './response-notes.ts';

/** How much a stream may send before its first content, so that an error inside a 200 can still fail over. */
const MAX_PEEKED = 64;

/** A stream of a target that has begun to respond. */
export interface OpenStream extends ResponseNotes {
  readonly target: Target | undefined;
  /** Its end, not its beginning, says whether the target works. */
  readonly isStreaming: true;
  /** What was read of the source already. */
  readonly first: Batch;
  readonly source: Pick<Batches, 'next'>;
  /** Hangs up. */
  destroy?(): void;
}

/** Asks one target and reads up to the first content; a failure before that lets another target try. */
export async function openStream(deps: CallDeps, call: LiveCall, target: Target): Promise<OpenStream> {
  const attempt = new AbortController();
  const abort = (): void => attempt.abort(call.signal.reason);
  if (call.signal.aborted) abort();
  call.signal.addEventListener('abort', abort, { once: true });
  call.record.attemptSignal = attempt.signal;
  const startedMs = performance.now();
  const opened = await openChat(deps, call, target);
  const source = readChunks(opened);
  // The dialect writes what does not come as the vendor's events.
  if (opened.passesOn && isWhole(opened)) call.record.lane = 'mixed';
  const chunks: ChatChunk[] = [];
  const events: SseEvent[] = [];
  const clock = startClock(call.record.clocks?.firstTokenMs, startedMs, () => opened.upstreamResponse.destroy());
  try {
    while (!chunks.some(hasContent) && chunks.length + events.length < MAX_PEEKED) {
      const next = await source.next();
      clock.assertInTime();
      if (next.done) break;
      chunks.push(...next.value.chunks);
      events.push(...next.value.events);
    }
  } catch (error) {
    opened.upstreamResponse.destroy();
    clock.assertInTime();
    forgetRefused(call, error);
    throw error;
  } finally {
    clock.stop();
  }
  call.record.firstTokenMs = call.elapsedMs;
  // From here on the stream itself decides when to hang up.
  if (!call.signal.aborted) call.signal.removeEventListener('abort', abort);
  const { headers } = opened;
  const first = { chunks, events };
  return { call, headers, target, isStreaming: true, first, source, destroy: () => opened.upstreamResponse.destroy() };
}

/** The clock of a stream's first content: when it runs out the vendor is left, and another target may respond. */
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
      const message = `the provider sent nothing of its answer within ${limitMs} ms`;
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

export type Batches = AsyncGenerator<Batch, void, undefined>;

const NO_EVENTS: readonly SseEvent[] = Object.freeze([]);

/** Chunks that were read from no events that the caller gets. */
export function batchOf(chunks: readonly ChatChunk[]): Batch {
  return { chunks, events: NO_EVENTS };
}

/** One provider's response in batches. Throws when it broke off. */
export function readChunks(opened: OpenedChat): Batches {
  return isWhole(opened) ? readWholeStream(opened) : readEventStream(opened);
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole response. */
function isWhole({ upstreamResponse: { headers } }: OpenedChat): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
}

async function* readWholeStream(opened: OpenedChat): Batches {
  yield batchOf(await readWhole(opened));
}

async function readWhole({ upstreamResponse, codec, codecCall }: OpenedChat): Promise<readonly ChatChunk[]> {
  return chunksOfResponse(codec.response(await readJson(upstreamResponse), codecCall));
}

async function* readEventStream({
  upstreamResponse: { body, headers },
  codec,
  codecCall,
  passesOn,
}: OpenedChat): Batches {
  const decoder = codec.stream(codecCall);
  const reader = createEventReader();
  // A property, since the compiler takes a variable that only `decode` sets for one that never changes.
  const progress = { hasBegun: false };
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = (events: readonly SseEvent[]): Decoded => {
    const decoded = decodeEvents(decoder, events, passesOn);
    if (decoded.error !== undefined && !progress.hasBegun) throw decoded.error;
    progress.hasBegun ||= decoded.chunks.some(hasContent);
    return decoded;
  };
  for await (const bytes of body) {
    const batch = decode(reader.push(bytes));
    if (batch.chunks.length > 0 || batch.events.length > 0) yield batch;
    if (batch.error !== undefined) throw batch.error;
  }
  const rest = decode(reader.end());
  if (rest.chunks.length > 0 || rest.events.length > 0) yield rest;
  if (rest.error !== undefined) throw rest.error;
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield batchOf(chunks);
  if (complete) return;
  throw !progress.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

interface Decoded extends Batch {
  readonly error?: unknown;
}

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[], passesOn: boolean): Decoded {
  const chunks: ChatChunk[] = [];
  const passed: SseEvent[] = [];
  try {
    for (const event of events) {
      chunks.push(...decoder.push(event));
      if (passesOn) passed.push(event);
    }
    return { chunks, events: passed };
  } catch (error) {
    return { chunks, events: passed, error };
  }
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}
