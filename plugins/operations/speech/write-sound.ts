import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/** A listener that takes nothing for this long is cut off. */
const STALL_MS = 60_000;

export interface SoundWriting {
  /** Fires when the caller hangs up or the gateway drains. */
  readonly signal: AbortSignal;
  /** Called when the first piece is there, just before it is written: until then an error response is possible. */
  begin(): void;
  readonly stallMs?: number;
}

/**
 * Writes pieces as they come, at the listener's pace. An error before the first piece is thrown; after it the
 * connection is cut, because audio has no error frame and a clean end would pass for a whole sound.
 */
export async function writeSound(
  res: ServerResponse,
  pieces: AsyncIterable<Uint8Array | string>,
  writing: SoundWriting,
): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  let step = await iterator.next();
  writing.begin();
  try {
    for (; !step.done; step = await iterator.next()) {
      if (res.destroyed || writing.signal.aborted) break;
      if (!res.write(step.value)) await drained(res, writing);
    }
    if (step.done) res.end();
    else res.destroy();
  } catch {
    // The pipeline that made the pieces has the reason; all that the listener can be told is that this is not the end.
    res.destroy();
  } finally {
    if (!step.done) await iterator.return?.();
  }
}

async function drained(res: ServerResponse, { signal, stallMs = STALL_MS }: SoundWriting): Promise<void> {
  if (res.destroyed) return;
  const done = new AbortController();
  const stop = AbortSignal.any([signal, done.signal, AbortSignal.timeout(stallMs)]);
  const closed = once(res, 'close', { signal: done.signal }).catch(() => {});
  try {
    await Promise.race([once(res, 'drain', { signal: stop }), closed]);
  } finally {
    done.abort();
  }
}
