import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { CallContext, RouteContext } from '../../../contract/index.ts';
import type { SpeechResponse } from '../../tts/kit/index.ts';
import { collectSound } from './collect-sound.ts';
import type { SpokenResponse } from './speak.ts';

/** Who a route's call is made for. */
export function callContext({ state }: RouteContext): CallContext {
  const { principal, requestId, session, trace, signal, onOutcome } = state;
  return { principal, requestId, session, trace, signal, onOutcome };
}

/** Header values hold what is plain ASCII; a model or voice with anything else is in the JSON response only. */
export function setHeaders(ctx: RouteContext, vendor: string, spoken: SpokenResponse): void {
  const headers: Record<string, string> = {
    'x-tollgate-provider': vendor,
    'x-tollgate-model': spoken.model,
    'x-tollgate-voice': spoken.voice,
    'x-tollgate-characters': String(spoken.characters),
    ...spoken.headers,
  };
  for (const [name, value] of Object.entries(headers)) if (/^[\x20-\x7e]+$/.test(value)) ctx.set(name, value);
}

/** The sound as the response: in one piece with its length, or as it comes. */
export async function sendSound(ctx: RouteContext, spoken: SpeechResponse, whole: boolean): Promise<void> {
  if (whole) {
    const sound = await collectSound(spoken);
    ctx.set('content-type', spoken.contentType);
    ctx.body = sound;
    return;
  }
  await writeSound(ctx.res, spoken.audio, {
    signal: ctx.state.signal,
    begin() {
      ctx.status = 200;
      ctx.set('content-type', spoken.contentType);
      ctx.respond = false;
    },
  });
}

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
