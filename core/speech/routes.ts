import type { Schema } from '../contract/json.ts';
import type { CallContext, Route, RouteContext, SpeechAnswer } from '../contract/plugin.ts';
import type { SpeechRequest } from '../contract/speech.ts';
import type { SpeechProvider, Voice } from '../contract/speech-provider.ts';
import { collectSound } from './collect-sound.ts';
import { openaiSpeechRoutes } from './openai-routes.ts';
import { SPEECH_BODY, SPEECH_JSON, VOICES_JSON } from './schemas.ts';
import { writeSound } from './write-sound.ts';

/** An answer of the pipeline, with headers such as `x-tollgate-attempts`. */
export interface SpokenAnswer extends SpeechAnswer {
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the routes need of the gateway. */
export interface SpeechRoutesNeed {
  /** By instance name. */
  readonly vendors: ReadonlyMap<string, SpeechProvider>;
  /** A call through the whole pipeline; resolves when the first sound is there. */
  speak(vendor: string, request: SpeechRequest, context: CallContext, requested?: string): Promise<SpokenAnswer>;
  /** The voices of a vendor, asked of the vendor itself where it has to be. */
  voices(vendor: string): Promise<readonly Voice[]>;
  /** What an alias of the configuration means. */
  alias?(name: string): { readonly vendor: string; readonly model?: string } | undefined;
}

/** All routes of speech, as data: two for each vendor, and those that OpenAI's clients and Open WebUI ask for. */
export function speechRoutes(need: SpeechRoutesNeed): readonly Route<Schema>[] {
  const own = [...need.vendors.keys()].flatMap((vendor) => [ttsRoute(vendor, need), voicesRoute(vendor, need)]);
  return need.vendors.size === 0 ? [] : [...own, ...openaiSpeechRoutes(need)];
}

function ttsRoute(vendor: string, { speak }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'POST',
    path: `/${vendor}/tts`,
    summary: `Speaks a text with ${vendor}.`,
    description: 'Answers the sound as it comes; with `Accept: application/json` (and no audio type) base64 in JSON.',
    auth: ['key'],
    body: SPEECH_BODY,
    responses: {
      200: { description: 'The sound, or JSON that holds it.', contentType: 'audio/*', schema: SPEECH_JSON },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const request = ctx.state.body as unknown as SpeechRequest;
      const json = wantsJson(ctx.get('accept'));
      // HTTP/1.0 has no way to tell a cut stream from a whole one.
      const whole = json || request.stream === false || ctx.req.httpVersion === '1.0';
      const answer = await speak(vendor, whole ? { ...request, stream: false } : request, callContext(ctx));
      setHeaders(ctx, vendor, answer);
      if (json) ctx.body = await jsonAnswer(answer);
      else await sendSound(ctx, answer, whole);
    },
  };
}

function voicesRoute(vendor: string, { voices }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'GET',
    path: `/${vendor}/tts/voices`,
    summary: `Lists the voices of ${vendor}.`,
    auth: ['key'],
    responses: { 200: { description: 'The voices.', schema: VOICES_JSON } },
    async handler(ctx) {
      ctx.body = { voices: await voices(vendor) };
    },
  };
}

/** Who a route's call is made for. */
export function callContext({ state }: RouteContext): CallContext {
  const { principal, requestId, signal, onOutcome } = state;
  return { principal, requestId, signal, onOutcome };
}

/** JSON is for callers that take JSON and no audio; axios and others send both, and want the sound. */
export function wantsJson(accept: string): boolean {
  const types = accept
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';')[0]?.trim() ?? '');
  const audio = types.some(
    (type) => type === '*/*' || type.startsWith('audio/') || type === 'application/octet-stream',
  );
  return !audio && types.some((type) => type === 'application/json' || type === 'application/*');
}

async function jsonAnswer(answer: SpeechAnswer): Promise<object> {
  const { format, contentType, characters, model, voice } = answer;
  const sound = await collectSound(answer);
  return { audio: sound.toString('base64'), format, content_type: contentType, characters, model, voice };
}

/** Header values hold what is plain ASCII; a model or voice with anything else is in the JSON answer only. */
export function setHeaders(ctx: RouteContext, vendor: string, answer: SpokenAnswer): void {
  const headers: Record<string, string> = {
    'x-tollgate-provider': vendor,
    'x-tollgate-model': answer.model,
    'x-tollgate-voice': answer.voice,
    'x-tollgate-characters': String(answer.characters),
    ...answer.headers,
  };
  for (const [name, value] of Object.entries(headers)) if (/^[\x20-\x7e]+$/.test(value)) ctx.set(name, value);
}

/** The sound as the answer: in one piece with its length, or as it comes. */
export async function sendSound(ctx: RouteContext, answer: SpeechAnswer, whole: boolean): Promise<void> {
  if (whole) {
    const sound = await collectSound(answer);
    ctx.set('content-type', answer.contentType);
    ctx.body = sound;
    return;
  }
  await writeSound(ctx.res, answer.audio, {
    signal: ctx.state.signal,
    begin() {
      ctx.status = 200;
      ctx.set('content-type', answer.contentType);
      ctx.respond = false;
    },
  });
}
