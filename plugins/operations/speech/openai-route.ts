import {
  GatewayError,
  nearest,
  type Route,
  type RouteContext,
  type Schema,
  toGatewayError,
} from '../../../core/index.ts';
import { countCharacters, type SpeechFormat, type SpeechProvider, type SpeechRequest } from '../../tts/kit/index.ts';
import type { SpeechRoutesNeed } from './routes.ts';
import { OPENAI_SPEECH_BODY } from './schemas.ts';
import { callContext, sendSound, setHeaders, writeSound } from './send-sound.ts';
import type { SpokenResponse } from './speak.ts';

/** The longest text that clients of this route may count on: a vendor that takes less gets it in pieces. */
const PROMISED_CHARACTERS = 4096;

interface OpenAISpeechBody {
  readonly model: string;
  readonly input: string;
  readonly voice?: string | { readonly id: string };
  readonly response_format?: SpeechFormat;
  readonly speed?: number;
  readonly instructions?: string;
  readonly stream_format?: 'audio' | 'sse';
}

/** `POST /v1/audio/speech`, for OpenAI's clients. */
export function openaiSpeechRoute(need: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'POST',
    path: '/v1/audio/speech',
    summary: 'Speaks a text; `model` is `vendor/model`.',
    auth: ['key'],
    isIdempotent: true,
    body: OPENAI_SPEECH_BODY,
    responses: {
      200: { description: 'The sound; with `stream_format: "sse"` events that hold it.', contentType: 'audio/*' },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const body = ctx.state.body as OpenAISpeechBody;
      const target = findTarget(body.model, need);
      const whole = ctx.req.httpVersion === '1.0';
      const request = { ...readBody(body, target), stream: !whole };
      const spoken = await need.speak(target.vendor, request, callContext(ctx), target.alias);
      setHeaders(ctx, target.vendor, spoken);
      if (body.stream_format === 'sse') await sendEvents(ctx, spoken);
      else await sendSound(ctx, spoken, whole);
    },
  };
}

function readBody(body: OpenAISpeechBody, { provider, model }: SpeechTarget): SpeechRequest {
  const { input, voice, response_format, speed, instructions } = body;
  const format = response_format ?? (provider.formats.includes('mp3') ? 'mp3' : undefined);
  const voiceId = typeof voice === 'object' ? voice.id : voice;
  return {
    text: input,
    ...(countCharacters(input) <= PROMISED_CHARACTERS && { split: true }),
    ...(model !== undefined && { model }),
    ...(voiceId !== undefined && { voice: voiceId }),
    ...(format !== undefined && { format }),
    ...(speed !== undefined && { speed }),
    ...(instructions !== undefined && { options: { instructions } }),
  };
}

interface SpeechTarget {
  readonly vendor: string;
  readonly provider: SpeechProvider;
  readonly model: string | undefined;
  /** The alias that named it. */
  readonly alias?: string;
}

/** `vendor/model`, a vendor's name alone, or an alias, which means its first target. */
function findTarget(name: string, { vendors, alias }: SpeechRoutesNeed): SpeechTarget {
  const [first] = alias(name) ?? [];
  const { vendor, model } = splitName(first ?? name);
  const offers = vendors();
  const provider = offers.get(vendor);
  if (provider) return { vendor, provider, model, ...(first !== undefined && { alias: name }) };
  const known = [...offers].flatMap(([instance, { models }]) => models.map(({ id }) => `${instance}/${id}`));
  const near = nearest(name, known);
  const hint =
    known.length === 0
      ? 'this gateway has no vendor of speech: its operator names one under `tts` of the configuration'
      : `write vendor/model, such as ${(near.length > 0 ? near : known.slice(0, 3)).join(', ')}`;
  throw new GatewayError('unsupported_model', `model is not one that can speak: ${hint}.`, { param: 'model' });
}

function splitName(name: string): { readonly vendor: string; readonly model: string | undefined } {
  const slash = name.indexOf('/');
  if (slash < 0) return { vendor: name, model: undefined };
  return { vendor: name.slice(0, slash), model: name.slice(slash + 1) || undefined };
}

/** OpenAI's events. Unlike plain sound they can tell an error that comes after the first byte. */
async function sendEvents(ctx: RouteContext, spoken: SpokenResponse): Promise<void> {
  await writeSound(ctx.res, speechEvents(spoken, ctx.state.requestId), {
    signal: ctx.state.signal,
    begin() {
      ctx.status = 200;
      ctx.set('content-type', 'text/event-stream; charset=utf-8');
      ctx.set('cache-control', 'no-cache, no-transform');
      ctx.set('x-accel-buffering', 'no');
      ctx.respond = false;
    },
  });
}

async function* speechEvents(spoken: SpokenResponse, requestId: string): AsyncGenerator<string> {
  let begun = false;
  try {
    for await (const bytes of spoken.audio) {
      begun = true;
      yield frame({ type: 'speech.audio.delta', audio: Buffer.from(bytes).toString('base64') });
    }
  } catch (error) {
    if (!begun) throw error;
    yield frame(toGatewayError(error).toBody(requestId));
    return;
  }
  yield frame({ type: 'speech.audio.done', usage: { characters: spoken.characters } });
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
