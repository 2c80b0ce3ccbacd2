import type { Target } from '../contract/call.ts';
import type { ChatChunk } from '../contract/chat.ts';
import type { SseEvent } from '../contract/provider.ts';
import { UpstreamError } from '../upstream/upstream.ts';
import { forgetRefused } from './attempt.ts';
import type { CallDeps } from './call-deps.ts';
import { openChat } from './chat.ts';
import { hasContent } from './chat-chunks.ts';
import type { LiveCall } from './live-call.ts';
import { type Batch, type Batches, isWhole, readChunks } from './read-chunks.ts';
import type { ResponseNotes } from './response-notes.ts';

/** How much a stream may send before its first content, so that an error inside a 200 can still fail over. */
const MAX_PEEKED = 64;

/** A stream of a target that has begun to respond. */
export interface OpenStream extends ResponseNotes {
  readonly target: Target | undefined;
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
  return { call, headers, target, first, source, destroy: () => opened.upstreamResponse.destroy() };
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
