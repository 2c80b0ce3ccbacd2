import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { RouteContext } from '../../../contract/index.ts';
import type { SpeechResponse } from '../../tts/kit/index.ts';
import { collectSound } from './collect-sound.ts';
import type { SpokenResponse } from './speak.ts';

/** Header values must be plain ASCII; any other model or voice is only in the JSON response. */
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

/** Sends the sound as the response: complete with its length, or as it arrives. */
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

/** Maximum time without reads by a listener before it is disconnected. */
const STALL_MS = 60_000;

export interface SoundWriting {
  /** Fires when the caller disconnects or the gateway drains. */
  readonly signal: AbortSignal;
  /** Called just before the first piece is written: until then, an error response is possible. */
  begin(): void;
  readonly stallMs?: number;
}

/**
 * Writes pieces as they arrive, at the listener's pace. An error before the first piece is thrown. After it, the
 * connection is closed: audio has no error frame, and a normal end would look like a complete sound.
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
    // The pipeline that made the pieces reports the error; the listener only sees that the sound is incomplete.
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
