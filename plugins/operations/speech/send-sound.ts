import type { CallContext, RouteContext } from '../../../core/index.ts';
import type { SpeechResponse } from '../../tts/kit/index.ts';
import { collectSound } from './collect-sound.ts';
import type { SpokenResponse } from './speak.ts';
import { writeSound } from './write-sound.ts';

/** Who a route's call is made for. */
export function callContext({ state }: RouteContext): CallContext {
  const { principal, requestId, session, signal, onOutcome } = state;
  return { principal, requestId, session, signal, onOutcome };
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
