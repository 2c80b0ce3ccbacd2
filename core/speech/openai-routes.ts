import { nearest } from '../config/nearest.ts';
import { GatewayError, toGatewayError } from '../contract/errors.ts';
import type { FromSchema } from '../contract/from-schema.ts';
import type { Schema } from '../contract/json.ts';
import type { Route, RouteContext } from '../contract/plugin.ts';
import type { SpeechRequest } from '../contract/speech.ts';
import type { SpeechProvider, Voice } from '../contract/speech-provider.ts';
import { callContext, type SpeechRoutesNeed, type SpokenAnswer, sendSound, setHeaders } from './routes.ts';
import { localVoices } from './run-speech.ts';
import { OPENAI_SPEECH_BODY, VOICES_JSON } from './schemas.ts';
import { writeSound } from './write-sound.ts';

/** `/v1/audio/speech` for OpenAI's SDKs, and the two lists that Open WebUI asks for without a credential. */
export function openaiSpeechRoutes(need: SpeechRoutesNeed): readonly Route<Schema>[] {
  return [speechRoute(need), voicesRoute(need), modelsRoute(need)];
}

function speechRoute(need: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'POST',
    path: '/v1/audio/speech',
    summary: 'Speaks a text; `model` is `vendor/model`.',
    auth: ['key'],
    body: OPENAI_SPEECH_BODY,
    responses: {
      200: { description: 'The sound; with `stream_format: "sse"` events that hold it.', contentType: 'audio/*' },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const body = ctx.state.body as FromSchema<typeof OPENAI_SPEECH_BODY>;
      const { model, input, voice, response_format, speed, instructions, stream_format } = body;
      const target = findTarget(model, need);
      const format = response_format ?? (target.provider.formats.includes('mp3') ? 'mp3' : undefined);
      const voiceId = typeof voice === 'object' ? voice.id : voice;
      const request: SpeechRequest = {
        text: input,
        ...(target.model !== undefined && { model: target.model }),
        ...(voiceId !== undefined && { voice: voiceId }),
        ...(format !== undefined && { format }),
        ...(speed !== undefined && { speed }),
        ...(instructions !== undefined && { options: { instructions } }),
      };
      const whole = ctx.req.httpVersion === '1.0';
      const spoken = { ...request, ...(whole && { stream: false }) };
      const answer = await need.speak(target.vendor, spoken, callContext(ctx), need.alias?.(model) && model);
      setHeaders(ctx, target.vendor, answer);
      if (stream_format === 'sse') await sendEvents(ctx, answer);
      else await sendSound(ctx, answer, whole);
    },
  };
}

interface SpeechTarget {
  readonly vendor: string;
  readonly provider: SpeechProvider;
  readonly model: string | undefined;
}

function findTarget(name: string, { vendors, alias }: SpeechRoutesNeed): SpeechTarget {
  const slash = name.indexOf('/');
  const written = slash < 0 ? { vendor: name } : { vendor: name.slice(0, slash), model: name.slice(slash + 1) };
  const { vendor, model } = alias?.(name) ?? (written.model === '' ? { vendor: written.vendor } : written);
  const provider = vendors.get(vendor);
  if (provider) return { vendor, provider, model };
  const known = [...vendors].flatMap(([instance, { models }]) => models.map(({ id }) => `${instance}/${id}`));
  const near = nearest(name, known);
  throw new GatewayError(
    'unsupported_model',
    `model is not one that can speak: write vendor/model, such as ${(near.length > 0 ? near : known.slice(0, 3)).join(', ')}.`,
    { param: 'model' },
  );
}

/** OpenAI's events. Unlike plain sound they can tell an error that comes after the first byte. */
async function sendEvents(ctx: RouteContext, answer: SpokenAnswer): Promise<void> {
  await writeSound(ctx.res, speechEvents(answer, ctx.state.requestId), {
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

async function* speechEvents(answer: SpokenAnswer, requestId: string): AsyncGenerator<string> {
  let begun = false;
  try {
    for await (const bytes of answer.audio) {
      begun = true;
      yield frame({ type: 'speech.audio.delta', audio: Buffer.from(bytes).toString('base64') });
    }
  } catch (error) {
    if (!begun) throw error;
    yield frame(toGatewayError(error).toBody(requestId));
    return;
  }
  yield frame({ type: 'speech.audio.done', usage: { characters: answer.characters } });
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function voicesRoute({ vendors }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/voices',
    summary: 'Lists the voices that are known without asking a vendor.',
    auth: 'none',
    responses: { 200: { description: 'The voices of all vendors.', schema: VOICES_JSON } },
    async handler(ctx) {
      const lists = await Promise.all(
        ready(vendors).map(async ([name, provider]) => ({ name, voices: await known(provider) })),
      );
      const byId = new Map<string, { readonly voice: Voice; readonly names: readonly string[] }>();
      for (const { name, voices } of lists) {
        for (const voice of voices) {
          const same = byId.get(voice.id);
          byId.set(voice.id, { voice: same?.voice ?? voice, names: [...(same?.names ?? []), name] });
        }
      }
      // One id may be a voice of several vendors; a list with an id twice confuses its reader.
      const voices = [...byId.values()].map(({ voice, names }) => ({
        ...voice,
        name: `${voice.name} (${names.join(', ')})`,
      }));
      ctx.body = { voices };
    },
  };
}

/** Vendors that can be called: those without a key would only answer that they have none. */
function ready(vendors: ReadonlyMap<string, SpeechProvider>): readonly (readonly [string, SpeechProvider])[] {
  return [...vendors].filter(([, { credential }]) => !credential?.required || credential.value !== undefined);
}

/** Nobody has shown a credential here, so no vendor is called with the operator's. */
async function known(provider: SpeechProvider): Promise<readonly Voice[]> {
  try {
    return (await localVoices(provider)) ?? [];
  } catch {
    // A program that is not installed has no voices.
    return [];
  }
}

function modelsRoute({ vendors }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/models',
    summary: 'Lists the models that can speak.',
    auth: 'none',
    responses: { 200: 'The models, as `{models: [{id}]}`.' },
    handler(ctx) {
      const ids = ready(vendors).flatMap(([vendor, { models }]) => models.map(({ id }) => ({ id: `${vendor}/${id}` })));
      ctx.body = { models: ids };
    },
  };
}
